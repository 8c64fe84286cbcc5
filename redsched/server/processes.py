"""Child processes of the command line: Python modules that end when their parent process does.

Linux signals a child when its parent dies (PR_SET_PDEATHSIG), even by SIGKILL. The parent in this sense is the *thread*
that started the child, so start children from the main thread. On other systems children end only with a parent that
exits in an orderly way.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

STOP_TIMEOUT_S = 10.0
_PR_SET_PDEATHSIG = 1


def start(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], keep: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Run `python -m module arguments` with `environment` added to the parent's; it inherits the descriptors `keep`."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        pass_fds=keep,
        # A session of its own: Ctrl-C in the terminal reaches only the parent, which then stops its children in order.
        start_new_session=True,
        preexec_fn=_ends_with(os.getpid()),
    )


def stop(children: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Terminate all children concurrently, and kill those that take longer than STOP_TIMEOUT_S."""
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _ends_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here, to do as little as possible between fork and exec

    def end_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent died between fork and prctl

    return end_with_parent
