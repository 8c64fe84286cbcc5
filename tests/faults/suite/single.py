"""The set-up of one server, with a wire to it from each process."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import redis

from redsched.store.server import PrivateServer
from tests.faults.suite.plan import children
from tests.faults.suite.site import TIMES, Site, meta
from tests.faults.suite.watcher import direct
from tests.faults.suite.wires import Wires, reopen, shut, wires
from tests.support.servers import SERVERS


class Single(Site):
    """One server with an append-only file."""

    def __init__(self, server: PrivateServer, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(wires, cells)
        self.server = server
        self.direct_url = server.url

    def url(self, child: str) -> str:
        """The URL of the process' wire."""
        (wire,) = self.wires[child]
        return wire.url

    def connect(self, tag: str) -> "redis.Redis":
        """A client of the server."""
        return direct(str(self.server.socket))

    async def kill(self) -> None:
        """End the server as a crash does."""
        shut(self.wires)
        self.server.kill()

    async def restart(self, forgets: bool) -> None:
        """Bring it back, with its file or without. Nobody gets through before the cells' times are set again."""
        if forgets and self.server.data_dir is not None:
            shutil.rmtree(self.server.data_dir / "appendonlydir")
        await asyncio.to_thread(self.server.restart)
        if forgets:
            self.wipe()
        reopen(self.wires)

    async def tidy(self) -> None:
        """Nothing is taken away for longer."""

    def wipe(self) -> None:
        """FLUSHALL, and the cells' times set again in the same instant: the default would be to wait for a minute."""
        with direct(str(self.server.socket)) as client:
            pipe = client.pipeline(transaction=True)
            pipe.flushall()
            for cell in self.cells:
                pipe.hset(meta(cell), mapping=TIMES)
            pipe.execute()


@asynccontextmanager
async def single(durability: str, cells: Sequence[str]) -> AsyncIterator[Site]:
    """A server of its own. Under `fsync` it is one that can be asked whether its disk has a write (WAITAOF)."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-site-")))
        binary = next(one.path for one in SERVERS if one.kind == "valkey") if "fsync" in durability else None
        server = stack.enter_context(PrivateServer.start(binary, folder / "data"))
        between = await stack.enter_async_context(wires(server.socket, folder, children("any")))
        site = Single(server, between, cells)
        site.loses_nothing = "fsync" in durability
        yield site
