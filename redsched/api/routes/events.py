"""GET /v1/events: the log of who claimed, moved and released what, and of operators' words."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import render
from redsched.api.models.answered import EventsAnswer
from redsched.api.models.asked import EventsQuery
from redsched.api.openapi import answers
from redsched.api.routes.parts import KNOWN_QUERY, scheduler
from redsched.errors import InvalidRequest, Unknown
from redsched.scheduler import EventFilter

router = APIRouter(prefix="/v1/events", tags=["changes"], dependencies=[KNOWN_QUERY])


@router.get("", summary="List events", responses=answers({200: EventsAnswer}, InvalidRequest, Unknown))
async def list_events(request: Request, query: Annotated[EventsQuery, Query()]) -> Response:
    """A page of events, cell by cell, the oldest first; with `newest` the latest ones."""
    wanted = EventFilter(query.claim or "", query.project or "", query.host or "", query.kind or "")
    events = scheduler(request).events
    if query.newest:
        if query.after:
            raise InvalidRequest("newest begins at the end, and after names a place: use one of them")
        latest = await events.newest(query.limit, wanted)
        return render.answer({"events": [render.event(one) for one in latest], "next": None})
    page = await events.list(query.limit, query.after, wanted)
    return render.answer({"events": [render.event(one) for one in page.items], "next": page.next})
