"""/v1/hosts: list and read hosts, and operator actions on a host."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import etags, responses
from redsched.api.access.redact import Redactor
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read_if_any
from redsched.api.routes.common import KNOWN_QUERY, HostName, scheduler
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown, PreconditionFailed, Settling
from redsched.model import HostStatus
from redsched.model.records.hosts import DrainProgress, HostView
from redsched.schema import pages
from redsched.schema.requests.queries import HostQuery, HostsQuery, RemoveHostQuery
from redsched.schema.requests.verbs import DisableBody, DrainBody, LostBody
from redsched.schema.responses import AcceptedAnswer

router = APIRouter(prefix="/v1/hosts", tags=["hosts"], dependencies=[KNOWN_QUERY])

OfHost = Annotated[HostQuery, Query()]
FOUND = answers({200: HostView}, InvalidRequest, NotFound, ClaimState, etag=True)
BODY_WORD = answers(
    {204: None, 202: AcceptedAnswer}, *BODY, NotFound, ClaimState, Settling, OutcomeUnknown, PreconditionFailed
)
WORD = answers({204: None}, InvalidRequest, NotFound, ClaimState, Settling, OutcomeUnknown, PreconditionFailed)


@router.get("", summary="List hosts", responses=answers({200: pages.HOSTS.type}, InvalidRequest))
async def list_hosts(request: Request, query: Annotated[HostsQuery, Query()]) -> Response:
    """Return a page of hosts, sorted by name, with free, claimed and external amounts and capacity per slot."""
    page = await scheduler(request).hosts.list(**query.filters())
    return responses.listed(pages.HOSTS, page)


@router.get("/{host}", summary="Get a host", responses=FOUND)
async def get_host(request: Request, host: HostName, query: OfHost) -> Response:
    """Return a host with the free, claimed and external amounts and the capacity of each slot."""
    hosts = scheduler(request).hosts
    headers = etags.header_of(await hosts.tag(host, query.cell))
    return responses.answered(Redactor(request).host(await hosts.get(host, query.cell)), headers=headers)


@router.get(
    "/{host}/drain",
    summary="Get a drain's progress",
    responses=answers({200: DrainProgress}, InvalidRequest, NotFound, ClaimState),
)
async def get_drain(request: Request, host: HostName, query: OfHost) -> Response:
    """Return the progress of a drain with `move` or an evacuation: the remaining claims, and why some cannot move."""
    found = await scheduler(request).hosts.get(host, query.cell)
    return responses.answered(Redactor(request).host(found).drain)


@router.post(
    "/{host}/drain",
    status_code=204,
    summary="Drain a host",
    dependencies=[etags.IF_MATCH],
    responses=BODY_WORD,
    openapi_extra=body(DrainBody, required=False),
)
async def drain_host(request: Request, host: HostName, query: OfHost) -> Response:
    """Stop new claims on a host and empty it. With `move`, its claims are moved to other hosts, a few each second.

    `deadline_s` limits the time for moves; then the remaining claims are released (`then: stop`) or stay
    (`then: keep`). 202 with `move`: watch `GET` of the same path.
    """
    asked = await read_if_any(request, DrainBody)
    how = {**asked.model_dump(), "if_match": etags.if_match(request), "cell": query.cell}
    await scheduler(request).hosts.set_status(host, HostStatus.DRAINING, **how)
    return _goes_on(host, query.cell) if asked.move else responses.nothing()


@router.post("/{host}/enable", status_code=204, summary="Enable a host", responses=WORD, dependencies=[etags.IF_MATCH])
async def enable_host(request: Request, host: HostName, query: OfHost) -> Response:
    """Allow new claims on a host again."""
    tags = etags.if_match(request)
    await scheduler(request).hosts.set_status(host, HostStatus.ENABLED, if_match=tags, cell=query.cell)
    return responses.nothing()


@router.post(
    "/{host}/disable",
    status_code=204,
    summary="Disable a host",
    dependencies=[etags.IF_MATCH],
    responses=answers({204: None}, *BODY, NotFound, ClaimState, Settling, OutcomeUnknown, PreconditionFailed),
    openapi_extra=body(DisableBody, required=False),
)
async def disable_host(request: Request, host: HostName, query: OfHost) -> Response:
    """Stop new claims on a host. Its existing claims stay. With `ahead`, also before its first report."""
    asked = await read_if_any(request, DisableBody)
    how = {**asked.model_dump(), "if_match": etags.if_match(request), "cell": query.cell}
    await scheduler(request).hosts.set_status(host, HostStatus.DISABLED, **how)
    return responses.nothing()


@router.post(
    "/{host}/write-off",
    status_code=204,
    summary="Write off a host",
    dependencies=[etags.IF_MATCH],
    responses=BODY_WORD,
    openapi_extra=body(LostBody, required=False),
)
async def write_off_host(request: Request, host: HostName, query: OfHost) -> Response:
    """Declare a host dead, so that schedulers stop waiting for it. Releasing its claims then frees them at once.

    With `evacuate`, its claims are placed on other hosts, one by one; if the host returns, it drops them. 409 while the
    host's lease is valid, unless `force`. 202 with `evacuate`: watch `GET /v1/hosts/{host}/drain`.
    """
    asked = await read_if_any(request, LostBody)
    how = {**asked.model_dump(), "if_match": etags.if_match(request), "cell": query.cell}
    await scheduler(request).hosts.lost(host, **how)
    return _goes_on(host, query.cell) if asked.evacuate else responses.nothing()


@router.delete("/{host}", status_code=204, summary="Remove a host", responses=WORD, dependencies=[etags.IF_MATCH])
async def remove_host(request: Request, host: HostName, query: Annotated[RemoveHostQuery, Query()]) -> Response:
    """Remove a host, and free its name. 409 while it holds claims or its lease is valid, unless `force`."""
    await scheduler(request).hosts.forget(host, query.force, etags.if_match(request), query.cell)
    return responses.nothing()


def _goes_on(host: str, cell: str) -> Response:
    return responses.accepted({}, f"/v1/hosts/{host}/drain{f'?cell={cell}' if cell else ''}")
