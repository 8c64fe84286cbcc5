"""Store: a connection to one server or cluster, checked when it is made, and its cells."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis.asyncio as redis

from redsched.errors import StoreUnavailable
from redsched.names import check_name
from redsched.settings import Settings
from redsched.store.binary import OLDEST
from redsched.store.cell import CellStore
from redsched.store.connection import check_url, reader_client, reading, without_password
from redsched.store.ledgers import Ledgers
from redsched.store.runner import Runner

PROBES = 4


class Store:
    """Opened by `Store.connect`; `cell` gives the typed calls of one cell."""

    def __init__(self, url: str, runner: Runner, reader: redis.Redis) -> None:
        self.url = url
        self.runner = runner
        self._reader = reader
        self.ledgers = Ledgers(url, runner, reader)
        self._cells: dict[str, CellStore] = {}

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, settings: Settings | None = None, upgrade: bool = False) -> AsyncIterator["Store"]:
        """Open a store, load the scripts and check that it will do. `upgrade` shuts out releases that cannot stay.

        Raises StoreUnavailable, InvalidRequest; WrongRelease where other releases are at work on it.
        """
        settings = settings or Settings()
        reader = reader_client(check_url(url), settings)
        runner = Runner(url, settings)
        store = cls(url, runner, reader)
        try:
            await store._check_version()
            await runner.load()
            for name in settings.cells:
                await store._open_cell(name, upgrade)
            yield store
        finally:
            await runner.close()
            await reader.aclose(close_connection_pool=True)

    def cell(self, name: str) -> CellStore:
        """The typed calls of one cell."""
        if name not in self._cells:
            self._cells[name] = CellStore(check_name("cell", name), self.url, self.runner, self._reader)
        return self._cells[name]

    async def memory_policy(self) -> str:
        """The server's maxmemory-policy; anything but noeviction would drop keys behind our back."""
        with reading(self.url):
            info = await self._reader.info("memory")
        return str(info.get("maxmemory_policy", "noeviction"))

    async def _check_version(self) -> None:
        with reading(self.url):
            info = await self._reader.info("server")
        kind = "valkey" if "valkey_version" in info else "redis"
        version = str(info[f"{kind}_version"])
        if tuple(map(int, version.split(".")[:2])) < OLDEST[kind]:
            oldest = ".".join(map(str, OLDEST[kind]))
            where = without_password(self.url)
            raise StoreUnavailable(f"the store at {where} is {kind} {version}: redsched needs {oldest} or newer")

    async def _open_cell(self, name: str, upgrade: bool) -> None:
        """Find out now whether every command may be used, and enter the cell in the list of cells."""
        cell = self.cell(name)
        await self.runner.run("probe", [cell.keys.probe(number) for number in range(PROBES)], ())
        await (cell.upgrade() if upgrade else cell.join())
        await cell.enter()
