"""Connections that a test's own server serves.

asyncio's servers start a task for each connection, which nothing else references. If a task has not run when the loop
ends, its connection stays open, and the garbage collector reports that in a later test.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

TURNS_TO_SERVE = 3
"""The maximum number of turns of the loop between accepting a connection and serving it."""


class Connections:
    """The connections of one server: each is closed with its task, in whatever state the task is."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None], writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    def cut(self) -> None:
        """End all present connections."""
        for task in [*self._tasks]:
            task.cancel()

    async def end(self, server: asyncio.Server) -> None:
        """Accept no more connections, and end the present ones."""
        await stop_listening(server)
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server once its accepted connections are served.

    Before Python 3.12, one that is closed at once leaves what it accepts in that moment open: it fails at making a
    connection of it (cpython issue 109564).
    """
    for one in server.sockets:
        asyncio.get_running_loop().remove_reader(one)
    for _ in range(TURNS_TO_SERVE):
        await asyncio.sleep(0)
    server.close()
