"""Processes that a run has left behind, found by a mark in their environment that all its descendants inherit."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

MARK = "REDSCHED_FAULTS_RUN"
PROC = Path("/proc")


@contextmanager
def marked() -> Iterator[str]:
    """Mark all processes that are started within the block; yield the mark."""
    mark, before = uuid4().hex, os.environ.get(MARK)
    os.environ[MARK] = mark
    try:
        yield mark
    finally:
        os.environ.pop(MARK)
        if before is not None:
            os.environ[MARK] = before


def left_over(mark: str) -> dict[int, str]:
    """Return the command lines of the processes with this mark, by their ids. Empty where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # it has ended, or belongs to another user
    found.pop(os.getpid(), None)
    return found


def end_left_over(mark: str) -> list[str]:
    """End those processes by their ids, and return a description of them."""
    found = left_over(mark)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return [f"process {pid} was left over, and has been killed: {command}" for pid, command in found.items()]
