"""Commands that run in the process of the test, because starting a process takes longer than most commands.

A command has its own environment, folder and outputs here, as in a process. What differs, and so is tested with a real
process (tests.cli.parts.running): signals, the end of the process, and whatever writes to its file descriptors.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from io import TextIOWrapper
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TextIO
from unittest.mock import patch

from redsched.cli import fleet
from redsched.cli.main import run as run_command
from tests.support.waiting import patience_s

LONGEST_S = patience_s(60)
_ONE_AT_A_TIME = Lock()
"""The environment and the folder belong to the whole process."""
_OUTPUTS: ContextVar[tuple[TextIO, TextIO] | None] = ContextVar("_OUTPUTS", default=None)
"""The outputs of the command that runs in this context: its tasks, and what it calls with `asyncio.to_thread`."""


class _Output:
    """Stands for sys.stdout or sys.stderr: what a command writes goes to its own output, all else where it went."""

    def __init__(self, number: int, otherwise: TextIO) -> None:
        self._number, self._otherwise = number, otherwise

    def __getattr__(self, name: str) -> Any:
        outputs = _OUTPUTS.get()
        return getattr(outputs[self._number] if outputs else self._otherwise, name)


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
    folder: Path | None = None,
) -> int:
    """Run `redsched` with its outputs in two files or on a terminal, and return its exit code."""
    with (
        _ONE_AT_A_TIME,
        _opened(output) as out,
        _opened(errors) as err,
        _surroundings(environment, folder),
        _redirected(),
        patch.object(fleet, "gc"),  # a command freezes all objects, and here those of earlier tests too
    ):
        return _in_thread(arguments, (out, err))


@contextmanager
def _redirected() -> Iterator[None]:
    """Make the outputs of this process those of the command, for the command; its input is empty."""
    names = ("stdin", "stdout", "stderr", "__stdout__")  # the last one is asked for the size of its terminal
    before = {name: getattr(sys, name) for name in names}
    with open(os.devnull) as nothing:
        sys.stdin = nothing
        sys.stdout = sys.__stdout__ = _Output(0, before["stdout"])  # type: ignore[assignment, misc]
        sys.stderr = _Output(1, before["stderr"])
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(sys, name, value)


def _in_thread(arguments: Sequence[str], outputs: tuple[TextIO, TextIO]) -> int:
    """Run the command in a thread, because the test's own may have a running loop."""
    ended: list[int | BaseException] = []

    def command() -> None:
        _OUTPUTS.set(outputs)
        try:
            ended.append(run_command(arguments))
        except BaseException as error:  # raised again in the test
            ended.append(error)

    thread = Thread(target=copy_context().run, args=(command,), daemon=True)
    thread.start()
    thread.join(LONGEST_S)
    if not ended:
        raise TimeoutError(f"redsched {' '.join(arguments)} still ran after {LONGEST_S:g} s")
    if isinstance(ended[0], SystemExit):
        return ended[0].code if isinstance(ended[0].code, int) else int(ended[0].code is not None)
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open an output: a file, or a terminal, which buffers lines as in a new process."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY)
    with TextIOWrapper(os.fdopen(number, "wb"), encoding="utf-8", line_buffering=os.isatty(number)) as opened:
        yield opened


@contextmanager
def _surroundings(environment: Mapping[str, str], folder: Path | None) -> Iterator[None]:
    """Give this process an environment and a folder, until the block ends."""
    variables, here = dict(os.environ), Path.cwd() if folder else None
    os.environ.clear()
    os.environ.update(environment)
    if folder:
        os.chdir(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        if here:
            os.chdir(here)
