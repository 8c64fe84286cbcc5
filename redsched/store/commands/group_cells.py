"""With several cells, the cell to which a server group is pinned by its first claim. Lies outside every cell."""

from redsched.store.commands.reads import Reads
from redsched.store.topology.connection import reading

FOR_EVER_MS = 0


class GroupPins(Reads):
    """Groups whose members must know of each other beyond one host live in one cell: there one script sees them all."""

    async def pinned_to(self, group: str) -> str:
        """The cell that a group is pinned to; '' for none."""
        with reading(self._url):
            return str(await self._outside.get(self.keys.group_pin(group)) or "")

    async def pin(self, group: str) -> str:
        """Pin a group to this cell unless it is pinned to another; its cell now. (bind.lua)"""
        reply = await self._runner.run("bind", (self.keys.group_pin(group),), (self.name, "", FOR_EVER_MS))
        return str(reply[1])

    async def unpin(self, group: str) -> None:
        """Forget the pin of a group that was deleted."""
        with reading(self._url):
            await self._outside.delete(self.keys.group_pin(group))
