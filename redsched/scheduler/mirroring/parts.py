"""The hosts of a cell in columns: its replica, or parts read from the store if this scheduler does not mirror it."""

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from redsched.model import OneOf, Request
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell, Cells
from redsched.store.codec.keys import Kind
from redsched.store.commands.base import chunks

if TYPE_CHECKING:
    from redsched.cache.columns import Columns


async def columns_in_parts(cell: Cell) -> "AsyncIterator[Columns]":
    """Yield columns that together have all hosts of a cell. The caller has the replica catch up. Raises Unavailable."""
    if cell.is_here:
        yield cell.updater.columns
        return
    from redsched.cache.columns import Columns  # with NumPy, which commands about one thing do not need
    from redsched.cache.reading import read_into

    for names in chunks(sorted(await cell.store.hosts.names())):
        part = Columns(len(names))
        part.set_epoch(cell.updater.epoch)
        await read_into(cell.store, part, Kind.HOST, names)
        yield part


async def host_names(cell: Cell, fits: Request | None = None, **filters: OneOf) -> list[str]:
    """Return the hosts of a cell that match these filters of `Columns.names_where`, and that a request fits on.

    Raises Unavailable, and InvalidRequest for a request that the settings do not allow.
    """
    if not (cell.is_here or fits or any(filters.values())):
        return await cell.store.hosts.names()
    found: list[str] = []
    async for part in columns_in_parts(cell):
        fitting = await _fitting(cell, part, fits) if fits else None
        found += [name for name in part.names_where(**filters) if fitting is None or name in fitting]
    return found


async def _fitting(cell: Cell, part: "Columns", fits: Request) -> frozenset[str]:
    from redsched.decide import Decider

    is_replica = cell.is_here and part is cell.updater.columns
    decider = cell.decider if is_replica else Decider(part, cell.settings, cell.plugins())
    return await in_slices(decider.fitting_steps(fits))


async def unknown_hosts(cells: Cells, names: Iterable[str]) -> list[str]:
    """Return those of these hosts that no cell knows, sorted. Raises Unavailable."""
    await cells.catch_up()
    missing = [name for name in sorted(names) if all(name not in cell.updater.columns for cell in cells.here)]
    for cell in cells.elsewhere:
        found = {host.name for part in chunks(missing) for host in await cell.store.hosts.read(part) if host.fields}
        missing = [name for name in missing if name not in found]
    return missing
