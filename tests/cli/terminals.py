"""Running the command line on a terminal of a given width."""

import fcntl
import os
import pty
import select
import struct
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.cli import in_process, warm

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
    if until:
        exit_code, shown = _until(ours, its, arguments, variables, until)
    else:
        exit_code, shown = _in_process(ours, its, arguments, variables)
    os.close(ours)
    os.close(its)
    assert (exit_code != 0) == fails, (exit_code, shown)
    return [line.rstrip() for line in shown.decode().splitlines()]


def _in_process(ours: int, its: int, arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a command that ends by itself; return its exit code and what it wrote."""
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(in_process.run, arguments, variables, Path(os.ttyname(its)), Path(os.devnull))
        shown = b""
        while not ended.done() or select.select([ours], [], [], 0)[0]:
            if select.select([ours], [], [], 0.002)[0]:
                shown += os.read(ours, 65_536)
        return ended.result(), shown


def _until(
    ours: int, its: int, arguments: Sequence[str], variables: Mapping[str, str], until: bytes
) -> tuple[int | None, bytes]:
    """Run a command in a process of its own until it has written `until`; return its exit code and what it wrote."""
    process = warm.begin(arguments, variables, Path(os.ttyname(its)), Path(os.devnull))
    shown = _read(ours, process, until)
    process.join()
    return process.exitcode, shown


def _read(ours: int, process: ForkServerProcess, until: bytes) -> bytes:
    """Return what a command writes before it ends; end it as soon as it has written `until`."""
    shown, waiting = b"", True
    while ours in select.select([ours, process.sentinel], [], [])[0]:
        shown += os.read(ours, 65_536)
        if waiting and until in shown:
            process.terminate()
            waiting = False  # a second signal would end it at once
    return shown
