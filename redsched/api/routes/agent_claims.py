"""/v1/agent/hosts/{host}/claims/{claim_id}: what agents without access to the store report of a claim on their host."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.access.agents import own_project
from redsched.api.access.callers import caller_of
from redsched.api.openapi import answers, body
from redsched.api.request_body import read
from redsched.api.routes.agents import WRITTEN, InCell, agents, outcome_of, store_in
from redsched.api.routes.common import KNOWN_QUERY, ClaimId, HostName
from redsched.errors import InvalidRequest, NotFound
from redsched.model import EndReason
from redsched.schema.requests.agents import (
    AcceptBody,
    AgentConfirmBody,
    AgentFailBody,
    AgentRenewBody,
    GoneBody,
    LocalBody,
    ResizedBody,
    StopFailedBody,
    TextBody,
    TextsQuery,
    WorkEndedBody,
)
from redsched.schema.responses import OutcomeAnswer, TextsAnswer

router = APIRouter(prefix="/v1/agent/hosts/{host}/claims/{claim_id}", tags=["agents"], dependencies=[KNOWN_QUERY])


@router.get(
    "/texts",
    summary="Read texts of a claim",
    responses=answers({200: TextsAnswer}, InvalidRequest, NotFound),
)
async def read_texts(
    request: Request, host: HostName, claim_id: ClaimId, query: Annotated[TextsQuery, Query()]
) -> Response:
    """Return texts that a claim on this host refers to: its request, and its list of alternates."""
    found = await agents(request).texts(store_in(request, query), host, claim_id, query.name)
    return responses.answer({"texts": found})


@router.put(
    "/texts",
    status_code=204,
    summary="Restore a text of a claim",
    responses=answers({204: None}, *WRITTEN),
    openapi_extra=body(TextBody),
)
async def restore_text(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Restore a text that the store has lost, and that a claim on this host refers to."""
    asked = await read(request, TextBody)
    await agents(request).restore_text(store_in(request, query), host, claim_id, asked.name, asked.text)
    return responses.nothing()


@router.post(
    "/accept",
    summary="Accept a claim",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(AcceptBody),
)
async def accept_claim(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record that the host has accepted a claim and is about to start its work."""
    asked = await read(request, AcceptBody)
    claims = store_in(request, query).claims
    return await outcome_of(claims.accept(host, claim_id, asked.token, asked.lease_s, asked.entry_id))


@router.post(
    "/confirm",
    summary="Confirm that a claim's work runs",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(AgentConfirmBody),
)
async def confirm_claim_of_host(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record that the work runs."""
    asked = await read(request, AgentConfirmBody)
    claims = store_in(request, query).claims
    return await outcome_of(claims.confirm(host, claim_id, asked.token, epoch=asked.epoch, log=asked.log))


@router.post(
    "/renew",
    summary="Renew a claim's lease",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(AgentRenewBody),
)
async def renew_claim_of_host(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Renew the lease of a claim that is not active yet."""
    asked = await read(request, AgentRenewBody)
    return await outcome_of(store_in(request, query).claims.renew(host, claim_id, asked.token, asked.lease_s))


@router.post(
    "/fail",
    summary="Report that a claim's work could not be started",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(AgentFailBody),
)
async def fail_claim_of_host(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record a failure. With `is_gone`, the amounts are free at once."""
    asked = await read(request, AgentFailBody)
    claims = store_in(request, query).claims
    return await outcome_of(claims.fail(host, claim_id, asked.token, asked.is_gone, reason=asked.reason))


@router.post(
    "/work-ended",
    summary="Report that a claim's work has ended by itself",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(WorkEndedBody),
)
async def report_work_ended(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record that the work has ended, without ending the claim."""
    asked = await read(request, WorkEndedBody)
    return await outcome_of(store_in(request, query).claims.work_ended(host, claim_id, asked.token, asked.reason))


@router.post(
    "/stop-failed",
    summary="Report that a claim's work could not be stopped",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(StopFailedBody),
)
async def report_stop_failed(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record why. The amounts stay taken, and the host tries again."""
    asked = await read(request, StopFailedBody)
    return await outcome_of(store_in(request, query).claims.stop_failed(host, claim_id, asked.token, asked.reason))


@router.post(
    "/gone",
    summary="Report that a claim's work is gone",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(GoneBody),
)
async def report_work_gone(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Free a claim's amounts: nothing is left of its work."""
    asked = await read(request, GoneBody)
    end_reason, claims = EndReason(asked.end_reason), store_in(request, query).claims
    return await outcome_of(
        claims.gone(host, claim_id, asked.token, end_reason, asked.external, asked.entry_id, reason=asked.reason)
    )


@router.post(
    "/resized",
    summary="Report that a claim's work was resized",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(ResizedBody),
)
async def report_resized(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record the amounts that the work has now: the requested or the old ones."""
    asked = await read(request, ResizedBody)
    return await outcome_of(store_in(request, query).claims.resized(host, claim_id, asked.token, asked.amounts))


@router.put(
    "/local",
    summary="Report local work",
    responses=answers({200: OutcomeAnswer}, *WRITTEN),
    openapi_extra=body(LocalBody),
)
async def report_local_work(request: Request, host: HostName, claim_id: ClaimId, query: InCell) -> Response:
    """Record work that the host runs without a claim, or new amounts of such work."""
    asked = await read(request, LocalBody)
    own_project(caller_of(request.scope), claim_id, asked.project)
    claims = store_in(request, query).claims
    return await outcome_of(
        claims.report_local(host, claim_id, asked.amounts, asked.project, asked.consumer, asked.token)
    )
