"""Ending asyncio tasks for sure, and steps that must be gone through to their end. Knows nothing else of redsched."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

AGAIN_AFTER_S = 0.1


async def end(task: "asyncio.Task[Any] | None") -> None:
    """Cancel a task and return when it has ended, however it ended.

    Cancelled more than once if need be: before Python 3.12 `asyncio.wait_for`, which redis-py uses around each write,
    loses a cancellation that comes in the moment in which what it waits for is done (cpython issue 86296).
    """
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=AGAIN_AFTER_S)


async def end_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks together and return when all of them have ended."""
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*(end(task) for task in waiting))


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
