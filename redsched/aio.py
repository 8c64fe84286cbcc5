"""Helpers for asyncio: reliable cancellation, steps that must run to their end, and background tasks.

Also the clock for timeouts. Depends on nothing else in redsched.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

AGAIN_AFTER_S = 0.1


def now_s() -> float:
    """Return the time of the event loop's monotonic clock in seconds, which asyncio's own timeouts use too."""
    return asyncio.get_running_loop().time()


def detached(work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
    """Start work that is shared, or that goes on after its caller, as a task without the caller's context variables.

    Otherwise the origin of the request that happens to start it would be that of all that it ever does.
    """
    return asyncio.create_task(work, name=name, context=Context())


class BackgroundTasks:
    """Background tasks that outlive their caller. Iterating yields the running tasks.

    `inherits`: whether they keep the context variables of their caller, because each works for this caller alone.
    """

    def __init__(self, name: str, *, inherits: bool = False) -> None:
        self._name, self._inherits = name, inherits
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator["asyncio.Task[None]"]:
        return iter(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the work as a background task."""
        task = asyncio.create_task(work, name=self._name, context=copy_context() if self._inherits else Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, within_s: float) -> None:
        """Wait until all tasks have ended; cancel those still running after `within_s` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        await end_all(self._tasks)


async def end(task: "asyncio.Task[Any] | None", again_after_s: float = AGAIN_AFTER_S) -> None:
    """Cancel a task, if there is one, and wait until it has ended. See `end_all`."""
    await end_all([] if task is None else [task], again_after_s)


async def end_all(tasks: Iterable["asyncio.Task[Any]"], again_after_s: float = AGAIN_AFTER_S) -> None:
    """Cancel all tasks and wait until each has ended, whatever its outcome.

    A cancellation of the caller meanwhile is raised afterwards.

    Repeats the cancellation every `again_after_s` seconds: before Python 3.12 `asyncio.wait_for`, which redis-py uses
    around each write, loses a cancellation that arrives at the moment when the awaited operation completes (cpython
    issue 86296).
    """
    waiting = {task for task in tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while waiting:
        for task in waiting:
            task.cancel()
        try:
            await asyncio.wait(waiting, timeout=again_after_s)
        except asyncio.CancelledError as error:
            cancelled = error
        waiting = {task for task in waiting if not task.done()}
    if cancelled is not None:
        raise cancelled


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all coroutines concurrently and return their results in order. None is running when this returns or raises.

    `asyncio.gather` leaves the others running when one has failed or was the first to be cancelled.
    """
    begun = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*begun)
    finally:
        await end_all(begun)


async def finish(steps: Coroutine[Any, Any, None]) -> None:
    """Run steps to their end even if the caller is cancelled meanwhile; raise the cancellation afterwards."""
    task = asyncio.ensure_future(steps)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


class TimeLimit:
    """One timeout for many operations that run at once; each is limited as by `asyncio.timeout`.

    As all have the same time, they expire in the order in which they began, and one timer serves them all.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[_Limited, None] = {}
        """The operations in progress, in the order in which they began."""
        self._timer: asyncio.TimerHandle | None = None

    def limited(self) -> "_Limited":
        """Return a context in which the current task is cancelled after the time; it then raises TimeoutError."""
        loop = asyncio.get_running_loop()
        one = _Limited(self._running, loop.time() + self._seconds)
        if self._timer is None:
            self._timer = loop.call_at(one.deadline, self._expire, loop)
        return one

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer = loop.time(), None
        for one in list(self._running):
            if one.deadline > now:
                self._timer = loop.call_at(one.deadline, self._expire, loop)
                break
            one.expire()


class _Limited:
    """A context of a TimeLimit, to be entered at once, by the task that it limits."""

    __slots__ = ("_cancelling", "_has_expired", "_running", "_task", "deadline")

    def __init__(self, running: "dict[_Limited, None]", deadline: float) -> None:
        self.deadline = deadline
        self._running = running
        self._has_expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a TimeLimit limits a task, and this code runs in none")
        self._task, self._cancelling = task, task.cancelling()
        self._running[self] = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._running.pop(self, None)
        if not self._has_expired:
            return
        # Only a cancellation by this limit becomes a timeout; others remain what they are.
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the operation."""
        del self._running[self]
        self._has_expired = True
        self._task.cancel()
