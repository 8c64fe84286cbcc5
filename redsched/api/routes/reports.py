"""/v1/hosts/{host}/report, heartbeat and inbox: for agents without access to Redis."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic_core import to_json

from redsched.api import responses
from redsched.api.access.agents import check_report, without_foreign
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read, read_object, read_report
from redsched.api.routes.common import KNOWN_QUERY, HostName, caller, scheduler
from redsched.errors import ClaimIdReused, ClaimState, InvalidRequest, NotFound, OtherAgent, OutcomeUnknown, Settling
from redsched.requests.declared import report_of
from redsched.requests.filters import InboxQuery
from redsched.requests.parsing import merged, parse
from redsched.requests.reports import HeartbeatBody, ReportBody, ReportPatch
from redsched.scheduler.results import HeartbeatResult, Inbox, ReportResult

router = APIRouter(prefix="/v1/hosts/{host}", tags=["agents"], dependencies=[KNOWN_QUERY])

REPORT = {
    "zone": "az1",
    "labels": {"rack": "r4"},
    "traits": ["HW_CPU_X86_AVX2"],
    "inventories": {"VCPU": {"total": 64, "reserved": 2, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 262144}},
    "external": {"VCPU": 1},
}
POOLS = {
    **REPORT,
    "pools": {
        "numa0": {"inventories": {"PCPU": {"total": 16}}},
        "gpu0": {
            "parent": "numa0",
            "inventories": {"CUSTOM_GPU_MILLI": {"total": 1000}},
            "traits": ["CUSTOM_GPU_T4"],
        },
    },
    "external": {"VCPU": 1, "gpu0/CUSTOM_GPU_MILLI": 250},
}
PATCH = {"labels": {"rack": "r5"}, "inventories": {"MEMORY_MB": {"reserved": 2048}}}


@router.put(
    "/report",
    summary="Report a host",
    responses=answers(
        {200: ReportResult}, *BODY, NotFound, ClaimIdReused, ClaimState, OtherAgent, Settling, OutcomeUnknown
    ),
    openapi_extra=body(ReportBody, {"host": REPORT, "pools": POOLS}),
)
async def report_host(request: Request, host: HostName) -> Response:
    """Replace a host's report. Its claims are not replaced: a claim ends only if `ended` lists it."""
    return await _report(request, await read_report(request, ReportBody, host))


@router.patch(
    "/report",
    summary="Patch a host's report",
    responses=answers(
        {200: ReportResult}, *BODY, NotFound, ClaimIdReused, ClaimState, OtherAgent, Settling, OutcomeUnknown
    ),
    openapi_extra=body(ReportPatch, {"part": PATCH}, "application/merge-patch+json"),
)
async def patch_host_report(request: Request, host: HostName) -> Response:
    """Apply a merge patch (RFC 7396) to the host's last report as stored. null removes a member."""
    patch = await read_object(request)
    last = report_of(await scheduler(request).hosts.get(host))
    return await _report(request, parse(to_json(merged(last, patch)), ReportBody, host))


@router.post(
    "/heartbeat",
    summary="Send a heartbeat",
    responses=answers({200: HeartbeatResult}, *BODY, NotFound, OtherAgent, Settling, OutcomeUnknown),
    openapi_extra=body(HeartbeatBody, {"plain": {"lease_s": 30}}),
)
async def send_heartbeat(request: Request, host: HostName) -> Response:
    """Renew the host's lease. `NOT_ATTESTED`: the store is in a new epoch; send a report that attests to it."""
    asked = await read(request, HeartbeatBody)
    outcome = await scheduler(request).hosts.heartbeat(host, asked.lease_s, asked.agent)
    return responses.answered(HeartbeatResult(outcome))


@router.get("/inbox", summary="Read a host's inbox", responses=answers({200: Inbox}, InvalidRequest, NotFound))
async def read_inbox(request: Request, host: HostName, query: Annotated[InboxQuery, Query()]) -> Response:
    """Return the notifications for the host's agent: claims placed on it, and claims to end."""
    entries = await scheduler(request).hosts.inbox(host, query.after)
    return responses.answered(Inbox(tuple(entries)))


async def _report(request: Request, asked: ReportBody) -> Response:
    by, known = caller(request), scheduler(request)
    check_report(by, asked)
    held, foreign = await without_foreign(by, known.agents.store(asked.cell), asked.name, asked.claims)
    found = await known.hosts.report(asked, asked.agent, asked.epoch, held, asked.ended)
    return responses.answered(replace(found, drop=(*found.drop, *foreign)))
