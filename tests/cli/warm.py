"""Processes for commands, forked from one that has imported redsched (`tests.support.forks`).

What a command does in such a process is what it does in one of its own: it has its own environment, its own two outputs
and its own end. That `python -m redsched.cli` comes up from nothing is shown by what starts it so: test_up.py,
test_events.py, test_commands.py.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory

from redsched.cli import main
from tests.support.forks import FORKS

LONGEST_S = 60


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run `redsched` to its end; its exit code, output and errors. Raises TimeoutExpired."""
    with TemporaryDirectory() as folder:
        written = Path(folder, "output"), Path(folder, "errors")
        process = FORKS.Process(target=_command, args=(arguments, dict(environment), *written))
        process.start()
        process.join(LONGEST_S)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired(["redsched", *arguments], LONGEST_S)
        exit_code = process.exitcode
        process.close()
        output, errors = (one.read_text() for one in written)
        return exit_code, output, errors


def _command(arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path) -> None:
    for path, number in ((output, 1), (errors, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["redsched", *arguments]
    main()
