"""Events over REST: the latest, those after one, and those to come."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from redsched.cli.remote.base import MAX_PAGE, Part, names
from redsched.client import calls
from redsched.client.results import Event
from redsched.scheduler import EventFilter, EventView, Page
from redsched.scheduler.queries import RESET
from redsched.schema.responses import EventAnswer


class RemoteEvents(Part):
    """As `Scheduler.events`."""

    async def list(self, limit: int, after: str, wanted: EventFilter) -> Page[EventView]:
        """Return a page of the events after one."""
        page = await self.page(calls.list_events(**_filters(wanted), page_size=limit, after=after))
        return Page(tuple(map(_view, page.items)), page.next)

    async def newest(self, limit: int, wanted: EventFilter) -> Sequence[EventView]:
        """Return the latest events."""
        page = await self.page(calls.list_events(**_filters(wanted), newest=True, page_size=limit))
        return tuple(map(_view, page.items))

    async def follow(self, every_s: float, after: str, wanted: EventFilter) -> AsyncIterator[EventView]:
        """Yield events as they are recorded, from now on; with `after`, all after the event with that id."""
        is_new = not after
        if is_new:
            newest = await self.newest(MAX_PAGE, EventFilter())
            after = newest[-1].id if newest else ""
        known = {one.partition(":")[0] for one in after.split(",")}
        while True:
            page = await self.list(MAX_PAGE, after, EventFilter())
            for one in page.items:
                after = one.id
                # A log that had no event is not known at first: then its start is where to begin.
                is_begin = is_new and one.kind == RESET and one.cell not in known
                known.add(one.cell)
                if not is_begin and (one.kind == RESET or wanted.matches(_fields(one))):
                    yield one
            if page.next is None:
                await asyncio.sleep(every_s)
            else:
                after = page.next


def _view(event: Event) -> EventView:
    """Return an event as the library has it: further members of its response are its facts."""
    known = {name: getattr(event, name) for name in EventAnswer.model_fields}
    facts = {name: str(getattr(event, name)) for name in event.model_fields_set - known.keys()}
    return EventView(**known, facts=facts)


def _fields(one: EventView) -> dict[str, str]:
    return {**one.facts, "kind": one.kind, "at_ms": str(one.at_ms)}


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
