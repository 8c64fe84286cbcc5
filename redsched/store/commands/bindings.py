"""With several cells, the cell to which a caller's id or a server group is bound. Stored outside all cells.

A group whose members depend on each other beyond one host has all of them in one cell, where a script can read them.
"""

from redsched.store.commands.base import CellClient

BOUND_MS = 1_200_000
"""How long the binding of an id is kept: longer than any copy of the call can be accepted, as copies are refused after
remember_s. After that, claims are found by reading all cells."""
FOR_EVER_MS = 0


class BindingCommands:
    """Binds ids and groups to this cell, and reads the cells to which they are bound."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def bind(self, claim_id: str, former: str, kept_ms: int) -> str:
        """Bind a caller's id to this cell unless it is bound to a cell other than `former`; return its cell. (bind.lua)

        `kept_ms`: how long the binding is kept; 0: forever.
        """
        reply = await self._cell.scripts.run(
            "bind", (self._cell.keys.binding(claim_id),), (self._cell.name, former, kept_ms)
        )
        return str(reply[1])

    async def cell_of(self, claim_id: str) -> str:
        """Return the cell to which a caller's id is bound; '' for none."""
        with self._cell.reading():
            return str(await self._cell.outside.get(self._cell.keys.binding(claim_id)) or "")

    async def cell_of_group(self, group: str) -> str:
        """Return the cell to which a group is pinned; '' for none."""
        with self._cell.reading():
            return str(await self._cell.outside.get(self._cell.keys.group_pin(group)) or "")

    async def bind_group(self, group: str) -> str:
        """Pin a group to this cell unless it is pinned to another; return its cell. (bind.lua)"""
        reply = await self._cell.scripts.run(
            "bind", (self._cell.keys.group_pin(group),), (self._cell.name, "", FOR_EVER_MS)
        )
        return str(reply[1])

    async def unbind_group(self, group: str) -> None:
        """Delete the pin of a group that was deleted."""
        with self._cell.reading():
            await self._cell.outside.delete(self._cell.keys.group_pin(group))
