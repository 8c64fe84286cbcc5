"""Child processes of the command line: forks of it, which end when it does.

A fork shares the modules that its parent has imported. So it starts in a tenth of a second, where importing takes one
or two, and the processes of a machine have most of their code in memory once.

Linux signals a child when its parent dies (PR_SET_PDEATHSIG), even by SIGKILL. The parent in this sense is the *thread*
that started the child, so start children from the main thread. On other systems children end only with a parent that
exits in an orderly way.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkProcess

STOP_TIMEOUT_S = 10.0
_FORKS = multiprocessing.get_context("fork")
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(name: str, main: Callable[[], int], environment: Mapping[str, str]) -> ForkProcess:
    """Run `main` in a fork of this process, with `environment` added to its own; the fork exits with what it returns.

    `name` is shown by `ps` and `top`, up to 15 characters.
    """
    child = _FORKS.Process(target=_run, args=(name, main, environment, os.getpid()), name=name)
    with _signals_held_back(), warnings.catch_warnings():
        # Python 3.12 warns of forks of processes with threads. What forks has none; tests have one that only waits.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        child.start()
    return child


def stop(children: Sequence[ForkProcess]) -> None:
    """Terminate all children concurrently, and kill those that take longer than STOP_TIMEOUT_S."""
    for child in children:
        child.terminate()
    for child in children:
        child.join(STOP_TIMEOUT_S)
        if child.exitcode is None:
            child.kill()
            child.join()


def _run(name: str, main: Callable[[], int], environment: Mapping[str, str], parent: int) -> None:
    """Make the fork a process of its own, and run `main`."""
    gc.freeze()  # a collection would write to, and so copy, the memory that it shares with its parent
    # A session of its own: Ctrl-C in the terminal reaches only the parent, which then stops its children in order.
    os.setsid()
    if sys.platform == "linux":
        _end_with(parent, name)
    signal.set_wakeup_fd(-1)
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    os.environ.update(environment)
    sys.exit(main())


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
