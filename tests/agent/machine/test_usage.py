"""The usage of claims' work, measured on real processes and on files like the kernel's."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redsched.agent.collectors.base import Named, Work
from redsched.agent.machine.usage import cgroup_cpu_s, cgroup_memory_bytes, cgroup_pids, measure, start_time

MIB = 2**20
HOLD = "import sys; held = bytearray(int(sys.argv[1])); held[::4096] = b'x' * len(held[::4096]); print(flush=True); {}"
WAIT = "sys.stdin.read()"
CHILD = "import subprocess; subprocess.run([sys.executable, '-c', sys.argv[2], *sys.argv[3:]], check=True)"

Holder = Callable[..., int]


@pytest.fixture
def hold() -> Iterator[Holder]:
    """Start a real process that holds `mib` MiB, in itself or in a child of its own; return its pid."""
    started: list[subprocess.Popen[bytes]] = []

    def start(mib: int, in_child: bool = False) -> int:
        code, size = HOLD.format(WAIT), str(mib * MIB)
        arguments = [HOLD.format(CHILD), "1", code, size] if in_child else [code, size]
        process = subprocess.Popen(
            [sys.executable, "-c", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        for _ in range(2 if in_child else 1):
            assert process.stdout is not None
            process.stdout.readline()
        return process.pid

    yield start
    for process in started:
        process.communicate(b"")


def named(pid: int) -> Named:
    started = start_time(pid)
    assert started is not None
    return Named(pids={pid: started})


def test_the_memory_of_named_processes_is_measured(hold: Holder) -> None:
    usage = measure([Work("a", named(hold(60)))])
    assert 60 * MIB <= usage.memory_bytes < 90 * MIB
    assert usage.complete


def test_the_children_of_a_named_process_count(hold: Holder) -> None:
    usage = measure([Work("a", named(hold(60, in_child=True)))])
    assert 60 * MIB <= usage.memory_bytes < 110 * MIB


def test_a_process_named_by_two_claims_counts_once(hold: Holder) -> None:
    one = named(hold(60))
    assert measure([Work("a", one), Work("b", one)]).memory_bytes < 90 * MIB


def test_a_pid_that_another_process_got_since_does_not_count(hold: Holder) -> None:
    pid = hold(60)
    earlier = Named(pids={pid: named(pid).pids[pid] - 5})
    assert measure([Work("a", earlier)]).memory_bytes == 0


def test_work_that_has_ended_uses_nothing_and_is_accounted_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    gone = named(process.pid) if start_time(process.pid) else Named(pids={process.pid: 1.0})
    process.wait()
    assert measure([Work("a", gone)]).memory_bytes == 0
    assert start_time(process.pid) is None


@pytest.mark.parametrize("unnamed", [None, Named(), Named(domain="vm-7")])
def test_work_that_is_not_named_makes_the_measurement_incomplete(unnamed: Named | None) -> None:
    assert not measure([Work("a", named(os.getpid())), Work("b", unnamed)]).complete


def test_no_claims_are_completely_measured() -> None:
    usage = measure([])
    assert (usage.memory_bytes, usage.cpu_s, usage.complete) == (0, 0.0, True)


def test_a_cgroup_of_version_2_is_read(tmp_path: Path) -> None:
    group = tmp_path / "jobs" / "a"
    group.mkdir(parents=True)
    (group / "memory.stat").write_text("anon 1000\nfile 9000\nshmem 24\n")
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    for name in ("jobs/a", "/jobs/a", "/sys/fs/cgroup/jobs/a"):
        assert cgroup_memory_bytes(name, tmp_path) == 1024
    assert cgroup_cpu_s("jobs/a", tmp_path) == 2.5
    usage = measure([Work("a", Named(cgroup="jobs/a")), Work("b", Named(cgroup="jobs/a"))], tmp_path)
    assert (usage.memory_bytes, usage.complete) == (1024, True)


def test_a_cgroup_of_version_1_is_read(tmp_path: Path) -> None:
    for controller, file, text in (
        ("memory", "memory.stat", "total_rss 500\ntotal_shmem 1\ncache 9\n"),
        ("cpuacct", "cpuacct.usage", "3000000000\n"),
    ):
        (tmp_path / controller / "a").mkdir(parents=True)
        (tmp_path / controller / "a" / file).write_text(text)
    assert cgroup_memory_bytes("a", tmp_path) == 501
    assert cgroup_cpu_s("a", tmp_path) == 3.0


def test_a_cgroup_that_is_gone_uses_nothing(tmp_path: Path) -> None:
    assert cgroup_memory_bytes("absent", tmp_path) == 0
    assert cgroup_cpu_s("absent", tmp_path) == 0.0


@pytest.mark.parametrize("base", [".", "memory"])
def test_the_processes_of_a_cgroup_are_those_below_it_too(tmp_path: Path, base: str) -> None:
    """This holds for the directories of cgroup v2 and of v1."""
    for folder, pids in {"job": "", "job/main": "7\n8\n", "job/helper/deep": "9\n", "other": "10\n"}.items():
        (tmp_path / base / folder).mkdir(parents=True)
        (tmp_path / base / folder / "cgroup.procs").write_text(pids)
    assert cgroup_pids("/sys/fs/cgroup/job", tmp_path) == {7, 8, 9}
    assert cgroup_pids("gone", tmp_path) == frozenset()


def test_a_measurement_names_the_processes_and_cgroups_that_it_looked_at(hold: Holder) -> None:
    pid = hold(1, in_child=True)
    usage = measure([Work("a", named(pid)), Work("b", Named(cgroup="job"))])
    assert pid in usage.pids
    assert len(usage.pids) == 2, "its child too"
    assert usage.cgroups == {"job"}
