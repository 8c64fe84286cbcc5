"""Follow the changes of cells through the entries that the replicas have applied, without load on the store."""

import asyncio
from collections.abc import AsyncIterator

from redsched.errors import InvalidRequest
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.results import Change, Reset
from redsched.store.codec.results import Change as Entry


def follow(cells: Cells, last_id: str = "") -> AsyncIterator[Change | Reset]:
    """Yield every change from now on; in the cell that `last_id` (`<cell>:<seq>`) names, those after that one.

    A Reset means that changes are missing. Raises InvalidRequest or NotFound for an invalid `last_id`, at the call and
    not at the first iteration.
    """
    followers = [_Follower(cell) for cell in cells]
    if last_id:
        name, seq = parse_position(last_id)
        cells.named(name)
        for follower in followers:
            if follower.cell.name == name:
                follower.seq = seq
    return _changes(followers)


async def _changes(followers: "list[_Follower]") -> AsyncIterator[Change | Reset]:
    while True:
        waits = [asyncio.ensure_future(follower.cell.updater.moved()) for follower in followers]
        try:
            for follower in followers:
                for one in follower.new_entries():
                    yield one
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


class _Follower:
    """The position of one reader in one cell."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.seq = cell.updater.seq
        self.epoch = cell.updater.epoch

    def new_entries(self) -> "list[Change | Reset]":
        updater = self.cell.updater
        oldest = updater.recent[0].seq if updater.recent else updater.seq + 1
        if updater.epoch != self.epoch or not oldest - 1 <= self.seq <= updater.seq:
            self.seq, self.epoch = updater.seq, updater.epoch
            return [Reset(self.cell.name, updater.seq)]
        # By index: walking a deque from its start would cost each reader all that is kept.
        entries = [updater.recent[seq - oldest] for seq in range(self.seq + 1, updater.seq + 1)]
        self.seq = updater.seq
        return [change_of(self.cell.name, one) for one in entries]


def change_of(cell: str, entry: Entry) -> Change:
    """Return the change that an entry of a cell's feed describes."""
    return Change(cell, entry.seq, entry.kind, entry.name, entry.version, entry.op, entry.fields)


def parse_position(last_id: str) -> tuple[str, int]:
    """Return the cell and the seq of an event id. Raises InvalidRequest."""
    name, _, seq = last_id.rpartition(":")
    if not (name and seq.isdecimal() and seq.isascii() and len(seq) <= 16):
        raise InvalidRequest(f"Last-Event-ID {last_id[:80]!r} is not `<cell>:<seq>`: pass the id of the last event")
    return name, int(seq)
