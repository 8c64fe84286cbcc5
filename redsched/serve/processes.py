"""Child processes of the command line: forks of it, which end when it does.

A fork shares the modules that its parent has imported. So it starts in a tenth of a second, where importing takes one
or two, and the processes of a machine have most of their code in memory once.

`multiprocessing` is not used: it waits for lost children when the parent exits, and leaves them the parent's input.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from redsched.forks import detach, signals_held_back

STOP_TIMEOUT_S = 10.0
_PAUSE_S = 0.01


class ChildProcess:
    """A fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        if self._exit_code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # this process ignores SIGCHLD, so the kernel keeps no exit codes
                self._exit_code = 0
            else:
                self._exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self._exit_code

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.exit_code is None:
            os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> int | None:
        """Wait until it has ended, and return its exit code; None if it still runs after `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        while self.exit_code is None and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
        return self.exit_code


def start(
    name: str, main: Callable[[], int], environment: Mapping[str, str], started: Callable[[ChildProcess], None]
) -> None:
    """Run `main` in a fork of this process, with `environment` added to its own; the fork exits with what it returns.

    `name` is shown by `ps` and `top`, up to 15 characters. `started` gets the child before any signal is handled, so
    that a handler that raises loses no child.
    """
    parent = os.getpid()
    with signals_held_back():
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or the child would write the same again
        pid = os.fork()
        if pid == 0:
            _run(name, main, environment, parent)
        started(ChildProcess(pid))


def stop(children: Sequence[ChildProcess]) -> None:
    """Terminate all children concurrently, and kill those that take longer than STOP_TIMEOUT_S."""
    for child in children:
        child.send(signal.SIGTERM)
    for child in children:
        if child.wait(STOP_TIMEOUT_S) is None:
            child.send(signal.SIGKILL)
            child.wait(STOP_TIMEOUT_S)


def _run(name: str, main: Callable[[], int], environment: Mapping[str, str], parent: int) -> NoReturn:
    """Make the fork a process of its own, run `main`, and exit."""
    exit_code = 1
    try:
        detach(name, parent)
        os.environ.update(environment)
        exit_code = main()
    except BaseException:  # nothing of the parent's stack may run in the child
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
