"""Pin server groups to one cell each, if there are several cells.

Rules per host are exact over all cells, because each host is in only one. Affinity, and rules that count by zone or
label, need all members in one cell, where a script can read their counts. Such a group is pinned to the cell of its
first claim for as long as the group exists.
"""

from collections.abc import Iterator

from redsched import aio
from redsched.cache.columns import Columns
from redsched.errors import NoValidHost
from redsched.model import GroupPolicy, Request
from redsched.scheduler.cells import Cell, Cells

_PER_HOST = frozenset((GroupPolicy.ANTI_AFFINITY, GroupPolicy.SOFT_ANTI_AFFINITY))


class GroupCells:
    """Pins the server groups of requests to cells."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def home(self, request: Request) -> Cell | None:
        """Return the cell to which the groups of the request are pinned; None if they are not pinned.

        Raises NoValidHost for groups that are pinned to different cells.
        """
        groups = self._groups(request)
        if not groups:
            return None
        any_cell = next(iter(self._cells))
        found = await aio.gather(any_cell.store.bindings.cell_of_group(group) for group in groups)
        pinned = {group: name for group, name in zip(groups, found, strict=True) if name}
        if len(set(pinned.values())) > 1:
            where = ", ".join(f"{group} in {name}" for group, name in sorted(pinned.items()))
            raise NoValidHost(f"the server groups of this request have their members in different cells: {where}")
        return self._cells.named(next(iter(pinned.values()))) if pinned else None

    async def pin(self, request: Request, cell: Cell) -> Cell:
        """Pin the request's groups to a cell. Returns the cell to which they are pinned, which may be another one."""
        for group in self._groups(request):
            pinned = await cell.store.bindings.bind_group(group)
            if pinned != cell.name:
                return self._cells.named(pinned)
        return cell

    def _groups(self, request: Request) -> list[str]:
        if len(self._cells) < 2:
            return []
        columns = self._cells.here[0].updater.columns  # groups are declared in every cell
        return sorted(set(_pinned(request, columns)))


def _pinned(request: Request, columns: Columns) -> Iterator[str]:
    for one in request.members:
        yield from _pinned(one.request, columns)
    group = columns.declared.groups.get(request.server_group)
    if group is None:
        return
    if request.spread or group.group.by != "host" or group.group.policy not in _PER_HOST:
        yield request.server_group
