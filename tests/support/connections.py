"""Connections that a test's own server serves.

asyncio's servers begin a task for each that nobody else knows of. Where one has not had its first turn when the loop
ends, its connection stays open, and the garbage collector says so in a later test.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Connections:
    """Those of one server: each closed with its task, whatever has become of that."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None], writer: asyncio.StreamWriter) -> None:
        """Serve one."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    def cut(self) -> None:
        """End all that there are now."""
        for task in [*self._tasks]:
            task.cancel()

    async def ended(self) -> None:
        """Return once all have come to their end."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
