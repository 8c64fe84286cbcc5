"""How the routes of the event log are handled: tenants see the events of their claims."""

from fastapi import Request, Response

from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.access.redact import Redactor
from redsched.api.operations import Call, handles
from redsched.api.routes.common import caller, scheduler
from redsched.model.filters import EventFilter
from redsched.model.records.pages import EVENTS, Page
from redsched.operations.events import Events
from redsched.requests.filters import ClaimEventsQuery


@handles(Events.list)
async def list_events(request: Request, call: Call) -> Response:
    """Answer with a page of events."""
    return await _page(request, call.query, call.query.wanted())


@handles(Events.of_claim)
async def list_claim_events(request: Request, call: Call) -> Response:
    """Answer with a page of the events of a claim."""
    return await _page(request, call.query, EventFilter(claim=call.arguments["claim_id"], kind=call.query.kind))


async def _page(request: Request, query: ClaimEventsQuery, wanted: EventFilter) -> Response:
    wanted = restrict.event_filter(caller(request), wanted)
    page = await scheduler(request).events.page(wanted, query.newest, query.limit, query.after)
    return responses.listed(EVENTS, Page(tuple(map(Redactor(request).event, page.items)), page.next))
