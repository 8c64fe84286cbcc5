"""Child processes of the command line: forks of it, which end when it does.

A fork shares the modules that its parent has imported. So it starts in a tenth of a second, where importing takes one
or two, and the processes of a machine have most of their code in memory once.

Linux signals a child when its parent dies (PR_SET_PDEATHSIG), even by SIGKILL. The parent in this sense is the *thread*
that started the child, so start children from the main thread. On other systems children end only with a parent that
exits in an orderly way.

`multiprocessing` is not used: it waits for lost children when the parent exits, and leaves them the parent's input.
"""

import ctypes
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

STOP_TIMEOUT_S = 10.0
_PAUSE_S = 0.01
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    with _signals_held_back():
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
        _detach(name, parent)
        os.environ.update(environment)
        exit_code = main()
    except BaseException:  # nothing of the parent's stack may run in the child
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _detach(name: str, parent: int) -> None:
    gc.freeze()  # a collection would write to, and so copy, the memory that it shares with its parent
    # A session of its own: Ctrl-C in the terminal reaches only the parent, which then stops its children in order.
    os.setsid()
    if sys.platform == "linux":
        _end_with(parent, name)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.set_wakeup_fd(-1)
    for one in (*_SIGNALS, signal.SIGCHLD):
        signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _end_with(parent: int, name: str) -> None:
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_NAME, name.encode())
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent died between the fork and prctl


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Hold back signals while the context is open: in the child they must not meet the parent's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
