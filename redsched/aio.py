"""Ending asyncio tasks for sure, steps that must be gone through to their end, and work that goes on behind its caller.

And the clock by which they wait. Knows nothing else of redsched.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

AGAIN_AFTER_S = 0.1


def now_s() -> float:
    """This process' monotonic clock in seconds, by which asyncio's own timeouts run too."""
    return asyncio.get_running_loop().time()


class BackgroundTasks:
    """Work that goes on when whoever has begun it is told already. Iterates over the tasks that are under way."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator["asyncio.Task[None]"]:
        return iter(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin it."""
        task = asyncio.create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, within_s: float) -> None:
        """Return when all of it has ended; what has not after so many seconds is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        await end_all(self._tasks)


async def end(task: "asyncio.Task[Any] | None", again_after_s: float = AGAIN_AFTER_S) -> None:
    """Cancel a task, where there is one, and return when it has ended. As `end_all`."""
    await end_all([] if task is None else [task], again_after_s)


async def end_all(tasks: Iterable["asyncio.Task[Any]"], again_after_s: float = AGAIN_AFTER_S) -> None:
    """Cancel tasks together and return when all of them have ended, however they ended.

    Cancelled again after so many seconds, as often as need be: before Python 3.12 `asyncio.wait_for`, which redis-py
    uses around each write, loses a cancellation that comes in the moment in which what it waits for is done (cpython
    issue 86296).
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=again_after_s)


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Begin them all at once; what they return, in their order. None goes on when this has ended, however it ended.

    `asyncio.gather` leaves the others to themselves when one has failed, or was the first to be cancelled.
    """
    begun = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*begun)
    finally:
        await end_all(begun)


async def finish(steps: Coroutine[Any, Any, None]) -> None:
    """Run steps to their end, however often the caller is cancelled meanwhile; then it is cancelled."""
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
