"""Read the event logs of all cells: in pages, the newest events, or events as they are recorded.

The id of an event names its entry in the log of its cell. With several cells, the places in the other logs follow that
its reader had reached, so that a list can go on in every cell: `c1:1795405899512-0,c2:1795405899498-3`. A log that does
not have the entry it should go on after has been trimmed or lost since: a `reset` says so, and the log is read from its
start.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from redsched.errors import InvalidRequest
from redsched.model import OneOf
from redsched.model.filters import ALL, RESET, EventFilter
from redsched.model.limits import check_limit
from redsched.model.records.events import Event
from redsched.model.records.pages import Page
from redsched.model.validation import check_name, parse_int
from redsched.scheduler.cells import Cell, Cells
from redsched.store.codec.fields import AMOUNT
from redsched.store.codec.replies import Event as LoggedEvent
from redsched.store.commands.feed import FEED_START

BATCH = 500
MAX_READ = 20_000
"""The most log entries read for one page. If the filter matches few of them, the page may be short or empty."""
MISSING = "the log does not go on after this id: events may be missing, and all that it has follow"

_HEAD = frozenset(("at_ms", "seq", "kind"))


class EventService:
    """Events of all cells of a scheduler, read from the store."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def list(self, limit: int = 100, after: str = "", wanted: EventFilter = ALL) -> Page[Event]:
        """Return events in the order they were recorded, cell by cell, after the event with the id `after`.

        An event of kind `reset` comes first in a cell whose log does not go on there, or which `after` does not name.
        Raises InvalidRequest or NotFound if `after` is not an event's id.
        """
        check_limit(limit)
        reached = self._places(after) if after else {cell.name: FEED_START for cell in self._cells}
        page: list[Event] = []
        read = 0
        for cell in self._cells:
            async for one in _after(cell, reached.get(cell.name), _first(wanted)):
                if len(page) == limit or read == MAX_READ:
                    return Page(tuple(page), _id(reached))
                reached[cell.name], read = one.entry_id if one else FEED_START, read + 1
                if one is None:
                    page.append(await _reset(cell, reached))
                elif wanted.matches(one.fields):
                    page.append(_view(cell, one, reached))
        return Page(tuple(page))

    async def newest(self, limit: int = 100, wanted: EventFilter = ALL) -> tuple[Event, ...]:
        """Return the latest events of all cells, ordered by time."""
        check_limit(limit)
        # Oldest first within each cell: the stable sort then keeps the order of events of the same millisecond.
        found = [(cell, one) for cell in self._cells for one in reversed(await _newest(cell, limit, wanted))]
        found.sort(key=lambda one: int(one[1].fields["at_ms"]))
        reached: dict[str, str] = {}
        views: list[Event] = []
        for cell, one in found[-limit:]:
            reached[cell.name] = one.entry_id
            views.append(_view(cell, one, reached))
        return tuple(views)

    async def of_claim(
        self, claim_id: str, kind: OneOf = None, newest: bool = False, limit: int = 100, after: str = ""
    ) -> Page[Event]:
        """Return the events of a claim as `list` does; with `newest`, the latest ones. Raises as `list` does."""
        check_name("claim id", claim_id)
        return await self.page(EventFilter(claim=claim_id, kind=kind), newest, limit, after)

    async def page(self, wanted: EventFilter, newest: bool, limit: int, after: str) -> Page[Event]:
        """Return matching events as `list` does; with `newest`, the latest ones. Raises as `list` does."""
        if newest and after:
            raise InvalidRequest("newest and after both set where the list starts: use one of them")
        return Page(await self.newest(limit, wanted)) if newest else await self.list(limit, after, wanted)

    async def follow(self, every_s: float, after: str = "", wanted: EventFilter = ALL) -> AsyncIterator[Event]:
        """Yield events as they are recorded, from now on; with `after`, all after the event with that id.

        Yields a `reset` as `list` does, also when a log is lost meanwhile. Reads the logs every `every_s` seconds.
        Raises InvalidRequest, NotFound, StoreUnavailable.
        """
        reached = self._places(after) if after else {cell.name: await _end_of(cell) for cell in self._cells}
        while True:
            for cell in self._cells:
                async for one in _after(cell, reached.get(cell.name), FEED_START):
                    reached[cell.name] = one.entry_id if one else FEED_START
                    if one is None:
                        yield await _reset(cell, reached)
                    elif wanted.matches(one.fields):
                        yield _view(cell, one, reached)
            await asyncio.sleep(every_s)

    def _places(self, after: str) -> dict[str, str]:
        """Return the entries that an id names, by cell. Raises InvalidRequest or NotFound."""
        found: dict[str, str] = {}
        for name, entry in map(_parse, after.split(",")):
            if name in found:
                raise _not_an_id(after)
            found[self._cells.named(name).name] = entry
        return found


async def _after(cell: Cell, at: str | None, first: str) -> AsyncIterator[LoggedEvent | None]:
    """Yield the events of a cell after the entry `at`, and after `first`; None if events before may be missing.

    `at` None: it is not known where to go on.
    """
    if at is None:
        yield None
        at = FEED_START
    while True:
        is_there, entries = await cell.store.events.read_on(at, BATCH)
        if not is_there:
            yield None
        if not is_there or at == FEED_START != first:
            entries = await cell.store.events.read(first, BATCH)
        for one in entries:
            yield one
        if not entries:
            return
        at = entries[-1].entry_id


async def _newest(cell: Cell, limit: int, wanted: EventFilter) -> list[LoggedEvent]:
    newest: list[LoggedEvent] = []
    before, read = "", 0
    while read < MAX_READ and (entries := await cell.store.events.read_before(before, BATCH)):
        for one in entries:
            before, read = one.entry_id, read + 1
            if wanted.matches(one.fields):
                newest.append(one)
            if len(newest) == limit or _recorded_ms(one) < wanted.since_ms:
                return newest
    return newest


def _first(wanted: EventFilter) -> str:
    """Return the entry after which the first event can be: none is recorded before it happens."""
    return f"{wanted.since_ms - 1}-0" if wanted.since_ms else FEED_START


def _recorded_ms(one: LoggedEvent) -> int:
    return int(one.entry_id.partition("-")[0])


async def _end_of(cell: Cell) -> str:
    newest = await cell.store.events.read_before("", 1)
    return newest[0].entry_id if newest else FEED_START


def _id(reached: Mapping[str, str], first: str = "") -> str:
    """Return the id for these places by cell, beginning with that of the cell `first`."""
    names = sorted(reached, key=lambda name: name != first)
    return ",".join([f"{name}:{reached[name]}" for name in names])


def _view(cell: Cell, one: LoggedEvent, reached: Mapping[str, str]) -> Event:
    fields = one.fields
    slots = {name[len(AMOUNT) :]: parse_int(value, 0) for name, value in fields.items() if name.startswith(AMOUNT)}
    facts = {name: value for name, value in fields.items() if name not in _HEAD and not name.startswith(AMOUNT)}
    at_ms, seq = int(fields["at_ms"]), int(fields["seq"])
    return Event(_id(reached, cell.name), cell.name, at_ms, seq, fields["kind"], slots, facts)


async def _reset(cell: Cell, reached: Mapping[str, str]) -> Event:
    clock = (await cell.store.feed.end()).clock
    at_ms = clock.now_ms if clock is not None else 0
    return Event(_id(reached, cell.name), cell.name, at_ms, 0, RESET, {}, {"reason": MISSING})


def _parse(after: str) -> tuple[str, str]:
    name, _, entry = after.partition(":")
    ms, _, number = entry.partition("-")
    if not (name and all(part.isascii() and part.isdecimal() and len(part) <= 19 for part in (ms, number))):
        raise _not_an_id(after)
    return name, entry


def _not_an_id(after: str) -> InvalidRequest:
    return InvalidRequest(
        f"after {after[:80]!r} is not an event's id, `<cell>:<ms>-<n>`, or one for each cell separated by commas: pass "
        "an id as it was returned"
    )
