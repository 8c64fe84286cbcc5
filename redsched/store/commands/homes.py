"""With several cells, the cell to which a host's name is bound: a machine in two of them would be given out twice.

The key is outside all cells, so one script decides between agents that report a name to two cells at the same time. A
host is in its cell's hands from its first report until it is removed there, whether its agent lives or not.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from redis.exceptions import NoPermissionError

from redsched import aio
from redsched.errors import ClaimState
from redsched.model.records.problems import ClaimStateFacts
from redsched.store.codec.keys import Keys
from redsched.store.commands.base import CellClient, chunks

HOMES_AT_ONCE = 100
"""The most names that are looked up at the same time."""


class HomeCommands:
    """Binds names of hosts to this cell, and frees them. A store with a single cell has no such keys."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def take(self, host: str) -> None:
        """Bind a host's name to this cell. Raises ClaimState if another cell has it."""
        if not await self._cell.others():
            return
        bound, is_new = await self.bind(host)
        # A host that has not reported since the store got its second cell, or lost the key, is bound by nothing yet.
        if is_new and (found := await self._found_elsewhere(host)):
            bound, _ = await self.bind(host, found, self._cell.name)
        if bound != self._cell.name:
            raise taken(host, bound, self._cell.name)

    async def bind(self, host: str, cell: str = "", former: str = "") -> tuple[str, bool]:
        """Bind a host's name to a cell ('': this one), unless it is bound to one that is not `former`. (bind_host.lua)

        Returns the cell that it is bound to, and whether this call has bound it.
        """
        reply = await self._cell.scripts.run(
            "bind_host", (self._cell.keys.home(host),), (cell or self._cell.name, former)
        )
        return str(reply[1]), bool(reply[2])

    async def free(self, host: str) -> bool:
        """Free a host's name if it is bound to this cell; return whether it was. (bind_host.lua)"""
        if not await self._cell.others():
            return False
        reply = await self._cell.scripts.run("bind_host", (self._cell.keys.home(host),), ("", self._cell.name))
        return bool(reply[2])

    async def cell_of(self, host: str) -> str:
        """Return the cell to which a host's name is bound; '' for none."""
        if not await self._cell.others():
            return ""
        with self._cell.reading():
            return str(await self._cell.outside.get(self._cell.keys.home(host)) or "")

    async def is_shared(self, host: str) -> bool:
        """Return whether another cell has a host with this name, or the name is bound to it."""
        return await self.cell_of(host) not in ("", self._cell.name) or bool(await self._found_elsewhere(host))

    async def elsewhere(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return those of some hosts that another cell has, each with that cell."""
        found = dict[str, str]()
        for batch in chunks(hosts, HOMES_AT_ONCE) if hosts and await self._cell.others() else ():
            cells = await aio.gather(self._cell_or_record(host) for host in batch)
            found |= {host: cell for host, cell in zip(batch, cells, strict=True) if cell not in ("", self._cell.name)}
        return found

    async def _cell_or_record(self, host: str) -> str:
        return await self.cell_of(host) or await self._found_elsewhere(host)

    async def pools_elsewhere(self, pools: Iterable[str]) -> dict[str, str]:
        """Return those of some shared pools that another cell has, each with that cell."""
        found = {pool: await self._with_key(lambda keys, pool=pool: keys.pool(pool)) for pool in pools}  # type: ignore[misc]
        return {pool: cell for pool, cell in found.items() if cell}

    async def _found_elsewhere(self, host: str) -> str:
        """Return another cell that has a host with this name; '' for none. An agent's user may not see other cells."""
        return await self._with_key(lambda keys: keys.host(host))

    async def _with_key(self, key_of: Callable[[Keys], str]) -> str:
        for name in await self._cell.others():
            with self._cell.reading(), suppress(NoPermissionError):
                if await self._cell.outside.exists(key_of(Keys(name))):
                    return name
        return ""


def taken(host: str, cell: str, wanted: str) -> ClaimState:
    """Return the error for a host that one cell has and that reports to another one."""
    return ClaimState(
        f"host {host} is in cell {cell}, and a name is in one cell at a time: to have it in {wanted}, stop its agent, "
        f"and `redsched host remove {host} --cell {cell}` once it holds no claims there; if it is another machine, "
        "give it another name",
        ClaimStateFacts(host=host, cell=cell),
    )
