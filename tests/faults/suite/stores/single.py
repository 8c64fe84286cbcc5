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
from tests.faults.suite.checks.watcher import direct
from tests.faults.suite.plan import children
from tests.faults.suite.stores.site import TIMES, Site, meta
from tests.faults.suite.stores.wires import Wires, reopen, shut, wires
from tests.support.servers import USABLE

THERE_S = 30.0
"""Maximum wait of a fault for a server that another fault has killed or frozen."""

ASK_AGAIN_S = 0.1


class Single(Site):
    """One server with an append-only file.

    Several faults may strike it at once, and each is healed separately. So a dead or frozen server is neither killed
    nor frozen again. It resumes, or is reachable again, once the last fault that held it up is healed.
    """

    def __init__(self, server: PrivateServer, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(wires, cells)
        self.server = server
        self.direct_url = server.url
        self._frozen_by: set[object] = set()
        self._turn = asyncio.Lock()
        """Guards starting, ending, freezing and resuming the server: two starts at once would lose one of the two."""

    def url(self, child: str) -> str:
        """Return the URL of the process's wire."""
        (wire,) = self.wires[child]
        return wire.url

    def connect(self, tag: str) -> "redis.Redis":
        """Return a client of the server."""
        return direct(str(self.server.socket))

    async def kill(self) -> None:
        """Kill the server, as a crash does."""
        async with self._turn:
            shut(self.wires, self)
            await asyncio.to_thread(self.server.kill)

    async def restart(self, forgets: bool) -> None:
        """Restart it, with its file or without. No process can connect before the cells' times are set again.

        Does nothing if another fault has restarted it already, unless it must lose its data.
        """
        async with self._turn:
            if forgets:
                shut(self.wires, self)
                await asyncio.to_thread(self.server.kill)
                self._remove_file()
            if not self.server.running:
                await asyncio.to_thread(self.server.restart)
            if forgets:
                await self.once_there(self.wipe)  # another fault may have taken its memory already
            reopen(self.wires, self)

    async def freeze(self, by: object) -> None:
        """Stop the server if it runs, until the same fault calls `thaw`."""
        async with self._turn:
            self._frozen_by.add(by)
            with suppress(StoreUnavailable):
                self.server.pause()

    async def thaw(self, by: object) -> None:
        """Resume it if it runs and no other fault has frozen it."""
        async with self._turn:
            self._frozen_by.discard(by)
            if not self._frozen_by:
                with suppress(StoreUnavailable):
                    self.server.resume()

    async def once_there(self, do: Callable[[], None]) -> None:
        """Call the server as soon as it replies. Raises what redis raises after THERE_S."""
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
        """Do nothing: faults of this site take nothing away for longer than a round."""

    def wipe(self) -> None:
        """FLUSHALL, and set the cells' times in the same transaction: the default would be to wait for a minute."""
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
    """Start a server of the suite's own. For `fsync` it supports WAITAOF."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-site-")))
        binary = next(one.path for one in USABLE if one.kind == "valkey") if "fsync" in durability else None
        server = stack.enter_context(PrivateServer.start(binary, folder / "data"))
        between = await stack.enter_async_context(wires(server.socket, folder, children("any")))
        site = Single(server, between, cells)
        site.loses_nothing = "fsync" in durability
        yield site
