"""Read the event logs of all cells: in pages, the newest events, or events as they are recorded."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from redsched.errors import InvalidRequest
from redsched.model.validation import parse_int
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.queries import ALL, EventFilter
from redsched.scheduler.results import EventView, Page
from redsched.store.codec.fields import AMOUNT
from redsched.store.codec.results import Event

BATCH = 500
MAX_READ = 20_000
"""The most log entries read for one page. If the filter matches few of them, the page may be short or empty."""

_HEAD = frozenset(("at_ms", "seq", "kind"))


class EventService:
    """Events of all cells of a scheduler, read from the store."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def list(self, limit: int = 100, after: str = "", wanted: EventFilter = ALL) -> Page[EventView]:
        """Return events in the order they were recorded, cell by cell, after the event with the id `after`.

        Raises InvalidRequest or NotFound if `after` is not an event's id.
        """
        name, entry = _parse(after) if after else ("", "")
        cells = list(self._cells)
        if name:
            cells = cells[cells.index(self._cells.named(name)) :]
        page: list[EventView] = []
        read = 0
        for cell in cells:
            entry = entry or _first(wanted)
            while entries := await cell.store.events.read(entry, BATCH):
                for one in entries:
                    if len(page) == limit or read == MAX_READ:
                        return Page(tuple(page), f"{cell.name}:{entry or '0-0'}")
                    entry, read = one.entry_id, read + 1
                    if wanted.matches(one.fields):
                        page.append(_view(cell, one))
            entry = ""
        return Page(tuple(page))

    async def newest(self, limit: int = 100, wanted: EventFilter = ALL) -> Sequence[EventView]:
        """Return the latest events of all cells, ordered by time."""
        # Oldest first within each cell: the stable sort then keeps the order of events of the same millisecond.
        found = [one for cell in self._cells for one in reversed(await _newest(cell, limit, wanted))]
        return sorted(found, key=lambda one: one.at_ms)[-limit:]

    async def follow(self, every_s: float, after: str = "", wanted: EventFilter = ALL) -> AsyncIterator[EventView]:
        """Yield events as they are recorded, from now on; in the cell of the event `after`, those after it.

        Reads the logs every `every_s` seconds. Raises InvalidRequest, NotFound, StoreUnavailable.
        """
        reached = {cell: await _end_of(cell) for cell in self._cells}
        if after:
            name, entry = _parse(after)
            reached[self._cells.named(name)] = entry
        while True:
            for cell in self._cells:
                while entries := await cell.store.events.read(reached[cell], BATCH):
                    for one in entries:
                        reached[cell] = one.entry_id
                        if wanted.matches(one.fields):
                            yield _view(cell, one)
            await asyncio.sleep(every_s)


async def _newest(cell: Cell, limit: int, wanted: EventFilter) -> "list[EventView]":
    newest: list[EventView] = []
    before, read = "", 0
    while read < MAX_READ and (entries := await cell.store.events.read_before(before, BATCH)):
        for one in entries:
            before, read = one.entry_id, read + 1
            if wanted.matches(one.fields):
                newest.append(_view(cell, one))
            if len(newest) == limit or _recorded_ms(one) < wanted.since_ms:
                return newest
    return newest


def _first(wanted: EventFilter) -> str:
    """Return the entry after which the first event can be: none is recorded before it happens."""
    return f"{wanted.since_ms - 1}-0" if wanted.since_ms else ""


def _recorded_ms(one: Event) -> int:
    return int(one.entry_id.partition("-")[0])


async def _end_of(cell: Cell) -> str:
    newest = await cell.store.events.read_before("", 1)
    return newest[0].entry_id if newest else ""


def _view(cell: Cell, one: Event) -> EventView:
    fields = one.fields
    slots = {name[len(AMOUNT) :]: parse_int(value, 0) for name, value in fields.items() if name.startswith(AMOUNT)}
    facts = {name: value for name, value in fields.items() if name not in _HEAD and not name.startswith(AMOUNT)}
    entry = f"{cell.name}:{one.entry_id}"
    return EventView(entry, cell.name, int(fields["at_ms"]), int(fields["seq"]), fields["kind"], slots, facts)


def _parse(after: str) -> tuple[str, str]:
    name, _, entry = after.partition(":")
    ms, _, number = entry.partition("-")
    if not (name and all(part.isascii() and part.isdecimal() and len(part) <= 19 for part in (ms, number))):
        raise InvalidRequest(
            f"after {after[:80]!r} is not an event's id, `<cell>:<ms>-<n>`: pass an id as it was returned"
        )
    return name, entry
