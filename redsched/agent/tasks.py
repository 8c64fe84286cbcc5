"""Ending tasks for certain."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

AGAIN_S = 0.25


async def end_all(tasks: Iterable["asyncio.Task[Any] | asyncio.Future[Any]"]) -> None:
    """Cancel tasks until each has ended.

    Once is not enough: up to Python 3.11, `asyncio.wait_for` swallows a cancellation that arrives together with its
    result, and the Redis client sends with it.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=AGAIN_S)


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
