"""Report the NUMA nodes of this machine as pools: VCPU, PCPU, MEMORY_MB and huge pages of each, and their usage.

The machine's reserved amounts are split over its nodes in proportion. docs/agent.md explains how this relates to the
host's own inventories, and what cannot be seen.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from redsched.agent.collectors.component import Part, apportion
from redsched.agent.machine.numa import NumaNode, read_nodes
from redsched.agent.machine.numa_usage import PROC, NodeUsage, measure_by_node
from redsched.agent.machine.sysfs import SYS
from redsched.agent.machine.usage import CGROUPS, Usage
from redsched.errors import InvalidRequest
from redsched.model import NUMA_NODE, Inventory, Pool
from redsched.model.hosts import SOCKET
from redsched.settings import Settings

MIB = 2**20


def _traits(node: NumaNode) -> frozenset[str]:
    return frozenset({NUMA_NODE} if node.socket is None else {NUMA_NODE, f"{SOCKET}{node.socket}"})


class NumaPools:
    """Builds the pools `numa<N>`. Creating it raises InvalidRequest if the kernel lists no node."""

    def __init__(
        self,
        settings: Settings,
        dedicated: frozenset[int],
        sys: Path = SYS,
        proc: Path = PROC,
        cgroups: Path = CGROUPS,
    ) -> None:
        self._settings, self._dedicated = settings, dedicated
        self._sys, self._proc, self._cgroups = sys, proc, cgroups
        if not read_nodes(sys):
            raise InvalidRequest(
                f"numa_pools is on, but there is no NUMA node in {sys}/devices/system/node: unset REDSCHED_NUMA_POOLS"
            )

    def observe(self, usage: Usage, unexplained_vcpu: int) -> Part:
        """Observe the nodes now. `unexplained_vcpu` is the whole machine's, because load is not known by node."""
        nodes = read_nodes(self._sys)
        used = measure_by_node(usage, self._proc, self._cgroups)
        settings = self._settings
        vcpu = apportion(unexplained_vcpu, [len(self._shared(node)) for node in nodes])
        reserved_vcpu = apportion(settings.reserved_vcpu, [len(self._shared(node)) for node in nodes])
        reserved_mb = apportion(settings.reserved_memory_mb, [node.memory_bytes // MIB for node in nodes])
        pools, unexplained = dict[str, Pool](), dict[str, int]()
        for number, node in enumerate(nodes):
            inventories = self._inventories(node, reserved_vcpu[number], reserved_mb[number])
            pools[node.pool] = Pool(inventories, traits=_traits(node))
            amounts = {"VCPU": vcpu[number], "PCPU": 0, "MEMORY_MB": _memory_mb(node, used, reserved_mb[number])}
            amounts |= dict(_huge_pages(node, used))
            unexplained |= {f"{node.pool}/{one}": amounts[one] for one in inventories}
        return Part(pools, unexplained, frozenset(_trusted(unexplained, usage, used)))

    def _shared(self, node: NumaNode) -> frozenset[int]:
        return node.cpus - self._dedicated

    def _inventories(self, node: NumaNode, reserved_vcpu: int, reserved_mb: int) -> dict[str, Inventory]:
        settings = self._settings
        found = {
            "VCPU": Inventory(len(self._shared(node)), reserved_vcpu, settings.ratio_vcpu),
            "PCPU": Inventory(len(node.cpus & self._dedicated)),
            "MEMORY_MB": Inventory(node.memory_bytes // MIB, reserved_mb, settings.ratio_memory),
        }
        found |= {pages.resource_class: Inventory(pages.total) for pages in node.huge_pages}
        return {one: inventory for one, inventory in found.items() if inventory.total}


def _memory_mb(node: NumaNode, used: NodeUsage, reserved_mb: int) -> int:
    foreign = node.used_bytes - used.memory_bytes.get(node.number, 0)
    return max(0, math.ceil(foreign / MIB) - reserved_mb)


def _huge_pages(node: NumaNode, used: NodeUsage) -> Iterator[tuple[str, int]]:
    for pages in node.huge_pages:
        explained = used.huge_pages.get((node.number, pages.size_kb), 0)
        yield pages.resource_class, max(0, pages.total - pages.free - explained)


def _trusted(slots: dict[str, int], usage: Usage, used: NodeUsage) -> Iterator[str]:
    for slot in slots:
        if slot.endswith("/MEMORY_MB"):
            is_known = used.knows_memory
        else:
            is_known = usage.complete if slot.endswith("CPU") else used.knows_pages
        if is_known:
            yield slot
