"""Connections that a test's own server serves.

asyncio's servers begin a task for each that nobody else knows of. Where one has not had its first turn when the loop
ends, its connection stays open, and the garbage collector says so in a later test.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

TURNS_TO_SERVE = 3
"""So many turns of the loop lie between accepting a connection and serving it at most."""


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

    async def end(self, server: asyncio.Server) -> None:
        """No more of them from here on, and the end of all that there are."""
        await stop_listening(server)
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server once what it has accepted is served.

    Before Python 3.12, one that is closed at once leaves what it accepts in that moment open: it fails at making a
    connection of it (cpython issue 109564).
    """
    for one in server.sockets:
        asyncio.get_running_loop().remove_reader(one)
    for _ in range(TURNS_TO_SERVE):
        await asyncio.sleep(0)
    server.close()
