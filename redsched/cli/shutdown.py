"""Shutdown of long-running commands: once, in order, and without a traceback."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from redsched import aio
from redsched.cli.context import SIGNALS, run_loop

Result = TypeVar("Result")

ORDERLY_S = 2.0
"""Seconds that a coroutine may take for its clean-up before it is cancelled again."""


@contextmanager
def until_ended() -> Iterator[None]:
    """Run the block until Ctrl-C, SIGTERM or SIGHUP, which end it normally. Later signals are ignored."""
    before = {one: signal.signal(one, _end) for one in SIGNALS}
    try:
        yield
    except _Ended:
        pass
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def run_until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine until it returns, or until Ctrl-C, SIGTERM or SIGHUP cancels it, which ends it normally."""
    run_loop(result_unless_ended(work))


async def result_unless_ended(work: Coroutine[Any, Any, Result]) -> Result | None:
    """Return the result of a coroutine; None if Ctrl-C, SIGTERM or SIGHUP came first and has cancelled it.

    Later signals are ignored until the loop ends.
    """
    ended = asyncio.Event()
    for one in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(one, ended.set)
    signalled, task = asyncio.create_task(ended.wait()), asyncio.ensure_future(work)
    await asyncio.wait([signalled, task], return_when=asyncio.FIRST_COMPLETED)
    await aio.end(signalled)
    await aio.end(task, ORDERLY_S)
    return None if task.cancelled() else task.result()


class _Ended(BaseException):
    """Raised by a signal. It is not an Exception, so that no handler treats it as a failure."""


def _end(_number: int, _frame: FrameType | None) -> None:
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise _Ended
