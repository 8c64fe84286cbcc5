"""What can break, a class each:

`start` breaks it, `heal` repairs it again. Each has the shape that plans know it by.
"""

from collections.abc import Sequence

from tests.faults.suite.faults import failover, hosts, machines, network, processes, store
from tests.faults.suite.faults.base import Breakage

ALL: Sequence[type[Breakage]] = (*store.ALL, *network.ALL, *processes.ALL, *machines.ALL, *failover.ALL, *hosts.ALL)
BY_NAME = {one.shape.name: one for one in ALL}
