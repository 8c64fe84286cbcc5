"""The event log: claims, moves, releases and operator actions, of the whole fleet or of one claim."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.access.redact import Redactor
from redsched.api.openapi import answers
from redsched.api.routes.common import KNOWN_QUERY, ClaimId, caller, scheduler
from redsched.errors import InvalidRequest, NotFound
from redsched.scheduler import EventFilter, Page
from redsched.schema.requests.queries import ClaimEventsQuery, EventsQuery
from redsched.schema.responses import EventsAnswer

router = APIRouter(prefix="/v1", tags=["changes"], dependencies=[KNOWN_QUERY])

PAGE = answers({200: EventsAnswer}, InvalidRequest, NotFound)


@router.get("/events", summary="List events", responses=PAGE)
async def list_events(request: Request, query: Annotated[EventsQuery, Query()]) -> Response:
    """Return a page of events, cell by cell, oldest first. With `newest`, return the latest events."""
    return await _page(request, query, query.wanted())


@router.get("/claims/{claim_id}/events", summary="List a claim's events", responses=PAGE)
async def list_claim_events(
    request: Request, claim_id: ClaimId, query: Annotated[ClaimEventsQuery, Query()]
) -> Response:
    """Return a page of the events of one claim; an empty page if none are known."""
    return await _page(request, query, EventFilter(claim=claim_id, kind=query.kind))


async def _page(request: Request, query: ClaimEventsQuery, wanted: EventFilter) -> Response:
    events, shown = scheduler(request).events, Redactor(request).event
    wanted = restrict.event_filter(caller(request), wanted)
    if query.newest:
        if query.after:
            raise InvalidRequest("newest and after both set where the list starts: use one of them")
        latest = await events.newest(query.limit, wanted)
        return responses.answer(EventsAnswer.of(Page(tuple(map(shown, latest)))))
    page = await events.list(query.limit, query.after, wanted)
    return responses.answer(EventsAnswer.of(Page(tuple(map(shown, page.items)), page.next)))
