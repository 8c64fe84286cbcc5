"""The event log of a cell: recording changes into it and reading it; and who has a duty that one does at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import Event, Recorded, ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.reads import FEED_START, Reads
from redsched.store.topology.connection import reading


class EventCalls(Reads):
    """Scripts duty and record, and reads of the log."""

    async def take_duty(self, duty: str, scheduler: str, lease_ms: int) -> bool:
        """Whether the duty is this scheduler's, for `lease_ms` from now; 0 gives it up. (duty.lua)"""
        reply = await self._runner.run("duty", (self.keys.duty(duty),), (scheduler, lease_ms))
        return bool(reply[0] == Outcome.OK)

    async def record(
        self, after: str, upto: Recorded, events: Sequence[Mapping[str, str]], keep_s: float, most: int
    ) -> ScriptResult:
        """Put events into the log that were made from the changes after entry `after`, up to `upto`. OK | RETRY.

        RETRY: another entry was recorded last. (record.lua)
        """
        parts: list[str | int] = []
        for event in events:
            parts += (2 * len(event), *flat(event))
        arguments = (after, upto.entry_id, upto.seq, int(keep_s * 1000), most, len(events), *parts)
        return await self._answer("record", (self.keys.events, self.keys.recorder), arguments)

    async def recorded(self) -> Recorded:
        """Which entry of the feed was recorded last; ('', 0) before any."""
        with reading(self._url):
            entry_id, seq = await self._reader.hmget(self.keys.recorder, "entry", "seq")
        return Recorded(entry_id or "", int(seq or 0))

    async def events(self, after: str, most: int) -> list[Event]:
        """Up to `most` entries of the log after entry `after` ('': from the oldest), in order."""
        with reading(self._url):
            return _events(await self._reader.xrange(self.keys.events, f"({after or FEED_START}", "+", count=most))

    async def events_before(self, before: str, most: int) -> list[Event]:
        """Up to `most` entries of the log before entry `before` ('': from the newest), the newest first."""
        top = f"({before}" if before else "+"
        with reading(self._url):
            return _events(await self._reader.xrevrange(self.keys.events, top, "-", count=most))


def _events(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
    return [Event(entry_id, fields) for entry_id, fields in entries]
