"""Reading whole objects of a cell into its columns: all for a snapshot, or the few that the feed cannot update."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redsched.pacing import paced
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind

if TYPE_CHECKING:
    from redsched.cache.columns import Columns

CHUNK = 50
"""Hosts read per pipeline: enough to hide the round trip, few enough not to block the server or the loop."""


async def names_of(cell: CellStore, kind: Kind) -> list[str]:
    """Return the names of all objects of a kind."""
    return await (cell.hosts.names() if kind is Kind.HOST else cell.declared.names(kind))


async def read_into(cell: CellStore, columns: "Columns", kind: Kind, names: Sequence[str]) -> None:
    """Read these objects of a kind and put them into the columns. Objects that do not exist are skipped."""
    if kind is not Kind.HOST:
        async for name, fields in paced((await cell.declared.read(kind, names)).items()):
            columns.declared.put(kind, name, fields)
        return
    for first in range(0, len(names), CHUNK):
        async for host in paced(await cell.hosts.read(names[first : first + CHUNK])):
            if host.fields:
                columns.put(host.name, host.fields)
