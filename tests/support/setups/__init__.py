"""Set-ups of several servers on loopback, for tests and for trials: Sentinel, a cluster, a server with AOF.

    with sentinel_setup() as sentinel: ...      with cluster_setup() as cluster: ...

Both end everything that they started, and nothing of it outlives the process. Methods are short calls that may be
made from a running event loop, but `ClusterSetup.move` is slow: `await asyncio.to_thread(cluster.move, "c1")`.
No method waits for a failover: call `primary()` with `wait_until`.
"""

from tests.support.setups.cluster import ClusterSetup, cluster_setup
from tests.support.setups.node import Node
from tests.support.setups.sentinel import SentinelSetup, sentinel_setup

__all__ = ["ClusterSetup", "Node", "SentinelSetup", "cluster_setup", "sentinel_setup"]
