"""/v1/quotas: the limits of projects, declared by PUT, and what is used. /v1/usage: what all claims use."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.openapi import answers
from redsched.api.routes.common import KNOWN_QUERY, scheduler
from redsched.api.routes.declared_kind import DeclaredKind, add_routes
from redsched.errors import InvalidRequest, OutcomeUnknown
from redsched.scheduler import QuotaView, usage_by
from redsched.schema import render
from redsched.schema.requests import QuotaBody, UsageQuery
from redsched.schema.responses import QuotaAnswer, QuotasAnswer, UsageAnswer

router = APIRouter(prefix="/v1", tags=["quotas"], dependencies=[KNOWN_QUERY])

QUOTAS = DeclaredKind[QuotaView, QuotaBody](
    path="quotas",
    singular="quota",
    parameter="project",
    example="web",
    service=lambda known: known.quotas,
    put=lambda known, name, body, tags: known.quotas.put(body.quota(name), tags),
    show=QuotaAnswer.of,
    body=QuotaBody,
    answer=QuotaAnswer,
    page=QuotasAnswer,
    examples={"quota": {"limits": {"VCPU": 100, "claims": 50}}},
    forced=False,
    list_doc="A page of quotas, by project, with what is used of each.",
    get_doc="A project's limits, and what its claims use over all cells.",
    put_doc="Replaces all limits. 201: it is new, and claims that are there already are counted.",
    delete_doc="From now on nothing limits the project.",
    list_errors=(OutcomeUnknown,),
)

add_routes(router, QUOTAS)


@router.get("/usage", summary="What claims use", responses=answers({200: UsageAnswer}, InvalidRequest))
async def get_usage(request: Request, query: Annotated[UsageQuery, Query()]) -> Response:
    """Sums over all claims that have not ended, for each zone and project that `by` names; `class`: of each class."""
    rows = await scheduler(request).usage(usage_by(",".join(query.by)))
    return responses.answer({"usage": [render.usage(one) for one in rows]})
