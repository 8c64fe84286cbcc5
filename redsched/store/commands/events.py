"""The event log of a cell: recording changes into it, and reading it."""

from collections.abc import Mapping, Sequence
from typing import Any

from redsched.store.codec.replies import Event, Recorded, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient
from redsched.store.commands.feed import FEED_START


class EventCommands:
    """Records events, and reads the log."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def record(
        self, after: str, upto: Recorded, events: Sequence[Mapping[str, str]], epoch: str, keep_s: float, most: int
    ) -> ScriptResult:
        """Append events made from the changes after entry `after`, up to `upto`, to the log. OK | RETRY. (record.lua)

        RETRY: another entry was recorded last, or the cell is no longer in the epoch in which the changes were read.
        """
        parts: list[str | int] = []
        for event in events:
            parts += (2 * len(event), *flat(event))
        arguments = (after, upto.entry_id, upto.seq, epoch, int(keep_s * 1000), most, len(events), *parts)
        return await self._cell.answer("record", (self._cell.keys.events, self._cell.keys.recorder), arguments)

    async def recorded(self) -> Recorded:
        """Return the entry of the feed that was recorded last; ('', 0) if there is none."""
        with self._cell.reading():
            entry_id, seq = await self._cell.reader.hmget(self._cell.keys.recorder, "entry", "seq")
        return Recorded(entry_id or "", int(seq or 0))

    async def read(self, after: str, most: int) -> list[Event]:
        """Return up to `most` entries of the log after entry `after` ('': from the oldest), in order."""
        with self._cell.reading():
            return _events(
                await self._cell.reader.xrange(self._cell.keys.events, f"({after or FEED_START}", "+", count=most)
            )

    async def read_on(self, at: str, most: int) -> tuple[bool, list[Event]]:
        """Return whether the log has the entry `at`, and up to `most` entries after it, in order.

        If it does not, it was trimmed, or the store has lost it, so entries may be missing. FEED_START is always there.
        """
        if at == FEED_START:
            return True, await self.read(at, most)
        with self._cell.reading():
            found = _events(await self._cell.reader.xrange(self._cell.keys.events, at, "+", count=most + 1))
        is_there = bool(found) and found[0].entry_id == at
        return is_there, found[1:] if is_there else found

    async def read_before(self, before: str, most: int) -> list[Event]:
        """Return up to `most` entries of the log before entry `before` ('': from the newest), newest first."""
        top = f"({before}" if before else "+"
        with self._cell.reading():
            return _events(await self._cell.reader.xrevrange(self._cell.keys.events, top, "-", count=most))


def _events(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
    return [Event(entry_id, fields) for entry_id, fields in entries]
