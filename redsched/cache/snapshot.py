"""A full read of a cell: for the start of a replica, and for its recovery after a gap or in a new epoch."""

import asyncio
from collections.abc import Iterator
from itertools import islice

from redsched import aio
from redsched.cache.bulk import put_new
from redsched.cache.columns import Columns
from redsched.cache.feed import Gap
from redsched.cache.reading import names_of, read_into
from redsched.cache.replica import CellReplica
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import FeedEnd

MAX_ENTRIES = 1000
PAGE = 100
"""Hosts read in one pipeline: few enough not to block the server or the event loop for more than some milliseconds."""
READERS = 2
"""The server reads the hosts of one page while this process adds those of another."""


async def take_snapshot(cell: CellStore) -> CellReplica:
    """Read a whole cell, then apply the feed up to its end at the time when the read was complete.

    Before that, the replica may have only a part of what a script wrote; after that it is consistent.
    """
    while True:
        start = await cell.feed.end()
        if start.clock is None:
            # The fence gives a new or wiped cell its meta and an epoch.
            await cell.tick()
            continue
        replica = CellReplica(
            await _read_all(cell, start.clock.epoch), start.clock.epoch, start.entry_id, start.clock.seq
        )
        try:
            if await _complete(cell, replica, await cell.feed.end()):
                return replica
        except Gap:
            continue


async def _complete(cell: CellStore, replica: CellReplica, end: FeedEnd) -> bool:
    """Apply the changes made during the read; return False if the store's epoch or data changed meanwhile."""
    if end.clock is None or end.clock.epoch != replica.epoch or end.clock.seq < replica.seq:
        return False
    while replica.seq < end.clock.seq:
        poll = await cell.feed.poll(replica.entry_id, MAX_ENTRIES)
        await replica.advance(cell, poll.changes, end.clock.seq)
    return True


async def _read_all(cell: CellStore, epoch: str) -> Columns:
    names = {kind: await names_of(cell, kind) for kind in Kind}
    columns = Columns(len(names[Kind.HOST]))
    columns.set_epoch(epoch)
    hosts = iter(names.pop(Kind.HOST))
    await aio.gather(_read_pages(cell, columns, hosts) for _ in range(READERS))
    for kind, others in names.items():
        await read_into(cell, columns, kind, others)
    columns.workload = await cell.workload.read()
    return columns


async def _read_pages(cell: CellStore, columns: Columns, names: Iterator[str]) -> None:
    while page := list(islice(names, PAGE)):
        put_new(columns, await cell.hosts.flat(page))
        await asyncio.sleep(0)
