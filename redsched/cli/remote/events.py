"""Events over REST: the latest, those after one, and those to come."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from redsched.cli.remote.base import MAX_PAGE, Part, names
from redsched.client import calls
from redsched.errors import InvalidRequest
from redsched.scheduler import EventFilter, EventView, Page


class RemoteEvents(Part):
    """As `Scheduler.events`."""

    async def list(self, limit: int, after: str, wanted: EventFilter) -> Page[EventView]:
        """Return a page of the events after one."""
        return await self.page(calls.list_events(**_filters(wanted), page_size=limit, after=after))

    async def newest(self, limit: int, wanted: EventFilter) -> Sequence[EventView]:
        """Return the latest events."""
        return (await self.page(calls.list_events(**_filters(wanted), newest=True, page_size=limit))).items

    async def follow(self, every_s: float, after: str, wanted: EventFilter) -> AsyncIterator[EventView]:
        """Yield events as they are recorded, from now on; in the cell of the event `after`, those after that event.

        Each turn reads the newest events of all cells, since a list goes on in one cell after the other. So it shows at
        most MAX_PAGE events a turn: of more, the newest.
        """
        seen = {one.cell: _position(one.id) for one in await self.newest(MAX_PAGE, EventFilter())}
        if after:
            seen[after.partition(":")[0]] = _position(after)
        while True:
            for one in await self.newest(MAX_PAGE, EventFilter()):
                if _position(one.id) > seen.get(one.cell, (0, 0)):
                    seen[one.cell] = _position(one.id)
                    if wanted.matches({**one.facts, "kind": one.kind, "at_ms": str(one.at_ms)}):
                        yield one
            await asyncio.sleep(every_s)


def _position(event_id: str) -> tuple[int, int]:
    """Return where an event is in the log of its cell: `<cell>:<ms>-<n>`. Raises InvalidRequest for another text."""
    ms, _, number = event_id.partition(":")[2].partition("-")
    if not (ms.isdecimal() and number.isdecimal()):
        raise InvalidRequest(
            f"after {event_id[:80]!r} is not an event's id, `<cell>:<ms>-<n>`: pass an id as it was returned"
        )
    return int(ms), int(number)


def _filters(wanted: EventFilter) -> dict[str, Any]:
    times = {"since_ms": wanted.since_ms, "before_ms": wanted.before_ms}
    return times | names(
        claim=wanted.claim,
        project=wanted.project,
        host=wanted.host,
        kind=wanted.kind,
        actor=wanted.actor,
        request_id=wanted.request_id,
    )
