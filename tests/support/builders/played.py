"""A cell for a state machine of Hypothesis: one step at a time, on the machine's own event loop.

The machines choose the calls and have a model of the results; this module provides the cell that they call.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import redis

from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import raw_client

T = TypeVar("T")

# Sweeps are rules of the machines themselves, and nothing may depend on the speed of a step.
SETTINGS = Settings(poll_s=60, tick_s=3600)
UNHURRIED = {"jump_s": "3600", "settle_s": "3600"}


class PlayedCell:
    """Create an empty cell, and the resources that are closed with it."""

    store: Store
    cell: CellStore
    raw: Any

    def __init__(self, server: PrivateServer) -> None:
        super().__init__()
        self.ids = 0
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.play(self._open(server))

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the machine's own loop."""
        return self.loop.run(work)

    async def _open(self, server: PrivateServer) -> None:
        with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
            client.flushall()
        self.raw = await self.stack.enter_async_context(raw_client(server.url))
        self.store = await self.stack.enter_async_context(Store.connect(server.url, SETTINGS))
        self.cell = self.store.cell("c1")
        await self.cell.init()
        await self.raw.hset(self.cell.keys.meta, mapping=UNHURRIED)

    def teardown(self) -> None:
        """End the machine."""
        self.play(self.stack.aclose())
        self.loop.close()
