"""Store: a connection to one server or cluster, checked when it is opened, and its cells."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.model.validation import check_name
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.durability import check_fsync, durability_of
from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.keys import Keys
from redsched.store.commands.functions import FunctionCommands
from redsched.store.commands.known_cells import KnownCells
from redsched.store.embedded.binary import OLDEST
from redsched.store.topology.connection import reading
from redsched.store.topology.router import Router, infos, router_to
from redsched.store.topology.url import Kind, check_url, parse, without_password

PROBES = 5
KEEPS = "noeviction"
_WAYS_OUT = {
    "cluster": "give cluster://host:port of some of its nodes",
    "sentinel": "give sentinel://host:port,host:port/master",
}


@dataclass(frozen=True, slots=True)
class StoreMemory:
    """What happens to keys when memory is full, and the memory of the fullest primary in bytes; limit 0: none."""

    policy: str
    used_bytes: int
    limit_bytes: int
    is_full: bool = False
    """Whether a primary refuses what needs more memory."""


class Store:
    """A connection to a store, opened by `Store.connect`. `cell` returns the typed calls of one cell."""

    def __init__(self, url: str, settings: Settings, *, read_only: bool = False) -> None:
        self.url = check_url(url)
        self._settings = settings
        self._router: Router = router_to(url, settings)
        self.runner = ScriptClient(url, settings, self._router, read_only=read_only)
        self.functions = FunctionCommands(self.url, self._router)
        self._cells: dict[str, CellStore] = {}
        self._known = KnownCells(settings.cells)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        settings: Settings | None = None,
        upgrade: bool = False,
        *,
        read_only: bool = False,
        first_reply_s: float | None = None,
    ) -> AsyncIterator["Store"]:
        """Open a store, load the scripts and check the servers.

        `upgrade` shuts out releases that this one cannot work beside. With `read_only`, nothing is written, neither now
        nor by later calls: those that write raise InvalidRequest. That suits a user of the store who may only read.
        `first_reply_s`: how long a single server may take to answer at all; by default as long as any reply, with
        retries.
        Raises StoreUnavailable, InvalidRequest, and SchemaMismatch if such releases may be using the store.
        """
        settings = settings or Settings()
        store = cls(url, settings, read_only=read_only)
        try:
            await store._check_in_time(first_reply_s)
            await store.runner.load()
            for name in settings.cells:
                await store._open_cell(name, upgrade)
            yield store
        finally:
            await aio.finish(store._close())

    async def _close(self) -> None:
        await aio.gather(cell.texts.decisions.close() for cell in self._cells.values())
        await self.runner.close()
        await self._router.close()

    def cell(self, name: str) -> CellStore:
        """Return the typed calls of one cell."""
        if name not in self._cells:
            reader = self._router.reader(Keys(check_name("cell", name)).meta)
            self._cells[name] = CellStore(name, self.url, self.runner, reader, self._router.outside, self._known)
        return self._cells[name]

    async def memory_policy(self) -> str:
        """Return the maxmemory-policy of the primaries; any policy but noeviction could evict keys of the scheduler.

        If the primaries differ, return a policy that is not noeviction.
        """
        return (await self.memory()).policy

    async def memory(self) -> StoreMemory:
        """Return the memory of the fullest primary, and the policy as `memory_policy` does. Raises StoreUnavailable."""
        with reading(self.url):
            found = (await infos(self._router, "memory")).values()
        policies = {str(info.get("maxmemory_policy", KEEPS)) for info in found}
        sizes = [(int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))) for info in found]
        # Without a limit a primary is as full as its size says; with one, its share of that comes first.
        used, limit = max(sizes, key=lambda one: (one[0] / one[1] if one[1] else 0.0, one[0]), default=(0, 0))
        full = any(map(is_full, found))
        return StoreMemory(min(policies - {KEEPS}, default=KEEPS), used, limit, full)

    async def servers(self) -> dict[str, dict[str, Any]]:
        """Return what INFO reports about every primary (or the replica that the URL leads to), by its name.

        Raises StoreUnavailable.
        """
        found: dict[str, dict[str, Any]] = {}
        with reading(self.url):
            for section in ("server", "replication", "memory", "persistence"):
                for name, info in (await infos(self._router, section)).items():
                    found.setdefault(name, {}).update(info)
        return found

    async def _check_in_time(self, limit_s: float | None) -> None:
        """Check the servers; a single one must answer within the limit. With several, another one may serve."""
        if parse(self.url).kind is not Kind.SERVER:
            limit_s = None
        try:
            async with asyncio.timeout(limit_s):
                await self._check_servers()
        except TimeoutError:
            raise StoreUnavailable(
                f"the store at {without_password(self.url)} did not reply within {limit_s:g} s: it hangs, is "
                "overloaded or cannot be reached; check the server, or set REDSCHED_REPLY_TIMEOUT_S to wait longer"
            ) from None

    async def _check_servers(self) -> None:
        with reading(self.url):
            await self._router.open()
            servers = await infos(self._router, "server")
        for info in servers.values():
            self._check_server(info)
        if durability_of(self._settings).fsync:
            with reading(self.url):
                persistence = await infos(self._router, "persistence")
            for name, info in servers.items():
                check_fsync(self.url, *_version(info), persistence[name])

    def _check_server(self, info: Mapping[str, Any]) -> None:
        kind, version = _version(info)
        where = without_password(self.url)
        if version < OLDEST[kind]:
            oldest = ".".join(map(str, OLDEST[kind]))
            reported = info[f"{kind}_version"]
            raise StoreUnavailable(f"the store at {where} is {kind} {reported}: redsched needs {oldest} or newer")
        mode = str(info.get("redis_mode", info.get("server_mode", "standalone")))
        if mode != ("cluster" if parse(self.url).kind is Kind.CLUSTER else "standalone"):
            way_out = _WAYS_OUT.get(mode, "give a redis:// or sentinel:// URL")
            raise StoreUnavailable(f"the server at {where} runs as {mode}: {way_out}")

    async def _open_cell(self, name: str, upgrade: bool) -> None:
        """Check that every command is permitted, join or upgrade the cell, and add it to the list of cells."""
        cell = self.cell(name)
        if self.runner.is_read_only:
            await cell.schema.check_readable()
            return
        await self.runner.run("probe", [cell.keys.probe(number) for number in range(PROBES)], ())
        if upgrade:
            await cell.schema.upgrade()
        elif await cell.schema.join():
            # After a time without calls: the first call of this process may be unable to tell that from a clock jump.
            await cell.tick()
        self._known.note(await cell.enter())


def is_full(info: Mapping[str, Any]) -> bool:
    """Return whether a server refuses what needs more memory, from its INFO."""
    limit = int(info.get("maxmemory", 0))
    # What it has yet to send to replicas and to write to the AOF does not count.
    return 0 < limit < int(info.get("used_memory", 0)) - int(info.get("mem_not_counted_for_evict", 0))


def _version(info: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    kind = "valkey" if "valkey_version" in info else "redis"
    return kind, tuple(map(int, str(info[f"{kind}_version"]).split(".")[:2]))
