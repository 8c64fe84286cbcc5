"""Measure the memory and huge pages that the work of claims uses on each NUMA node.

Usage of processes is read from /proc/<pid>/numa_maps, that of cgroups from their numa_stat files. Page cache is
omitted: the kernel reclaims it, and it does not count as used on a node either.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.sysfs import read_text
from redsched.agent.machine.usage import CGROUPS, Usage, cgroup_path

PROC = Path("/proc")
KIB = 1024

_SHARED = ("/memfd:", "/dev/zero", "/dev/shm/", "/SYSV")
"""File names of mappings that count as memory. Other mappings with a file name are page cache."""

_SIZE = re.compile(r"hugetlb\.(\d+)([KMG])B\.numa_stat\Z")
_UNITS_KB = {"K": 1, "M": KIB, "G": KIB * KIB}


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Usage by the work of claims: bytes of memory by node, and huge pages by node and size in KB.

    `knows_memory` and `knows_pages` are False if the usage of some of that work is not known by node.
    """

    memory_bytes: Mapping[int, int]
    huge_pages: Mapping[tuple[int, int], int]
    knows_memory: bool
    knows_pages: bool


def measure_by_node(usage: Usage, proc: Path = PROC, cgroups: Path = CGROUPS) -> NodeUsage:
    """Return the memory and huge pages of `usage` by node."""
    memory, pages = Counter[int](), Counter[tuple[int, int]]()
    reads_maps = all(_add_process(proc / str(pid) / "numa_maps", memory, pages) for pid in usage.pids)
    knows_memory = all(_add_cgroup_memory(group, cgroups, memory) for group in usage.cgroups)
    knows_pages = all(_add_cgroup_pages(group, cgroups, pages) for group in usage.cgroups)
    is_complete = usage.complete and reads_maps
    return NodeUsage(memory, pages, is_complete and knows_memory, is_complete and knows_pages)


def _add_process(maps: Path, memory: Counter[int], pages: Counter[tuple[int, int]]) -> bool:
    """Add a process' pages. Return False if they may not be read; a process that has ended has none."""
    try:
        lines = maps.read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return not maps.parent.is_dir()
    except OSError:
        return False
    for line in lines:
        _add_mapping(line.split(), memory, pages)
    return True


def _add_mapping(fields: list[str], memory: Counter[int], pages: Counter[tuple[int, int]]) -> None:
    values = _pairs(fields)
    size_kb = int(values.get("kernelpagesize_kB", 4))
    # Each process counts a shared page, so it is divided by the sharers: the sum never exceeds the real usage.
    sharers = max(1, int(values.get("mapmax", 1)))
    if "huge" in fields:
        pages.update({(node, size_kb): count // sharers for node, count in _by_node(values)})
    elif "file" not in values or values["file"].startswith(_SHARED):
        memory.update({node: count * size_kb * KIB // sharers for node, count in _by_node(values)})


def _add_cgroup_memory(cgroup: str, root: Path, memory: Counter[int]) -> bool:
    """Add a cgroup's memory: v2 reports bytes, v1 pages, with shared memory among the anonymous ones.

    Return False if the cgroup has no statistics.
    """
    path, names, unit = cgroup_path(cgroup, root) / "memory.numa_stat", {"anon", "shmem"}, 1
    if not path.is_file():
        path, names = cgroup_path(cgroup, root / "memory") / "memory.numa_stat", {"hierarchical_anon"}
        unit = os.sysconf("SC_PAGE_SIZE")
    for name, values in _numa_stat(path):
        if name in names:
            memory.update({node: count * unit for node, count in _by_node(values)})
    return path.is_file()


def _add_cgroup_pages(cgroup: str, root: Path, pages: Counter[tuple[int, int]]) -> bool:
    """Add a cgroup's huge pages, v2 or v1. Return False if the hugetlb controller is not enabled."""
    found = list(cgroup_path(cgroup, root).glob("hugetlb.*.numa_stat")) or list(
        cgroup_path(cgroup, root / "hugetlb").glob("hugetlb.*.numa_stat")
    )
    for path in found:
        if size := _SIZE.match(path.name):
            size_kb = int(size[1]) * _UNITS_KB[size[2]]
            stat = dict(_numa_stat(path))
            values = stat.get("hierarchical_total") or stat.get("total") or {}
            pages.update({(node, size_kb): count // (size_kb * KIB) for node, count in _by_node(values)})
    return bool(found)


def _numa_stat(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the lines of a numa_stat file: `anon N0=4096 N1=0`, or `hierarchical_anon=12 N0=12` in v1."""
    for name, *fields in (line.split() for line in read_text(path).splitlines() if line):
        yield name.partition("=")[0], _pairs(fields)


def _pairs(fields: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in fields if "=" in word)


def _by_node(values: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Yield the values of N0, N1, ... by node number."""
    for name, value in values.items():
        if name[:1] == "N" and name[1:].isdecimal() and value.isdecimal():
            yield int(name[1:]), int(value)
