"""What every fork of this process does first, and how to fork while signals have handlers.

Linux signals a child when its parent dies (PR_SET_PDEATHSIG), even by SIGKILL. The parent in this sense is the *thread*
that started the child, so start children from the main thread. On other systems children end only with a parent that
exits in an orderly way.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def detach(name: str, parent: int) -> None:
    """Make a fork of the process `parent` one of its own, shown as `name`, which ends when its parent does."""
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
def signals_held_back() -> Iterator[None]:
    """Hold back signals while the context is open: in the child they must not meet the parent's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
