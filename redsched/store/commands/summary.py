"""The summary of a cell: writing it, and reading it together with the cell's clock."""

from redsched.store.client.reads import exchange, fields_of
from redsched.store.codec.results import Clock, ScriptResult
from redsched.store.codec.summary import CellSummary
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient
from redsched.store.commands.feed import CLOCK, clock_of

KEPT_MS = 600_000
"""How long the store keeps a summary that is not written again."""


class SummaryCommands:
    """Writes and reads the summary."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def write(self, summary: CellSummary) -> ScriptResult:
        """Replace the summary; the store sets `at_ms`. OK | WRONG_EPOCH. (summary.lua)"""
        arguments = (summary.epoch, KEPT_MS, *flat(summary.fields()))
        return await self._cell.answer("summary", (self._cell.keys.summary,), arguments)

    async def read(self) -> tuple[Clock | None, CellSummary | None]:
        """Return the cell's clock (None: it is new, or was wiped), and the summary; None if it is of another epoch."""
        keys = self._cell.keys
        with self._cell.reading():
            meta, time, fields = await exchange(
                self._cell.reader, (("HMGET", keys.meta, *CLOCK), ("TIME",), ("HGETALL", keys.summary))
            )
        clock, summary = clock_of(meta, time), CellSummary.parse(fields_of(fields))
        is_current = clock is not None and summary is not None and summary.epoch == clock.epoch
        return clock, summary if is_current else None
