"""The set-up of one server, with a wire to it from each process."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import redis

from redsched.errors import StoreUnavailable
from redsched.store.embedded.server import PrivateServer
from tests.faults.suite.plan import children
from tests.faults.suite.site import TIMES, Site, meta
from tests.faults.suite.watcher import direct
from tests.faults.suite.wires import Wires, reopen, shut, wires
from tests.support.servers import SERVERS

THERE_S = 30.0
"""How long a fault waits for a server that another fault has killed or frozen."""

ASK_AGAIN_S = 0.1


class Single(Site):
    """One server with an append-only file.

    Several faults may strike it at once, and each is healed by itself. So one that is dead or frozen already is neither
    killed nor frozen again, and it goes on, or is reached again, once the last that held it up has let go.
    """

    def __init__(self, server: PrivateServer, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(wires, cells)
        self.server = server
        self.direct_url = server.url
        self._frozen_by: set[object] = set()
        self._turn = asyncio.Lock()
        """Of whoever starts, ends, freezes or resumes the server: two launches at once would lose one of the two."""

    def url(self, child: str) -> str:
        """The URL of the process' wire."""
        (wire,) = self.wires[child]
        return wire.url

    def connect(self, tag: str) -> "redis.Redis":
        """A client of the server."""
        return direct(str(self.server.socket))

    async def kill(self) -> None:
        """End the server as a crash does."""
        async with self._turn:
            shut(self.wires, self)
            await asyncio.to_thread(self.server.kill)

    async def restart(self, forgets: bool) -> None:
        """Bring it back, with its file or without. Nobody gets through before the cells' times are set again.

        One that another fault has brought back already is left alone, unless it is to forget.
        """
        async with self._turn:
            if forgets:
                shut(self.wires, self)
                await asyncio.to_thread(self.server.kill)
                self._remove_file()
            if not self.server.running:
                await asyncio.to_thread(self.server.restart)
            if forgets:
                self.wipe()
            reopen(self.wires, self)

    async def freeze(self, by: object) -> None:
        """Stop the server where it runs, until `thaw` by the same."""
        async with self._turn:
            self._frozen_by.add(by)
            with suppress(StoreUnavailable):
                self.server.pause()

    async def thaw(self, by: object) -> None:
        """Let it go on, where it runs and no other fault has frozen it."""
        async with self._turn:
            self._frozen_by.discard(by)
            if not self._frozen_by:
                with suppress(StoreUnavailable):
                    self.server.resume()

    async def once_there(self, do: Callable[[], None]) -> None:
        """Do something to the server, as soon as it answers. Raises what redis raises after THERE_S."""
        until = time.monotonic() + THERE_S
        while True:
            try:
                await asyncio.to_thread(do)
                return
            except (redis.RedisError, OSError):
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(ASK_AGAIN_S)

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

    def _remove_file(self) -> None:
        if self.server.data_dir is not None:
            shutil.rmtree(self.server.data_dir / "appendonlydir", ignore_errors=True)


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
