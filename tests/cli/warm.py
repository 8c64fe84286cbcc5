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
from tempfile import TemporaryDirectory

from redsched.cli import main
from tests.support.processes.forks import FORKS

LONGEST_S = 60


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run `redsched` to its end; return its exit code, output and errors. Raises TimeoutExpired."""
    with TemporaryDirectory() as folder:
        written = Path(folder, "output"), Path(folder, "errors")
        exit_code = _run(arguments, environment, *written)
        output, errors = (one.read_text() for one in written)
        return exit_code, output, errors


def run_on(terminal: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Run `redsched` to its end on a terminal such as `/dev/pts/3`, in a folder; return its exit code."""
    return _run(arguments, environment, Path(terminal), Path(terminal), folder)


def begin(
    arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path, folder: Path | None = None
) -> ForkServerProcess:
    """Start `redsched` with its outputs in two files."""
    process = FORKS.Process(target=_command, args=(arguments, dict(environment), output, errors, folder))
    process.start()
    return process


def _run(
    arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path, folder: Path | None = None
) -> int:
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
    arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path, folder: Path | None
) -> None:
    if folder:
        os.chdir(folder)
    for path, number in ((output, 1), (errors, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY)
        os.dup2(file, number)
        os.close(file)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))  # as in a new process
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["redsched", *arguments]
    main()
