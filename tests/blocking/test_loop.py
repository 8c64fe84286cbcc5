"""The event loop in a thread of its own: calls as it is closed, Ctrl-C, and a loop that cannot be created."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any

import pytest
import uvloop

from redsched.blocking import loop as blocking_loop
from redsched.blocking.loop import LoopThread
from redsched.errors import OutcomeUnknown
from tests.support.waiting import patience_s


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


class _Interrupted(uvloop.Loop):
    """Does something else once in the middle of the next call from another thread."""

    first: Callable[[], None] | None = None

    def call_soon_threadsafe(self, *args: Any, **named: Any) -> Any:  # type: ignore[override] # whatever it takes
        if (first := self.first) is not None:
            self.first = None
            first()
        return super().call_soon_threadsafe(*args, **named)


def test_a_call_ends_if_the_loop_is_closed_while_it_is_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The close waits for the call to be scheduled, and then ends it with the others."""
    loop = _Interrupted()
    monkeypatch.setattr(blocking_loop, "_new_loop", lambda: loop)
    one = LoopThread(_nothing)
    one.resource()
    closer = threading.Thread(target=one.close)

    def close_meanwhile() -> None:
        closer.start()
        closer.join(0.5)  # a close that does not wait has ended the loop by then

    loop.first = close_meanwhile
    with pytest.raises(OutcomeUnknown, match="closed during the call"):
        one.call(asyncio.Event().wait())
    closer.join()


def test_a_loop_that_cannot_be_created_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller would wait for ever for a resource that no loop opens, such as when all file numbers are in use."""

    def no_files() -> asyncio.AbstractEventLoop:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(blocking_loop, "_new_loop", no_files)
    one = LoopThread(_nothing)
    with pytest.raises(OSError, match="Too many open files"):
        one._ready.result(patience_s(10))
    one.close()


def test_closing_ends_an_opening_that_waits() -> None:
    """Such as Ctrl-C while a store that hangs is connected to: it neither waits for that nor leaves a thread."""
    opening = threading.Event()

    @asynccontextmanager
    async def never() -> AsyncIterator[None]:
        opening.set()
        await asyncio.Event().wait()
        yield

    one = LoopThread(never)
    opening.wait()
    one.close()
    assert not one._thread.is_alive()


def test_ctrl_c_in_an_iteration_closes_it_after_its_clean_up() -> None:
    """Closing an asynchronous generator that still cleans up would raise RuntimeError in place of KeyboardInterrupt."""
    one = LoopThread(_nothing)
    one.resource()
    ended, waiting = list[str](), threading.get_ident()

    async def items() -> AsyncIterator[int]:
        try:
            signal.pthread_kill(waiting, signal.SIGINT)
            await asyncio.Event().wait()
            yield 1
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            ended.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        list(one.iterate(items()))
    assert ended == ["cleaned up"]
    one.close()


def test_ctrl_c_at_any_step_of_the_wait_leaves_a_loop_that_closes() -> None:
    """A lock that is taken in Python, as a Future's is, stays taken if the signal comes just then."""
    steps = 0
    while _interrupted(steps):
        steps += 1
    assert steps > 2


def _interrupted(step: int) -> bool:
    """Interrupt the wait of a call at its n-th step, a line or a return of a function. False if it has fewer."""
    one, begun = LoopThread(_nothing), SimpleQueue[None]()
    schedule, left = one._schedule, step

    def trace(frame: FrameType, *_: object) -> Any:
        nonlocal left
        if frame.f_globals["__name__"] == "_weakrefset":
            return None  # a task has been freed: the interpreter ignores what is raised there
        if left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        left -= 1
        return trace

    def schedule_and_trace(begin: Callable[[], None]) -> asyncio.AbstractEventLoop:
        loop = schedule(begin)
        begun.get()
        sys.settrace(trace)
        sys._getframe(1).f_trace = trace
        return loop

    async def work() -> None:
        begun.put(None)
        await asyncio.sleep(0.05)

    one.resource()
    one._schedule = schedule_and_trace  # type: ignore[method-assign]
    try:
        one.call(work())
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        one.close()
        assert not one._thread.is_alive()
    return False
