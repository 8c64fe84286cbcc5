"""Ending an asyncio task for sure. Knows nothing else of redsched."""

import asyncio
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
