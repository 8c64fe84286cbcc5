"""The set-ups that stores stand in. Here: one server, with a wire from each process."""

import asyncio
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import redis

from redsched.store import Store
from redsched.store.server import PrivateServer
from tests.faults.suite.plan import children
from tests.faults.suite.watcher import direct
from tests.faults.suite.wires import Wire, reopen, shut, wires

CELL = {"jump_s": "3", "settle_s": "15"}
"""The cell's own times, as short as the leases: docs/operate.md, "Limits of a cell"."""

META = "rs:{c1}:meta"


class Site(ABC):
    """A store as processes, faults and the watcher reach it."""

    direct_url: str

    @abstractmethod
    def url(self, child: str) -> str:
        """The store's URL for a process."""

    @abstractmethod
    def connect(self) -> "redis.Redis":
        """A client of the present primary, past all wires."""

    @abstractmethod
    async def prepare(self) -> None:
        """Make a new cell."""


class Single(Site):
    """One server with an append-only file."""

    def __init__(self, server: PrivateServer, between: Mapping[str, Wire]) -> None:
        self.server = server
        self.wires = between
        self.direct_url = server.url

    def url(self, child: str) -> str:
        """The URL of the process' wire."""
        return self.wires[child].url

    def connect(self) -> "redis.Redis":
        """A client of the server."""
        return direct(str(self.server.socket))

    async def prepare(self) -> None:
        """Declare the cell new, by a command that whoever installs redsched gives."""
        async with Store.connect(self.server.url) as store:
            await store.cell("c1").init()
        with self.connect() as client:
            client.hset(META, mapping=CELL)

    async def kill(self) -> None:
        """End the server as a crash does."""
        shut(self.wires.values())
        self.server.kill()

    async def restart(self, forgets: bool) -> None:
        """Bring it back, with its file or without. Nobody gets through before the cell's times are set again."""
        if forgets and self.server.data_dir is not None:
            shutil.rmtree(self.server.data_dir / "appendonlydir")
        await asyncio.to_thread(self.server.restart)
        if forgets:
            with self.connect() as client:
                client.hset(META, mapping=CELL)
        reopen(self.wires.values())

    def wipe(self) -> None:
        """FLUSHALL, and the cell's times set again in the same instant: the default would be to wait for a minute."""
        with self.connect() as client:
            pipe = client.pipeline(transaction=True)
            pipe.flushall()
            pipe.hset(META, mapping=CELL)
            pipe.execute()


@asynccontextmanager
async def single(binary: Path | None = None) -> AsyncIterator[Single]:
    """A server of its own."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-site-")))
        server = stack.enter_context(PrivateServer.start(binary, folder / "data"))
        between = await stack.enter_async_context(wires(server.socket, folder, children("any")))
        yield Single(server, between)
