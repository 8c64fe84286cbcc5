"""Read the NUMA nodes of this machine from sysfs: CPUs, memory, huge pages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.cpu_list import parse_cpus
from redsched.agent.machine.sysfs import SYS, read_number, read_text

KIB = 1024

_LINE = re.compile(r"^Node \d+ ([^:]+):\s+(\d+)")
_CACHES = ("Active(file)", "Inactive(file)", "SReclaimable")
"""Memory that the kernel reclaims under pressure, as it counts it in the whole machine's MemAvailable."""


@dataclass(frozen=True, slots=True)
class HugePages:
    """The huge pages of one size on one node, of which the kernel has a pool: how many there are, and are free."""

    size_kb: int
    total: int
    free: int

    @property
    def resource_class(self) -> str:
        """The resource class that counts them, in pages."""
        return f"CUSTOM_HUGE_PAGES_{self.size_kb}KB"


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One node: its online CPUs, its memory without the huge pages, and how much of that cannot be allocated.

    `socket` is the number of the socket that all of its CPUs are in; None if there is none.
    """

    number: int
    cpus: frozenset[int]
    memory_bytes: int
    used_bytes: int
    huge_pages: tuple[HugePages, ...] = ()
    socket: int | None = None

    @property
    def pool(self) -> str:
        """The name of the pool that reports this node."""
        return f"numa{self.number}"


def read_nodes(sys: Path = SYS) -> list[NumaNode]:
    """Return the nodes in order; an empty list if the kernel lists none."""
    folders = (sys / "devices/system/node").glob("node[0-9]*")
    nodes = (_read(int(folder.name.removeprefix("node")), folder) for folder in folders)
    return sorted(nodes, key=lambda node: node.number)


def _read(number: int, folder: Path) -> NumaNode:
    memory, pages = _meminfo(folder), _huge_pages(folder)
    in_pages = sum(one.size_kb * one.total for one in pages) * KIB
    # meminfo counts all huge pages as used. They have their own class, so exclude them from both numbers.
    total = max(0, memory.get("MemTotal", 0) - in_pages)
    free = memory.get("MemFree", 0) + sum(memory.get(name, 0) for name in _CACHES)
    cpus = parse_cpus(read_text(folder / "cpulist"))
    return NumaNode(number, cpus, total, max(0, total - free), pages, _socket(folder.parent.parent / "cpu", cpus))


def _huge_pages(node: Path) -> tuple[HugePages, ...]:
    """Return the huge pages of a node's directory, smallest size first; sizes without pages are omitted."""
    found = (_read_pages(folder) for folder in (node / "hugepages").glob("hugepages-*kB"))
    return tuple(sorted((pages for pages in found if pages.total), key=lambda pages: pages.size_kb))


def _read_pages(folder: Path) -> HugePages:
    size_kb = int(folder.name.removeprefix("hugepages-").removesuffix("kB"))
    return HugePages(size_kb, read_number(folder / "nr_hugepages"), read_number(folder / "free_hugepages"))


def _socket(folder: Path, cpus: Iterable[int]) -> int | None:
    found = {read_text(folder / f"cpu{cpu}/topology/physical_package_id") for cpu in cpus}
    [text] = found if len(found) == 1 else [""]
    return int(text) if text.isdecimal() else None


def _meminfo(folder: Path) -> Mapping[str, int]:
    """Return the node's meminfo, in bytes by name."""
    lines = read_text(folder / "meminfo").splitlines()
    return {found[1]: int(found[2]) * KIB for line in lines if (found := _LINE.match(line))}
