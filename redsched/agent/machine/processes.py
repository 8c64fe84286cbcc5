"""Check whether the processes and cgroups that a hook named still exist.

Those that cannot be read count as existing: work must not be stopped because a file could not be opened.
"""

import errno
import os
from functools import cache
from pathlib import Path

from redsched.agent.machine.usage import CGROUPS, cgroup_path, cgroup_pids

PROC = Path("/proc")
_STATE, _THREADS, _START_TICKS = 0, 17, 19
"""Fields 3, 20 and 22 of /proc/<pid>/stat, counted after the command's name."""
_DEAD = frozenset("ZXx")
_ABSENT = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV))


def start_mark(pid: int) -> str:
    """Return the boot and the clock tick at which a process started; '' if there is no such process.

    Unlike the wall-clock start time, this does not change when the clock is set. The boot id distinguishes processes
    that had the same pid and tick before a reboot.
    """
    stat = _stat(pid)
    return f"{_boot_id()}:{stat[_START_TICKS]}" if stat else ""


def is_running(pid: int, mark: str) -> bool:
    """Return whether the process with this pid and start mark is running."""
    stat = _stat(pid)
    if stat is None:
        return _exists(pid)
    # A thread group leader that has ended stays as a zombie while other threads of its process run.
    has_ended = stat[_STATE] in _DEAD and int(stat[_THREADS]) <= 1
    return not has_ended and mark == f"{_boot_id()}:{stat[_START_TICKS]}"


def is_populated(cgroup: str, root: Path = CGROUPS) -> bool:
    """Return whether a cgroup or one below it has a process. True if this machine has no cgroup hierarchy at all."""
    if not root.is_dir():
        return True
    try:
        events = (cgroup_path(cgroup, root) / "cgroup.events").read_text()
    except OSError as error:
        return error.errno not in _ABSENT or bool(cgroup_pids(cgroup, root))
    return "populated 0" not in events.splitlines()


def _stat(pid: int) -> list[str] | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name may hold spaces and parentheses; the last one ends it.
    return text.rpartition(")")[2].split()


def _exists(pid: int) -> bool:
    """Return whether a process exists that /proc does not show: it may be another user's, and hidden."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@cache
def _boot_id() -> str:
    try:
        return (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()[:8]
    except OSError:
        return ""
