"""Ending many tasks, and steps that must be gone through to their end."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from redsched.tasks import end


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
