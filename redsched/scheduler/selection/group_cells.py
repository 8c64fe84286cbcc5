"""With several cells, the one cell in which the members of a server group are placed.

Rules per host are exact over all cells, for a host is in one of them. Affinity, and whatever counts by zone or label,
needs all members in sight of one script: such a group belongs to the cell of its first claim for as long as it exists.
"""

import asyncio
from collections.abc import Iterator

from redsched.cache.columns import Columns
from redsched.errors import NoValidHost
from redsched.model import GroupPolicy, Request
from redsched.scheduler.cells import Cell, Cells

_PER_HOST = frozenset((GroupPolicy.ANTI_AFFINITY, GroupPolicy.SOFT_ANTI_AFFINITY))


class GroupCells:
    """The groups of a request, and the cell that they are pinned to."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def home(self, request: Request) -> Cell | None:
        """The cell to which a group of the request is pinned; None where that is open.

        Raises NoValidHost for groups that are pinned to different cells.
        """
        groups = self._groups(request)
        if not groups:
            return None
        any_cell = next(iter(self._cells))
        found = await asyncio.gather(*(any_cell.store.bindings.cell_of_group(group) for group in groups))
        pinned = {group: name for group, name in zip(groups, found, strict=True) if name}
        if len(set(pinned.values())) > 1:
            where = ", ".join(f"{group} in {name}" for group, name in sorted(pinned.items()))
            raise NoValidHost(f"the server groups of this request have their members in different cells: {where}")
        return self._cells.named(next(iter(pinned.values()))) if pinned else None

    async def pin(self, request: Request, cell: Cell) -> Cell:
        """Pin the request's groups to a cell; the cell they are pinned to, which may be another by now."""
        for group in self._groups(request):
            pinned = await cell.store.bindings.bind_group(group)
            if pinned != cell.name:
                return self._cells.named(pinned)
        return cell

    def _groups(self, request: Request) -> list[str]:
        if len(self._cells) < 2:
            return []
        columns = next(iter(self._cells)).mirror.columns
        return sorted(set(_pinned(request, columns)))


def _pinned(request: Request, columns: Columns) -> Iterator[str]:
    for one in request.members:
        yield from _pinned(one.request, columns)
    group = columns.declared.groups.get(request.server_group)
    if group is None:
        return
    if request.spread or group.group.by != "host" or group.group.policy not in _PER_HOST:
        yield request.server_group
