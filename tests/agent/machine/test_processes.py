"""Whether processes and cgroups still exist: reused pids, zombies, and what cannot be read."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redsched.agent.machine import processes
from redsched.agent.machine.processes import is_populated, is_running, start_mark

NO_PID = 999_999_999


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a process that only sleeps."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_process_runs_until_it_is_killed_though_nobody_has_reaped_it(sleeper: "subprocess.Popen[bytes]") -> None:
    mark = start_mark(sleeper.pid)
    assert is_running(sleeper.pid, mark)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert (processes._stat(sleeper.pid) or [""])[0] == "Z", "the zombie is still there"
    assert not is_running(sleeper.pid, mark)


def test_a_reused_pid_is_distinguished_by_its_start(sleeper: "subprocess.Popen[bytes]") -> None:
    boot, _, tick = start_mark(sleeper.pid).partition(":")
    assert not is_running(sleeper.pid, f"{boot}:{int(tick) + 1}"), "another process of the same pid"
    assert not is_running(sleeper.pid, f"{'0' * len(boot)}:{tick}"), "of another boot"


def test_what_never_ran_does_not_run() -> None:
    assert start_mark(NO_PID) == ""
    assert not is_running(NO_PID, "")


def test_a_mark_does_not_hang_on_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """psutil's start time does depend on it, and changes when the clock is set."""
    mark = start_mark(os.getpid())
    monkeypatch.setattr("psutil.boot_time", lambda: 0.0)
    assert start_mark(os.getpid()) == mark
    assert is_running(os.getpid(), mark)


def test_a_process_that_proc_does_not_show_runs_as_long_as_it_can_be_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /proc is mounted with hidepid, it does not show the processes of other users."""
    monkeypatch.setattr(processes, "PROC", tmp_path)
    assert is_running(os.getpid(), "1:2")
    assert not is_running(NO_PID, "1:2")


def test_a_leader_that_has_ended_before_its_threads_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    for threads, runs in ((2, True), (1, False)):
        stat = ["Z", *"0" * 16, str(threads), "0", "77"]
        (tmp_path / "42").mkdir(exist_ok=True)
        (tmp_path / "42" / "stat").write_text(f"42 (a (strange) name) {' '.join(stat)}")
        mark = start_mark(42)
        assert mark.endswith(":77")
        assert is_running(42, mark) is runs


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.slice/cgroup.events": "populated 1\nfrozen 0\n"}, True),
        ({"a.slice/cgroup.events": "populated 0\nfrozen 0\n"}, False),
        ({"b.slice/cgroup.events": "populated 1\n"}, False),
        ({"memory/a.slice/cgroup.procs": "", "memory/a.slice/below/cgroup.procs": "7\n"}, True),
        ({"memory/a.slice/cgroup.procs": ""}, False),
    ],
    ids=["populated", "empty", "not there", "v1", "v1 empty"],
)
def test_a_cgroup_is_there_while_a_process_is_in_it(tmp_path: Path, files: dict[str, str], expected: bool) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for cgroup in ("a.slice", "/a.slice", "/sys/fs/cgroup/a.slice"):
        assert is_populated(cgroup, tmp_path) is expected


def test_a_cgroup_that_cannot_be_seen_counts_as_there(tmp_path: Path) -> None:
    """There may be no cgroup file system, or a file that cannot be opened, for which a directory stands in here."""
    assert is_populated("a.slice", tmp_path / "absent")
    (tmp_path / "a.slice" / "cgroup.events").mkdir(parents=True)
    assert is_populated("a.slice", tmp_path)
