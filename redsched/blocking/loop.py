"""An event loop in a thread of its own, on which other threads run coroutines and wait for them."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from redsched.aio import end_all
from redsched.errors import InvalidRequest, OutcomeUnknown

T = TypeVar("T")
R = TypeVar("R")

CLOSE_S = 10.0
"""How long closing waits for the loop to end."""
CANCEL_S = 2.0
"""How long a call that Ctrl-C has interrupted waits for its coroutine to end."""
NOTICE_S = 1.0
"""How often a thread that waits looks for signals: one that arrives just before it sleeps does not wake it."""


class LoopThread(Generic[T]):
    """A resource that is open on an event loop of its own thread. `open` returns its context manager."""

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[T]]) -> None:  # noqa: A002 - it opens
        self._open, self._pid, self._closed = open, os.getpid(), False
        self._ready: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._calls = set[asyncio.Task[Any]]()
        self._closing = threading.Lock()  # no call is scheduled once the loop has been told to end
        self._thread = threading.Thread(target=self._run, name="redsched", daemon=True)
        self._thread.start()

    def resource(self) -> T:
        """Return the resource once it is open. Raises what opening it raises."""
        return self._ready.result()

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end and return its result. The caller's context variables are those of the coroutine.

        Ctrl-C cancels it, and waits up to CANCEL_S for its clean-up. Raises what it raises; InvalidRequest if the loop
        is closed or belongs to another process, and OutcomeUnknown if it is closed meanwhile.
        """
        ended = SimpleQueue[asyncio.Task[R]]()  # a Future's lock is Python: a signal in its midst leaves it locked
        context, tasks = copy_context(), list[asyncio.Task[R]]()

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(work, context=context)
            tasks.append(task)
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
            task.add_done_callback(lambda task: _hand_over(task, ended))

        try:
            loop = self._schedule(begin)
        except InvalidRequest:
            work.close()
            raise
        try:
            task = _wait(ended)
        except BaseException:  # a signal has interrupted the wait
            if not (tasks and tasks[0].done()):
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                with suppress(Empty):  # what comes next, such as closing an iterator, finds it ended
                    ended.get(timeout=CANCEL_S)
            raise
        if task.cancelled():
            raise OutcomeUnknown("the scheduler was closed during the call: whether it was done is not known")
        return task.result()

    def iterate(self, items: AsyncIterator[R]) -> Iterator[R]:
        """Return the items as they come; leaving the iteration ends it."""
        try:
            while (found := self.call(_next(items))) is not None:
                yield found[0]
        finally:
            if isinstance(items, AsyncGenerator) and not self._closed:
                self.call(_close(items))

    def close(self) -> None:
        """End the loop. Calls that other threads wait for end with OutcomeUnknown. Closing again does nothing."""
        if os.getpid() != self._pid:
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
        if self._loop is not None and self._serving is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
        self._thread.join(CLOSE_S)

    def _end(self) -> None:
        """End what the loop runs: the calls, or the opening of the resource."""
        if self._ready.done():
            self._ending.set()
        elif self._serving is not None:
            self._serving.cancel()

    def _schedule(self, begin: Callable[[], None]) -> asyncio.AbstractEventLoop:
        """Have the loop call `begin`, and return the loop. Raises InvalidRequest if it takes no calls."""
        if os.getpid() != self._pid:
            raise InvalidRequest("this scheduler was opened by another process: open one after the fork")
        with self._closing:
            if self._closed or self._loop is None:
                raise InvalidRequest("this scheduler is closed: open another one")
            self._loop.call_soon_threadsafe(begin)
            return self._loop

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_new_loop) as runner:
                self._loop = runner.get_loop()
                runner.run(self._serve())
        except BaseException as error:  # the thread that waits for the resource raises it
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._serving = asyncio.current_task()
        if self._closed:
            raise asyncio.CancelledError  # it was closed before there was a task to cancel
        async with self._open() as resource:
            self._ready.set_result(resource)
            await self._ending.wait()
            await end_all(list(self._calls))


def _new_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


def _wait(ended: "SimpleQueue[T]") -> T:
    while True:
        with suppress(Empty):
            return ended.get(timeout=NOTICE_S)


def _hand_over(task: "asyncio.Task[T]", ended: "SimpleQueue[asyncio.Task[T]]") -> None:
    """Give a task that has ended to the thread that waits for it."""
    if not task.cancelled():
        task.exception()  # asyncio logs an exception that nobody has read, and the thread may have been interrupted
    ended.put(task)


async def _next(items: AsyncIterator[T]) -> tuple[T] | None:
    """Return the next item in a tuple; None at the end."""
    async for one in items:
        return (one,)
    return None


async def _close(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()
