"""The feed of a cell: its changes and its clock."""

from collections.abc import Sequence

from redsched.store.client.reads import Command, exchange, fields_of
from redsched.store.codec.results import Change, Clock, FeedEnd, Poll
from redsched.store.commands.base import CellClient

FEED_START = "0-0"


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
            ("HMGET", keys.meta, "epoch", "seq", "settled"),
            ("TIME",),
            ("ZRANGE", keys.deadlines, 0, 0, "WITHSCORES"),
            ("XRANGE", keys.changes, f"({after}", "+", "COUNT", most),
        )
        with self._cell.reading():
            meta, time, next_due, entries = await exchange(self._cell.reader, reads)
        deadline_ms = int(float(next_due[1])) if next_due else None
        return Poll(_clock(meta, time), deadline_ms, tuple(_change(one, fields_of(fields)) for one, fields in entries))

    async def read(self, after: str, most: int) -> tuple[Change, ...]:
        """Return up to `most` entries of the feed after entry `after`."""
        return (await self.poll(after, most)).changes

    async def end(self) -> FeedEnd:
        """Return where the feed ends now: the id of its newest entry and the clock, at one instant.

        MULTI is not used, because a full server refuses it: values are of one instant if nothing changed during the
        reads.
        """
        pipe = self._cell.reader.pipeline(transaction=False)
        while True:
            pipe.hmget(self._cell.keys.meta, "epoch", "seq", "settled")
            pipe.time()
            pipe.xrevrange(self._cell.keys.changes, count=1)
            pipe.hmget(self._cell.keys.meta, "epoch", "seq", "settled")
            with self._cell.reading():
                meta, time, newest, after = await pipe.execute()
            if meta == after:
                return FeedEnd(_clock(meta, time), str(newest[0][0]) if newest else FEED_START)


def _clock(meta: Sequence[str | None], time: Sequence[int]) -> Clock | None:
    """Return the clock; None if there is no meta: the cell is new, or was wiped."""
    epoch, seq, settled = meta
    if epoch is None:
        return None
    return Clock(epoch, int(seq or 0), int(time[0]) * 1000 + int(time[1]) // 1000, settled == "1")


def _change(entry_id: str, fields: dict[str, str]) -> Change:
    take = fields.pop
    return Change(
        entry_id,
        int(take("seq")),
        take("kind"),
        take("name"),
        int(take("version")),
        take("op"),
        int(take("more")),
        fields,
    )
