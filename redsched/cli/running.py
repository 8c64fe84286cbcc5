"""Run the work of a command: on an event loop, and until a signal ends it, once, in order, and without a traceback."""

import asyncio
import os
import pwd
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from redsched import aio, origin
from redsched.origin import Origin

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command."""

ORDERLY_S = 2.0
"""Seconds that a coroutine may take for its clean-up before it is cancelled again."""

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work of a command and return its result. What it changes is recorded as done by this user."""
    token = origin.enter(Origin(f"cli:{_user()}"))
    try:
        return run_loop(work)
    finally:
        origin.leave(token)


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, on uvloop if it is installed: what uses the store is installed with it."""
    with _restored_signal_handlers():
        try:
            import uvloop
        except ModuleNotFoundError:
            return asyncio.run(work)
        return uvloop.run(work)


@contextmanager
def _restored_signal_handlers() -> Iterator[None]:
    """Restore the handlers of SIGNALS after the block: uvloop leaves those of a closed loop, which do nothing."""
    before = {one: signal.getsignal(one) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            if signal.getsignal(one) is not handler:
                signal.signal(one, handler)


def _user() -> str:
    """Return the name of the user who runs this process; the number of one without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


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
