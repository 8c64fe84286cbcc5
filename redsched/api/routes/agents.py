"""/v1/agent: the calls of agents without access to the store. Each is a command of the store.

The responses have the outcomes of the store's scripts, because agents decide on them as agents do that call the scripts
themselves. So the store being in another epoch, or a claim that has ended, is no error here.
"""

from collections.abc import Awaitable, Iterable
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.access.agents import check_held, check_report, own_cell, own_host, without_foreign
from redsched.api.access.callers import caller_of
from redsched.api.disconnect import unless_gone
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read, read_large, read_report
from redsched.api.routes.common import KNOWN_QUERY, HostName, refuse_query, scheduler
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown, Unauthenticated
from redsched.scheduler.agents.service import AgentService
from redsched.schema.requests.agents import (
    AgentReportBody,
    AttestBody,
    CellQuery,
    ClaimsOfHostsBody,
    HeartbeatsBody,
    HostsBody,
    InboxesBody,
    RaiseEpochBody,
    TextNamesBody,
)
from redsched.schema.responses import (
    AgentAnswer,
    AttestedAnswer,
    ClaimIdsAnswer,
    DevicesAnswer,
    HeartbeatsAnswer,
    HeldClaimsAnswer,
    InboxesAnswer,
    OutcomeAnswer,
    ReportedAnswer,
    TextNamesAnswer,
)
from redsched.store.cell import CellStore
from redsched.store.codec.results import ScriptResult

router = APIRouter(prefix="/v1/agent", tags=["agents"], dependencies=[KNOWN_QUERY])

InCell = Annotated[CellQuery, Query()]
WRITTEN = (*BODY, NotFound, OutcomeUnknown)
REPORT = {
    "zone": "az1",
    "inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262144}},
    "agent": {"journal": "f00d", "nonce": "1b2c", "number": 7},
}


def agents(request: Request) -> AgentService:
    """Return the service of agents of this process."""
    return scheduler(request).agents


def store_in(request: Request, query: CellQuery, hosts: Iterable[str] = ()) -> CellStore:
    """Return the commands of a cell that the caller may use for these hosts; the gate has checked the path's host.

    Raises Forbidden, NotFound, InvalidRequest.
    """
    caller, store = caller_of(request.scope), agents(request).store(query.cell)
    own_cell(caller, store.name)
    for host in hosts:
        own_host(caller, host)
    return store


async def outcome_of(call: Awaitable[ScriptResult]) -> Response:
    """Return the response to a call whose reply is an outcome."""
    return responses.answer(OutcomeAnswer.of(await call))


@router.get("", summary="Describe the fleet to an agent", responses=answers({200: AgentAnswer}, InvalidRequest))
async def get_agent_api(request: Request) -> Response:
    """Return the names of the cells. An agent calls this first, to learn whether its token is accepted."""
    refuse_query(request)
    return responses.answer({"cells": agents(request).cells})


# -- calls about several hosts


@router.post(
    "/heartbeats",
    summary="Send heartbeats of hosts",
    responses=answers({200: HeartbeatsAnswer}, *WRITTEN),
    openapi_extra=body(HeartbeatsBody),
)
async def send_heartbeats(request: Request, query: InCell) -> Response:
    """Renew the leases of hosts.

    Each gets OK, NOT_ATTESTED (a new epoch: attest), UNKNOWN (report first) or NOT_OWNER (another agent has it).
    """
    asked = await read(request, HeartbeatsBody)
    beats = [(host, one.lease_s, one.agent) for host, one in asked.hosts.items()]
    found = await agents(request).heartbeats(store_in(request, query, asked.hosts), beats)
    return responses.answer({"hosts": {host: OutcomeAnswer.of(one) for host, one in found.items()}})


@router.post(
    "/inboxes",
    summary="Read inboxes of hosts, or wait for notifications",
    responses=answers({200: InboxesAnswer}, *BODY, NotFound),
    openapi_extra=body(InboxesBody),
)
async def read_inboxes(request: Request, query: InCell) -> Response:
    """Return the notifications of hosts; with `timeout_s`, wait for the first one."""
    asked = await read(request, InboxesBody)
    store = store_in(request, query, asked.after)
    found = await unless_gone(request, agents(request).inboxes(store, asked.after, asked.timeout_s))
    if asked.timeout_s and not request.app.state.is_valid(caller_of(request.scope)):
        raise Unauthenticated("the token was revoked or has expired while the request waited: send a valid one")
    return responses.answer(InboxesAnswer.of(found))


@router.post(
    "/claim-ids",
    summary="List the claims on hosts",
    responses=answers({200: ClaimIdsAnswer}, *BODY, NotFound),
    openapi_extra=body(HostsBody),
)
async def list_claim_ids(request: Request, query: InCell) -> Response:
    """Return the ids of the claims on each of some hosts."""
    asked = await read(request, HostsBody)
    found = await store_in(request, query, asked.hosts).hosts.claim_ids_of(asked.hosts)
    return responses.answer({"ids": dict(zip(asked.hosts, map(sorted, found), strict=True))})


@router.post(
    "/claims",
    summary="Read claims on hosts",
    responses=answers({200: HeldClaimsAnswer}, *BODY, NotFound),
    openapi_extra=body(ClaimsOfHostsBody),
)
async def read_claims(request: Request, query: InCell) -> Response:
    """Return those of the claims that have a placement on one of the hosts."""
    asked = await read(request, ClaimsOfHostsBody)
    store = store_in(request, query, asked.hosts)
    return responses.answer({"claims": await agents(request).claims(store, asked.hosts, asked.ids)})


# -- calls of one host


@router.put(
    "/hosts/{host}/report",
    summary="Report a host to its cell",
    responses=answers({200: ReportedAnswer}, *WRITTEN, ClaimState),
    openapi_extra=body(AgentReportBody, {"host": REPORT}),
)
async def report_host_of_agent(request: Request, host: HostName) -> Response:
    """Replace a host's report, without attesting to the epoch. OK, ALREADY_DONE or NOT_OWNER."""
    asked = await read_report(request, AgentReportBody, host)
    check_report(caller_of(request.scope), asked)
    return responses.answer(ReportedAnswer.of(await agents(request).report(asked, asked.agent)))


@router.post(
    "/hosts/{host}/attest",
    summary="Attest to an epoch",
    responses=answers({200: AttestedAnswer}, *WRITTEN, ClaimState),
    openapi_extra=body(AttestBody),
)
async def attest_host(request: Request, host: HostName, query: InCell) -> Response:
    """Restore what the host's journal holds. OK, ALREADY_DONE, WRONG_EPOCH, UNKNOWN (report first) or NOT_OWNER."""
    asked = await read_large(request, AttestBody)
    caller, store = caller_of(request.scope), store_in(request, query)
    check_held(caller, asked.held)
    held, foreign = await without_foreign(caller, store, host, asked.held)
    found = await agents(request).attest(store, host, asked.epoch, asked.agent, held, asked.ended, asked.lease_s)
    return responses.answer(AttestedAnswer.of(replace(found, drop=(*found.drop, *foreign))))


@router.get(
    "/hosts/{host}/devices",
    summary="Read the devices of a host",
    responses=answers({200: DevicesAnswer}, InvalidRequest, NotFound),
)
async def read_devices(request: Request, host: HostName, query: InCell) -> Response:
    """Return the devices of the host's last report, by the names of their pools: an agent whose journal was lost asks.

    None for an unknown host.
    """
    return responses.answer({"devices": await store_in(request, query).hosts.devices(host)})


@router.post(
    "/hosts/{host}/raise-epoch",
    summary="Report that the store has gone back",
    responses=answers({200: OutcomeAnswer}, *WRITTEN, ClaimState),
    openapi_extra=body(RaiseEpochBody),
)
async def raise_epoch(request: Request, host: HostName, query: InCell) -> Response:
    """Start a new epoch unless the store's is above `above`. OK or ALREADY_DONE; 503 if this host has just done it."""
    asked = await read(request, RaiseEpochBody)
    return await outcome_of(agents(request).raise_epoch(store_in(request, query), host, asked.above))


@router.post(
    "/hosts/{host}/texts/missing",
    summary="Ask which texts are lost",
    responses=answers({200: TextNamesAnswer}, *BODY, NotFound),
    openapi_extra=body(TextNamesBody),
)
async def list_missing_texts(request: Request, host: HostName, query: InCell) -> Response:  # noqa: ARG001 - whose token it is
    """Return the names of texts that the store no longer has: requests of claims, and lists of alternates."""
    asked = await read_large(request, TextNamesBody)
    return responses.answer({"missing": await store_in(request, query).texts.missing(asked.names)})
