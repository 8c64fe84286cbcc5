"""The memory of claims' work by NUMA node, read from real processes and from files like the kernel's."""

import os
from pathlib import Path

import pytest

from redsched.agent.machine.numa_usage import NodeUsage, measure_by_node
from redsched.agent.machine.usage import Usage

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20

MAPS = """\
55d0 default heap anon=100 dirty=100 N0=60 N1=40 kernelpagesize_kB=4
7f00 default file=/usr/lib/libc.so.6 mapped=300 mapmax=9 N0=300 kernelpagesize_kB=4
7f10 bind:1 file=/memfd:ram\\040(deleted) dirty=512 N1=512 kernelpagesize_kB=4
7f20 default anon=10 dirty=10 mapmax=2 N0=10 kernelpagesize_kB=4
7f30 default file=/dev/hugepages/guest huge dirty=7 N0=3 N1=4 kernelpagesize_kB=2048
7f40 default file=/anon_hugepage\\040(deleted) huge dirty=1 N1=1 kernelpagesize_kB=1048576
7f50 default file=/dev/hugepages/shared huge mapmax=2 N0=4 kernelpagesize_kB=2048
7ffc default stack
"""


def using(pids: set[int] = frozenset(), cgroups: set[str] = frozenset(), complete: bool = True) -> Usage:  # type: ignore[assignment]
    return Usage(0, 0.0, complete, frozenset(cgroups), frozenset(pids))


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_pages_of_processes_are_counted_by_node_and_size(tmp_path: Path) -> None:
    """Page cache does not count; shared pages are divided by the number of processes that share them."""
    write(tmp_path, "7/numa_maps", MAPS)
    write(tmp_path, "8/numa_maps", "1 default anon=1 N1=1 kernelpagesize_kB=4\n")
    used = measure_by_node(using({7, 8}), proc=tmp_path)
    assert used.memory_bytes == {0: (60 + 5) * 4096, 1: (40 + 512 + 1) * 4096}
    assert used.huge_pages == {(0, 2048): 3 + 2, (1, 2048): 4, (1, 1048576): 1}
    assert (used.knows_memory, used.knows_pages) == (True, True)


def test_a_process_that_has_ended_has_nothing_and_one_that_may_not_be_read_is_unknown(tmp_path: Path) -> None:
    assert measure_by_node(using({7}), proc=tmp_path) == NodeUsage({}, {}, True, True)
    (tmp_path / "7" / "numa_maps").mkdir(parents=True)  # reading a directory fails for every user
    used = measure_by_node(using({7}), proc=tmp_path)
    assert (used.knows_memory, used.knows_pages) == (False, False)


def test_a_kernel_without_these_maps_tells_nothing_of_a_process_that_runs(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    assert not measure_by_node(using({7}), proc=tmp_path).knows_memory


def test_work_that_nobody_named_is_unknown(tmp_path: Path) -> None:
    used = measure_by_node(using(complete=False), proc=tmp_path)
    assert (used.knows_memory, used.knows_pages) == (False, False)


@pytest.mark.parametrize("is_v2", [True, False])
def test_a_cgroup_tells_its_memory_and_its_huge_pages(tmp_path: Path, is_v2: bool) -> None:
    if is_v2:
        write(tmp_path, "job/memory.numa_stat", f"anon N0={MIB} N1=0\nfile N0=999999 N1=5\nshmem N0=0 N1={2 * MIB}\n")
        write(tmp_path, "job/hugetlb.2MB.numa_stat", f"total={6 * MIB} N0={4 * MIB} N1={2 * MIB}\n")
        write(tmp_path, "job/hugetlb.1GB.numa_stat", "total=0 N0=0 N1=0\n")
    else:
        pages = MIB // PAGE
        lines = f"anon=1 N0=1 N1=0\nfile=5 N0=5 N1=0\nhierarchical_anon={3 * pages} N0={pages} N1={2 * pages}\n"
        write(tmp_path, "memory/job/memory.numa_stat", lines)
        stat = f"total=0 N0=0 N1=0\nhierarchical_total={6 * MIB} N0={4 * MIB} N1={2 * MIB}\n"
        write(tmp_path, "hugetlb/job/hugetlb.2MB.numa_stat", stat)
    used = measure_by_node(using(cgroups={"/sys/fs/cgroup/job"}), cgroups=tmp_path)
    assert used.memory_bytes == {0: MIB, 1: 2 * MIB}
    assert {key: count for key, count in used.huge_pages.items() if count} == {(0, 2048): 2, (1, 2048): 1}
    assert (used.knows_memory, used.knows_pages) == (True, True)


def test_without_its_controller_the_huge_pages_of_a_cgroup_are_unknown(tmp_path: Path) -> None:
    write(tmp_path, "job/memory.numa_stat", "anon N0=4096\nshmem N0=0\n")
    used = measure_by_node(using(cgroups={"job"}), cgroups=tmp_path)
    assert (used.knows_memory, used.knows_pages) == (True, False)
    assert not measure_by_node(using(cgroups={"gone"}), cgroups=tmp_path).knows_memory


@pytest.mark.skipif(not Path("/proc/self/numa_maps").exists(), reason="this kernel has no numa_maps")
def test_the_memory_of_a_real_process_is_found() -> None:
    held = bytearray(50 * MIB)
    held[::PAGE] = b"x" * len(held[::PAGE])
    used = measure_by_node(using({os.getpid()}))
    assert sum(used.memory_bytes.values()) >= len(held)
    assert used.knows_memory
