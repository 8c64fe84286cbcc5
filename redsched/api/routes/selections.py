"""POST /v1/selections and /v1/explain: select and claim hosts, and explain why hosts fit or do not."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched import model
from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.access.redact import Redactor
from redsched.api.disconnect import unless_gone
from redsched.api.idempotency import PARAMETER, with_key
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read
from redsched.api.routes.common import KNOWN_QUERY, caller, refuse_query, scheduler
from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    NotConfirmed,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    PlannerBusy,
    QuotaExceeded,
    Settling,
    TooHard,
)
from redsched.model.records.explanations import Explanation
from redsched.model.records.selections import Selections
from redsched.schema.requests.queries import ExplainQuery

router = APIRouter(tags=["selections"])

PATH = "/v1/selections"

EXAMPLES = {
    "small": {"resources": {"VCPU": 2, "MEMORY_MB": 4096}},
    "spread_with_alternates": {
        "resources": {"VCPU": 2, "MEMORY_MB": 4096},
        "required": ["HW_CPU_X86_AVX2"],
        "zone": "az1",
        "alternates": 2,
        "project": "web",
    },
    "gang": {
        "members": [
            {"name": "db", "count": 2, "resources": {"VCPU": 1, "MEMORY_MB": 1024}},
            {"name": "web", "resources": {"VCPU": 1}, "any_of": [["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"]]},
        ],
        "relations": [{"type": "same-zone", "members": ["db", "web"]}],
    },
    "pools": {
        "groups": [{"name": "cpus", "resources": {"VCPU": 1}}, {"name": "memory", "resources": {"MEMORY_MB": 512}}],
        "group_policy": "none",
        "query": [">=", "$free.VCPU", 2],
    },
    "dry_run": {"resources": {"VCPU": 1}, "claim": False},
}


@router.post(
    PATH,
    status_code=201,
    summary="Select and claim",
    responses=answers(
        {201: Selections, 200: Selections},
        *BODY,
        ClaimIdReused,
        NoValidHost,
        QuotaExceeded,
        NotConfirmed,
        NotFound,
        ClaimState,
        TooHard,
        PlannerBusy,
        Settling,
        OutcomeUnknown,
    ),
    openapi_extra={**body(model.Request, EXAMPLES), "parameters": [PARAMETER]},
)
async def select(request: Request) -> Response:
    """Select hosts and claim the amounts on them.

    201: claimed. 200: a dry run (`claim: false`), or a repeat with the same claim ids, which returns the first outcome.
    504: with `until: active`, the hosts did not confirm in time, and everything is released.
    """
    refuse_query(request)  # here, because redsched/api/fast_path.py runs no dependencies
    known, by = scheduler(request), caller(request)
    own = await restrict.selection(by, await read(request, model.Request), known.claims)
    asked = with_key(own, request, by)
    selecting = known.select(asked, asked.owner or by.owner, by.own_only)
    waits = asked.queue_timeout_s or asked.until == "active"
    found = Redactor(request).selections(await (unless_gone(request, selecting) if waits else selecting))
    if found.fresh and (first := found.selections[0].claim_id):  # a dry run has no ids
        return responses.answered(found, 201, {"Location": responses.claim_path(first)})
    return responses.answered(found)


@router.post(
    "/v1/explain",
    dependencies=[KNOWN_QUERY],
    summary="Explain a selection",
    responses=answers({200: Explanation}, *BODY, NotFound, NoValidHost, TooHard, PlannerBusy, Settling),
    openapi_extra=body(model.Request, EXAMPLES),
)
async def explain(request: Request, query: Annotated[ExplainQuery, Query()]) -> Response:
    """Explain a selection without claiming: the number of hosts excluded by each reason, and the nearest misses.

    Takes the body of a selection. Writes nothing.
    """
    known = scheduler(request)
    asked = await restrict.explanation(caller(request), await read(request, model.Request), query, known.claims)
    hosts = [*query.host, *(await known.host_names(query.limit, query.after) if query.limit else ())]
    found = await known.explain(asked, *dict.fromkeys(hosts))
    return responses.answered(Redactor(request).explanation(found))
