"""Running the command line on a terminal of a given width."""

import fcntl
import os
import pty
import select
import struct
import termios
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.cli import warm

COLUMNS = 80


def lines_of(
    store: str,
    *arguments: str,
    fails: bool = False,
    until: bytes = b"",
    columns: int = COLUMNS,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the lines, of any length, that a command prints on a terminal, without trailing spaces.

    `until`: the last output to wait for, if the command does not end by itself.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables |= {"REDSCHED_REDIS_URL": store, "TERM": "dumb", **(environment or {})}
    process = warm.begin(arguments, variables, Path(os.ttyname(its)), Path(os.devnull))
    shown = _read(ours, process, until)
    process.join()
    assert (process.exitcode != 0) == fails, (process.exitcode, shown)
    os.close(ours)
    os.close(its)
    return [line.rstrip() for line in shown.decode().splitlines()]


def _read(ours: int, process: ForkServerProcess, until: bytes) -> bytes:
    """Return what a command writes before it ends; end it as soon as it has written `until`, if that is not empty."""
    shown, waiting = b"", bool(until)
    while ours in select.select([ours, process.sentinel], [], [])[0]:
        shown += os.read(ours, 65_536)
        if waiting and until in shown:
            process.terminate()
            waiting = False  # a second signal would end it at once
    return shown
