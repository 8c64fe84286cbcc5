"""With several cells, the cell that a caller's id or a server group is bound to. Stored outside every cell.

A group whose members depend on each other beyond one host lives in one cell, where one script sees them all.
"""

from redsched.store.commands.base import CellClient

FOR_EVER_MS = 0


class BindingCommands:
    """Binds ids and groups to this cell, and reads what they are bound to."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def bind(self, claim_id: str, former: str, kept_ms: int) -> str:
        """Bind a caller's id to this cell unless another than `former` has it; return its cell now. (bind.lua)

        `kept_ms`: how long the binding is kept; 0: forever.
        """
        reply = await self._cell.scripts.run(
            "bind", (self._cell.keys.binding(claim_id),), (self._cell.name, former, kept_ms)
        )
        return str(reply[1])

    async def cell_of(self, claim_id: str) -> str:
        """Return the cell that a caller's id is bound to; '' for none."""
        with self._cell.reading():
            return str(await self._cell.outside.get(self._cell.keys.binding(claim_id)) or "")

    async def cell_of_group(self, group: str) -> str:
        """Return the cell that a group is pinned to; '' for none."""
        with self._cell.reading():
            return str(await self._cell.outside.get(self._cell.keys.group_pin(group)) or "")

    async def bind_group(self, group: str) -> str:
        """Pin a group to this cell unless it is pinned to another; return its cell now. (bind.lua)"""
        reply = await self._cell.scripts.run(
            "bind", (self._cell.keys.group_pin(group),), (self._cell.name, "", FOR_EVER_MS)
        )
        return str(reply[1])

    async def unbind_group(self, group: str) -> None:
        """Delete the pin of a group that was deleted."""
        with self._cell.reading():
            await self._cell.outside.delete(self._cell.keys.group_pin(group))
