"""How the routes of claims are handled: callers see and change their own claims only."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from redsched.api import responses
from redsched.api.access import owned, restrict
from redsched.api.access.redact import Redactor
from redsched.api.disconnect import unless_gone
from redsched.api.operations import Call, handles
from redsched.api.routes.common import caller, scheduler
from redsched.model import Claim, ClaimStatus, ListedState, values_of
from redsched.model.filters import ClaimFilter
from redsched.model.records.bulk import BulkOutcome, BulkPage
from redsched.model.records.pages import CLAIMS, Page
from redsched.model.records.service import Ending
from redsched.operations.claims import Bulk, Claims
from redsched.requests.filters import BulkQuery

COUNTED_AT_ONCE = 1000
"""The most claims that are read at a time to count those of other owners."""


@handles(Claims.list)
async def list_claims(request: Request, call: Call) -> Response:
    """Answer with a page of the caller's claims."""
    wanted = restrict.claim_filter(caller(request), call.query)
    if wanted is None:
        return responses.listed(CLAIMS, Page(()))
    page = await scheduler(request).claims.matching(wanted, call.query.limit, call.query.after)
    return responses.listed(CLAIMS, Page(tuple(map(Redactor(request).claim, page.items)), page.next))


@handles(Claims.get)
async def get_claim(request: Request, call: Call) -> Response:
    """Answer with a claim."""
    return responses.answered(await owned.shown(request, await call.do(request)))


@handles(Claims.confirm, Claims.renew, Claims.fail, Claims.move, Claims.resize, Claims.shelve)
async def change_claim(request: Request, call: Call) -> Response:
    """Answer with the caller's claim after a verb: 202 while a host has yet to do its part."""
    given = call.arguments
    hosts: Collection[str] = given.get("hosts") or given.get("alternates") or ()
    restrict.refuse_hosts(caller(request), hosts)
    await owned.require(request, given["claim_id"], given["token"])
    changing = call.do(request)
    found: Claim = await (unless_gone(request, changing) if given.get("queue_timeout_s") else changing)
    goes_on = 202 in call.operation.route.answers and _goes_on(call, found)
    return responses.changed_claim(await owned.shown(request, found), goes_on)


def _goes_on(call: Call, claim: Claim) -> bool:
    if call.operation is Claims.move:
        return len(claim.placements) > 1
    return bool(claim.resizing_to) if call.operation is Claims.resize else claim.state is ClaimStatus.ENDING


@handles(Claims.unshelve)
async def unshelve_claim(request: Request, call: Call) -> Response:
    """Answer with a claim that has been placed again: 200 if it was already."""
    claim_id, timeout_s = call.arguments["claim_id"], call.arguments["queue_timeout_s"]
    token = await owned.require(request, claim_id)
    claiming = scheduler(request).migrations.unshelve(claim_id, timeout_s, token)
    found, fresh = await (unless_gone(request, claiming) if timeout_s else claiming)
    shown = await owned.shown(request, found)
    return responses.created(shown, responses.claim_path(claim_id)) if fresh else responses.answered(shown)


@handles(Claims.release)
async def release_claim(request: Request, call: Call) -> Response:
    """Answer with nothing once the amounts are free, or with where to see that its host has ended the work."""
    claim_id: str = call.arguments["claim_id"]
    if await owned.release(request, claim_id, call.query.token, call.query.force):
        return responses.nothing()
    return responses.accepted(Ending(claim_id, "ending", responses.claim_path(claim_id)))


@handles(Bulk.release, Bulk.renew, Bulk.shelve, Bulk.unshelve)
async def change_claims(request: Request, call: Call) -> Response:
    """Answer with the result of each claim of a page that the caller may change."""
    query: BulkQuery = call.query
    more: dict[str, Any] = {name: getattr(query, name) for name in ("force", "lease_s") if hasattr(query, name)}
    wanted = restrict.bulk_filter(caller(request), query, more.get("force", False))
    if wanted is None:
        return responses.answered(BulkPage(()))
    verb = call.operation.on(scheduler(request))
    found: BulkPage = await verb(wanted, dry_run=query.dry_run, limit=query.limit, after=query.after, **more)
    others = await _of_others(request, query, call.operation is Bulk.unshelve)
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
