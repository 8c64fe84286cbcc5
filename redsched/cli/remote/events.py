"""Events over REST: the latest, those after one, and those to come."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from redsched.cli.remote.base import MAX_PAGE, Part, names
from redsched.client import calls
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
        """Yield events as they are recorded, from now on; with `after`, those after that event.

        The log is read in pages of all events, since a page's cursor passes those that a filter leaves out only if
        it is full.
        """
        last = after or await self._last()
        while True:
            page = await self.list(MAX_PAGE, last, EventFilter())
            for one in page.items:
                last = one.id
                if wanted.matches({**one.facts, "kind": one.kind}):
                    yield one
            if page.next is None:
                await asyncio.sleep(every_s)

    async def _last(self) -> str:
        newest = await self.newest(1, EventFilter())
        return newest[0].id if newest else ""


def _filters(wanted: EventFilter) -> dict[str, Any]:
    return names(
        claim=wanted.claim,
        project=wanted.project,
        host=wanted.host,
        kind=wanted.kind,
        actor=wanted.actor,
        request_id=wanted.request_id,
    )
