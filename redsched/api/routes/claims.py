"""/v1/claims: list and read claims, and the verbs on them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.access import owned, restrict
from redsched.api.access.redact import Redactor
from redsched.api.disconnect import unless_gone
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read, read_if_any
from redsched.api.routes.common import KNOWN_QUERY, ClaimId, caller, scheduler
from redsched.errors import (
    ClaimState,
    InvalidRequest,
    NotConfirmed,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    QuotaExceeded,
    Settling,
    StaleToken,
)
from redsched.model import AcceptedClaim, Claim, ClaimStatus, ListedState, values_of
from redsched.scheduler import BulkOutcome, BulkPage, ClaimFilter, Page
from redsched.schema.pages import CLAIMS
from redsched.schema.requests.queries import BulkQuery, BulkReleaseQuery, BulkRenewQuery, ClaimsQuery, ReleaseQuery
from redsched.schema.requests.verbs import FailBody, MoveBody, RenewBody, ResizeBody, TokenBody, UnshelveBody
from redsched.schema.responses import EndingAnswer

COUNTED_AT_ONCE = 1000
"""The most claims that are read at a time to count those of other owners."""

router = APIRouter(prefix="/v1/claims", tags=["claims"], dependencies=[KNOWN_QUERY])

REFUSED = (*BODY, NotFound, ClaimState, StaleToken, Settling, OutcomeUnknown)
VERB = answers({200: Claim}, *REFUSED)
PLACE = answers({200: Claim}, *REFUSED, NoValidHost, QuotaExceeded)
BULK = answers({200: BulkPage}, InvalidRequest, NotFound)
BULK_202 = answers({200: BulkPage, 202: BulkPage}, InvalidRequest, NotFound)
VERB_202 = answers({200: Claim, 202: AcceptedClaim}, *REFUSED)
PLACE_202 = answers({200: Claim, 202: AcceptedClaim}, *REFUSED, NoValidHost, QuotaExceeded)
MOVE_202 = answers({200: Claim, 202: AcceptedClaim}, *REFUSED, NoValidHost, QuotaExceeded, NotConfirmed)
PLACE_201 = answers({201: Claim, 200: Claim}, *REFUSED, NoValidHost, QuotaExceeded, NotConfirmed)


@router.get("", summary="List claims", responses=answers({200: CLAIMS.type}, InvalidRequest, NotFound))
async def list_claims(request: Request, query: Annotated[ClaimsQuery, Query()]) -> Response:
    """Return a page of claims, sorted by host, then id. Ended claims are not listed."""
    wanted = restrict.claim_filter(caller(request), query)
    page: Page[Claim] = await _listed(request, wanted, query) if wanted else Page(())
    return responses.listed(CLAIMS, page)


@router.delete("", summary="Release many claims", responses=BULK_202)
async def release_claims(request: Request, query: Annotated[BulkReleaseQuery, Query()]) -> Response:
    """Release all claims that match the filters, a page at a time. At least one filter is required.

    202: some of them are still ending on their hosts; `watch` lists these.
    """
    wanted = restrict.bulk_filter(caller(request), query, query.force)
    return await _bulk(request, wanted, query, scheduler(request).bulk.release, force=query.force)


@router.post("/renew", summary="Renew many claims", responses=BULK)
async def renew_claims(request: Request, query: Annotated[BulkRenewQuery, Query()]) -> Response:
    """Renew the leases of all claims that match the filters and are not yet active, a page at a time."""
    wanted = restrict.bulk_filter(caller(request), query)
    return await _bulk(request, wanted, query, scheduler(request).bulk.renew, lease_s=query.lease_s)


@router.post("/shelve", summary="Shelve many claims", responses=BULK_202)
async def shelve_claims(request: Request, query: Annotated[BulkQuery, Query()]) -> Response:
    """Shelve all claims that match the filters, a page at a time.

    202: some of them are still ending on their hosts; `watch` lists these.
    """
    wanted = restrict.bulk_filter(caller(request), query)
    return await _bulk(request, wanted, query, scheduler(request).bulk.shelve)


@router.post("/unshelve", summary="Unshelve many claims", responses=BULK)
async def unshelve_claims(request: Request, query: Annotated[BulkQuery, Query()]) -> Response:
    """Place all shelved claims that match the filters again, on any hosts that fit now, a page at a time."""
    wanted = restrict.bulk_filter(caller(request), query)
    return await _bulk(request, wanted, query, scheduler(request).bulk.unshelve)


@router.get("/{claim_id}", summary="Get a claim", responses=answers({200: Claim}, InvalidRequest, NotFound))
async def get_claim(request: Request, claim_id: ClaimId) -> Response:
    """Return a claim. Ended claims are kept for a limited time."""
    return await _claim(request, await scheduler(request).claims.get(claim_id))


@router.post("/{claim_id}/confirm", summary="Confirm a claim", responses=VERB, openapi_extra=body(TokenBody))
async def confirm_claim(request: Request, claim_id: ClaimId) -> Response:
    """Report that the work runs: the claim becomes active and no longer has a lease."""
    token = (await read(request, TokenBody)).token
    await owned.require(request, claim_id, token)
    return await _claim(request, await scheduler(request).claims.confirm(claim_id, token))


@router.post("/{claim_id}/renew", summary="Renew a claim", responses=VERB, openapi_extra=body(RenewBody))
async def renew_claim(request: Request, claim_id: ClaimId) -> Response:
    """Renew the claim's lease. An active claim has no lease and does not change."""
    asked = await read(request, RenewBody)
    await owned.require(request, claim_id, asked.token)
    return await _claim(request, await scheduler(request).claims.renew(claim_id, asked.token, asked.lease_s))


@router.post("/{claim_id}/fail", summary="Fail a placement", responses=PLACE, openapi_extra=body(FailBody))
async def fail_claim(request: Request, claim_id: ClaimId) -> Response:
    """Report that the work could not be started: its placement ends, and the next host that still fits takes the claim.

    The response is the claim. 409 `no-valid-host`: no host fits; the placement has ended nevertheless. If the placement
    is the target of a move, only the target ends, and the claim stays where it is; with hosts in `alternates` the
    response is then 409 `claim-state`.
    """
    asked = await read(request, FailBody)
    restrict.refuse_hosts(caller(request), asked.alternates)
    await owned.require(request, claim_id, asked.token)
    return await _claim(request, await scheduler(request).migrations.fail(claim_id, asked.token, asked.alternates))


@router.post(
    "/{claim_id}/move", status_code=202, summary="Move a claim", responses=MOVE_202, openapi_extra=body(MoveBody)
)
async def move_claim(request: Request, claim_id: ClaimId) -> Response:
    """Claim a place on another host and return the claim. 202: both places are held until the work runs at the target.

    200: the request is a repeat, and the claim has moved.
    """
    asked = await read(request, MoveBody)
    restrict.refuse_hosts(caller(request), asked.hosts)
    await owned.require(request, claim_id, asked.token)
    moving = scheduler(request).migrations.move(claim_id, **asked.model_dump())
    found, _ = await (unless_gone(request, moving) if asked.queue_timeout_s else moving)
    return await _changed(request, found, goes_on=len(found.placements) > 1)


@router.post("/{claim_id}/resize", summary="Resize a claim", responses=PLACE_202, openapi_extra=body(ResizeBody))
async def resize_claim(request: Request, claim_id: ClaimId) -> Response:
    """Change the claim's amounts in place.

    202: its host is running the work and still has to resize it; until then the larger amounts are held
    (`resizing_to` has the new ones).
    """
    asked = await read(request, ResizeBody)
    await owned.require(request, claim_id, asked.token)
    found = await scheduler(request).claims.resize(claim_id, asked.token, asked.slots, asked.resources)
    return await _changed(request, found, goes_on=bool(found.resizing_to))


@router.post("/{claim_id}/shelve", summary="Shelve a claim", responses=VERB_202, openapi_extra=body(TokenBody))
async def shelve_claim(request: Request, claim_id: ClaimId) -> Response:
    """Free the claim's amounts and keep the claim. 202: its host still has to report that the work is gone."""
    token = (await read(request, TokenBody)).token
    await owned.require(request, claim_id, token)
    found = await scheduler(request).claims.shelve(claim_id, token)
    return await _changed(request, found, goes_on=found.state is ClaimStatus.ENDING)


@router.post(
    "/{claim_id}/unshelve",
    status_code=201,
    summary="Unshelve a claim",
    responses=PLACE_201,
    openapi_extra=body(UnshelveBody, required=False),
)
async def unshelve_claim(request: Request, claim_id: ClaimId) -> Response:
    """Place a shelved claim again, on any host that fits now. 200: the claim was already unshelved."""
    asked = await read_if_any(request, UnshelveBody)
    token = await owned.require(request, claim_id)
    claiming = scheduler(request).migrations.unshelve(claim_id, asked.queue_timeout_s, token)
    found, fresh = await (unless_gone(request, claiming) if asked.queue_timeout_s else claiming)
    shown = await owned.shown(request, found)
    if not fresh:
        return responses.answered(shown)
    return responses.answered(shown, 201, {"Location": responses.claim_path(claim_id)})


@router.delete(
    "/{claim_id}",
    status_code=204,
    summary="Release a claim",
    responses=answers(
        {204: None, 202: EndingAnswer},
        InvalidRequest,
        NotFound,
        ClaimState,
        StaleToken,
        Settling,
        OutcomeUnknown,
    ),
)
async def release_claim(request: Request, claim_id: ClaimId, query: Annotated[ReleaseQuery, Query()]) -> Response:
    """Release a claim. 204: its amounts are free. 202: its host still has to report that the work is gone.

    `force` frees them at once.
    """
    if await owned.release(request, claim_id, query.token, query.force):
        return responses.nothing()
    return responses.accepted({"claim_id": claim_id, "state": "ending"}, responses.claim_path(claim_id))


async def _claim(request: Request, found: Claim) -> Response:
    return responses.answered(await owned.shown(request, found))


async def _changed(request: Request, found: Claim, goes_on: bool) -> Response:
    return responses.changed_claim(await owned.shown(request, found), goes_on)


async def _listed(request: Request, wanted: ClaimFilter, query: ClaimsQuery) -> Page[Claim]:
    page = await scheduler(request).claims.list(**wanted.given, limit=query.limit, after=query.after)
    return Page(tuple(map(Redactor(request).claim, page.items)), page.next)


async def _bulk(
    request: Request,
    wanted: ClaimFilter | None,
    query: BulkQuery,
    verb: Callable[..., Awaitable[BulkPage]],
    **more: Any,
) -> Response:
    if wanted is None:
        return responses.answered(BulkPage(()))
    found = await verb(wanted, dry_run=query.dry_run, limit=query.limit, after=query.after, **more)
    others = await _of_others(request, query, verb == scheduler(request).bulk.unshelve)
    results = tuple(map(Redactor(request).result, found.results))
    is_ending = any(one.outcome is BulkOutcome.ENDING for one in results)
    watch = _ending(query, wanted) if is_ending else None
    page = BulkPage(results, found.next, watch, others)
    return responses.answered(page, 202, {"Location": watch}) if watch else responses.answered(page)


async def _of_others(request: Request, query: BulkQuery, is_shelved: bool) -> int:
    """Return how many claims match that the caller may not change because of their owner; 0 after the first page."""
    who = caller(request)
    wanted = restrict.claim_filter(who, query)
    if wanted is None or query.after or query.owner or not who.own_only:
        return 0
    if is_shelved:
        wanted = replace(wanted, state=ListedState.SHELVED)
    number = 0
    after: str | None = ""
    while after is not None:
        page = await scheduler(request).claims.page(wanted, COUNTED_AT_ONCE, after)
        number += sum(one.owner not in ("", who.owner) for one in page.items)
        after = page.next
    return number


def _ending(query: BulkQuery, wanted: ClaimFilter) -> str:
    """Return the path that lists the ending claims that match these filters."""
    given = query.model_dump(mode="json", include=restrict.FILTERS - {"state"}) | {"owner": values_of(wanted.owner)}
    lists = {name: [value] * bool(value) if isinstance(value, int) else value for name, value in given.items()}
    pairs = [(name, value) for name, values in lists.items() for value in values]
    return f"/v1/claims?{urlencode([*pairs, ('state', 'ending')])}"
