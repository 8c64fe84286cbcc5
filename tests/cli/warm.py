"""Processes for commands, forked from one that has imported redsched (`tests.support.processes.forks`).

A command behaves in such a process as in a new one: it has its own environment, its own two outputs and its own exit.
test_up.py, test_events.py and test_commands.py start `python -m redsched.cli` itself too, and so show that it works.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import TimeoutExpired

from redsched.cli import main
from tests.support.processes.forks import FORKS

LONGEST_S = 60


def begin(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
    folder: Path | None = None,
    typed: Path | None = None,
) -> ForkServerProcess:
    """Start `redsched` with its outputs in two files. `typed`: the terminal that it reads, or None for no input."""
    process = FORKS.Process(target=_command, args=(arguments, dict(environment), output, errors, folder, typed))
    process.start()
    return process


def run(
    arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path, folder: Path | None = None
) -> int:
    """Run `redsched` to its end; return its exit code. Raises TimeoutExpired."""
    process = begin(arguments, environment, output, errors, folder)
    process.join(LONGEST_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutExpired(["redsched", *arguments], LONGEST_S)
    exit_code = process.exitcode
    process.close()
    return exit_code


def _command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path,
    folder: Path | None,
    typed: Path | None,
) -> None:
    if folder:
        os.chdir(folder)
    for path, number in ((typed, 0), (output, 1), (errors, 2)):
        if path is not None:
            file = os.open(path, (os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY) | os.O_NOCTTY)
            os.dup2(file, number)
            os.close(file)
    if typed is not None:
        sys.stdin = sys.__stdin__ = os.fdopen(0)  # type: ignore[misc]  # the fork server's is closed
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))  # as in a new process
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["redsched", *arguments]
    main()
