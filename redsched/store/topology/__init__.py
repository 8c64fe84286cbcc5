"""Where the store is: URLs, connections, Sentinel, Cluster."""
