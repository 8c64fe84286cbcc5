"""Set-ups of several servers on loopback, for tests and for trying out: Sentinel, a cluster, a server with AOF.

    with sentinel_setup() as sentinel: ...      with cluster_setup() as cluster: ...

Both end all that they started, and nothing of it outlives the process. Methods are short calls that may be made from a
running event loop, but for `ClusterSetup.move`, which takes its time: `await asyncio.to_thread(cluster.move, "c1")`.
Nothing waits for a failover: ask `primary()` with `wait_until`.
"""

from tests.support.setups.cluster import ClusterSetup, cluster_setup
from tests.support.setups.node import Node
from tests.support.setups.sentinel import SentinelSetup, sentinel_setup

__all__ = ["ClusterSetup", "Node", "SentinelSetup", "cluster_setup", "sentinel_setup"]
