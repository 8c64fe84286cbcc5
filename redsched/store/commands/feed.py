"""The feed of a cell: its changes and its clock."""

from collections.abc import Sequence
from dataclasses import replace

from redsched.errors import StoreUnavailable
from redsched.model.validation import parse_int
from redsched.store.client.reads import Command, exchange, fields_of
from redsched.store.codec.replies import Change, Clock, FeedEnd, Poll
from redsched.store.commands.base import CellClient

FEED_START = "0-0"
CLOCK = ("epoch", "seq", "settled", "settle_at_ms", "unattested", "missing")
"""The fields of meta that `clock_of` reads."""
_HEAD = ["seq", "kind", "name", "version", "op", "more"]
"""The first fields of an entry, in the order in which the scripts write them."""


class FeedCommands:
    """Reads of the feed."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def poll(self, after: str, most: int) -> Poll:
        """Return the cell's clock and up to `most` entries of its feed after entry `after`.

        The clock is read first, so a replica that has applied all changes up to its seq reflects every reply before
        this call.
        """
        keys = self._cell.keys
        reads: tuple[Command, ...] = (
            ("HMGET", keys.meta, *CLOCK),
            ("TIME",),
            ("ZRANGE", keys.deadlines, 0, 0, "WITHSCORES"),
            ("XRANGE", keys.changes, f"({after}", "+", "COUNT", most),
        )
        with self._cell.reading():
            meta, time, next_due, entries = await exchange(self._cell.reader, reads)
        deadline_ms = int(float(next_due[1])) if next_due else None
        return Poll(clock_of(meta, time), deadline_ms, tuple(_change(one, values) for one, values in entries))

    async def read(self, after: str, most: int) -> tuple[Change, ...]:
        """Return up to `most` entries of the feed after entry `after`."""
        return (await self.poll(after, most)).changes

    async def clock_without_fence(self) -> Clock:
        """Return the cell's clock without writing. Raises StoreUnavailable if the cell does not exist.

        As long as no writer has noticed that another server has taken over, or that the time to settle is over, the
        cell's hash does not show it. So both are checked here.
        """
        pipe = self._cell.reader.pipeline(transaction=False)
        pipe.hmget(self._cell.keys.meta, *CLOCK, "replid")
        pipe.time()
        pipe.info("replication")
        with self._cell.reading():
            (*meta, replid), time, replication = await pipe.execute()
        clock = clock_of(meta, time)
        if clock is None:
            raise no_cell(self._cell.name)
        is_same = replid == replication["master_replid"]
        return replace(clock, settled=is_same and (clock.settled or clock.now_ms >= clock.settle_at_ms))

    async def end(self) -> FeedEnd:
        """Return where the feed ends now: the id of its newest entry and the clock, at one instant.

        MULTI is not used, because a full server refuses it: values are of one instant if nothing changed during the
        reads.
        """
        pipe = self._cell.reader.pipeline(transaction=False)
        while True:
            pipe.hmget(self._cell.keys.meta, *CLOCK)
            pipe.time()
            pipe.xrevrange(self._cell.keys.changes, count=1)
            pipe.hmget(self._cell.keys.meta, *CLOCK)
            with self._cell.reading():
                meta, time, newest, after = await pipe.execute()
            if meta == after:
                return FeedEnd(clock_of(meta, time), str(newest[0][0]) if newest else FEED_START)


def no_cell(name: str) -> StoreUnavailable:
    """Return the error for a cell that does not exist, on a connection that only reads."""
    return StoreUnavailable(
        f"cell {name} does not exist, and this connection only reads: start a scheduler or run `redsched init` as a "
        "user who may write"
    )


def clock_of(meta: Sequence[str | None], time: Sequence[int]) -> Clock | None:
    """Return the clock; None if there is no meta: the cell is new, or was wiped."""
    epoch, seq, settled, settle_at_ms, unattested, missing = meta
    if epoch is None:
        return None
    now_ms, waits = int(time[0]) * 1000 + int(time[1]) // 1000, waits_of(settle_at_ms, unattested, missing)
    return Clock(epoch, int(seq or 0), now_ms, settled == "1", *waits)


def waits_of(settle_at_ms: str | None, unattested: str | None, missing: str | None) -> tuple[int, int, int]:
    """Return what a clock has about how long the cell waits for which hosts, from the fields of meta."""
    return parse_int(settle_at_ms or "", 0), signed(unattested), signed(missing or "-1")


def signed(text: str | None) -> int:
    """Parse a field that is -1 if a number is not known, and 0 if it is missing or invalid."""
    return -1 if text == "-1" else parse_int(text or "", 0)


def _change(entry_id: str, values: list[str]) -> Change:
    """Return an entry of the feed from its fields and values. Every scheduler reads every entry, so this is fast."""
    if values[:12:2] == _HEAD:
        head, rest = values[1:12:2], fields_of(values[12:])
    else:
        rest = fields_of(values)
        head = [rest.pop(name) for name in _HEAD]
    seq, kind, name, version, op, more = head
    return Change(entry_id, int(seq), kind, name, int(version), op, int(more), rest)
