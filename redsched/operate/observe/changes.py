"""Follow the changes of cells through the entries that the replicas have applied, without load on the store."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from redsched.model.positions import Position, id_of, parse_positions
from redsched.model.records.changes import Change, Reset
from redsched.scheduler.cells import Cell, Cells
from redsched.store.codec.replies import Change as Entry


def follow(cells: Cells, last_id: str = "") -> AsyncIterator[Change | Reset]:
    """Yield every change from now on; with `last_id`, those after the change or reset that has this id.

    A Reset means that changes of its cell are missing: also if the id is of another epoch, or does not name the cell.
    Raises InvalidRequest or NotFound for an invalid `last_id`, at the call and not at the first iteration.
    """
    known = known_positions(cells, last_id)
    return _changes([_Follower(cell, known) for cell in cells])


def known_positions(cells: Cells, last_id: str) -> Mapping[str, Position] | None:
    """Return the positions of an id by cell; None without an id. Raises InvalidRequest or NotFound."""
    if not last_id:
        return None
    known = parse_positions(last_id)
    for name in known:
        cells.named(name)
    return known


async def _changes(followers: "list[_Follower]") -> AsyncIterator[Change | Reset]:
    while True:
        waits = [asyncio.ensure_future(follower.cell.updater.moved()) for follower in followers]
        try:
            for follower in followers:
                entries = follower.new_entries()
                others = id_of(one.position for one in followers if one is not follower and one.position is not None)
                for one in entries:
                    yield replace(one, id=f"{one.id},{others}") if others else one
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


class _Follower:
    """The position of one reader in one cell; None until a Reset has told it."""

    def __init__(self, cell: Cell, known: Mapping[str, Position] | None) -> None:
        self.cell = cell
        self.position = self._head if known is None else known.get(cell.name)
        if self.position is not None and self.position.epoch != cell.updater.epoch:
            self.position = None

    @property
    def _head(self) -> Position:
        return Position(self.cell.name, self.cell.updater.epoch, self.cell.updater.seq)

    def new_entries(self) -> "list[Change | Reset]":
        updater, at, self.position = self.cell.updater, self.position, self._head
        oldest = updater.recent[0].seq if updater.recent else updater.seq + 1
        if at is None or at.epoch != updater.epoch or not oldest - 1 <= at.seq <= updater.seq:
            return [Reset(self.cell.name, updater.seq, self.position.id)]
        # By index: walking a deque from its start would cost each reader all that is kept.
        entries = [updater.recent[seq - oldest] for seq in range(at.seq + 1, updater.seq + 1)]
        return [change_of(self.cell.name, updater.epoch, one) for one in entries]


def change_of(cell: str, epoch: str, entry: Entry) -> Change:
    """Return the change that an entry of a cell's feed describes. Its id has the position in this cell alone."""
    position = Position(cell, epoch, entry.seq)
    return Change(cell, entry.seq, entry.kind, entry.name, entry.version, entry.op, entry.fields, position.id)
