"""The faults, one class each: `start` breaks something, and `heal` repairs it.

Each class has the shape by which plans know it.
"""

from collections.abc import Sequence

from tests.faults.suite.faults import clocks, failover, hosts, machines, network, processes, store
from tests.faults.suite.faults.base import Breakage

ALL: Sequence[type[Breakage]] = (
    *store.ALL, *network.ALL, *processes.ALL, *machines.ALL, *failover.ALL, *hosts.ALL, *clocks.ALL,
)  # fmt: skip
BY_NAME = {one.shape.name: one for one in ALL}
