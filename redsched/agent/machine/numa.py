"""The NUMA nodes of this machine, as the kernel lists them below /sys: CPUs, memory, huge pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.cpu_list import parse_cpus
from redsched.agent.machine.huge_pages import HugePages, read_huge_pages
from redsched.agent.machine.sysfs import SYS, read_text

KIB = 1024

_LINE = re.compile(r"^Node \d+ ([^:]+):\s+(\d+)")
_CACHES = ("Active(file)", "Inactive(file)", "SReclaimable")
"""What the kernel gives back when memory is short, as it also counts it in MemAvailable of the whole machine."""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One node: its CPUs that are online, its memory without the huge pages, and what of that cannot be had."""

    number: int
    cpus: frozenset[int]
    memory_bytes: int
    used_bytes: int
    huge_pages: tuple[HugePages, ...] = ()

    @property
    def pool(self) -> str:
        """The pool that it is reported as."""
        return f"numa{self.number}"


def read_nodes(sys: Path = SYS) -> list[NumaNode]:
    """Return the nodes in order; none where the kernel knows of none."""
    folders = (sys / "devices/system/node").glob("node[0-9]*")
    nodes = (_read(int(folder.name.removeprefix("node")), folder) for folder in folders)
    return sorted(nodes, key=lambda node: node.number)


def _read(number: int, folder: Path) -> NumaNode:
    memory, pages = _meminfo(folder), read_huge_pages(folder)
    in_pages = sum(one.size_kb * one.total for one in pages) * KIB
    # Huge pages count as used here, whoever has them: they are a class of their own, and are in neither number.
    total = max(0, memory.get("MemTotal", 0) - in_pages)
    free = memory.get("MemFree", 0) + sum(memory.get(name, 0) for name in _CACHES)
    return NumaNode(number, parse_cpus(read_text(folder / "cpulist")), total, max(0, total - free), pages)


def _meminfo(folder: Path) -> Mapping[str, int]:
    """The node's meminfo, in bytes."""
    lines = read_text(folder / "meminfo").splitlines()
    return {found[1]: int(found[2]) * KIB for line in lines if (found := _LINE.match(line))}
