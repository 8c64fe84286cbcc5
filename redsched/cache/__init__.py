"""One cell in memory: columns, the snapshot they start from, and the feed that keeps them true."""
