"""/v1/quotas: the limits of projects, declared by PUT, and their usage. /v1/usage, /v1/capacity: all."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.openapi import answers
from redsched.api.routes.common import KNOWN_QUERY, caller, scheduler
from redsched.api.routes.declared_kind import DeclaredKind, add_routes
from redsched.errors import ClaimState, InvalidRequest, OutcomeUnknown
from redsched.model import Quota
from redsched.model.records.capacity import Capacity
from redsched.model.records.declared import Usage
from redsched.scheduler import QuotaView, usage_by
from redsched.schema import pages
from redsched.schema.requests.queries import CapacityQuery, UsageQuery

router = APIRouter(prefix="/v1", tags=["quotas"], dependencies=[KNOWN_QUERY])

QUOTAS = DeclaredKind[QuotaView, Quota](
    path="quotas",
    singular="quota",
    parameter="project",
    example="web",
    service=lambda known: known.quotas,
    put=lambda known, quota, tags: known.quotas.put(quota, tags),
    body=Quota,
    record=QuotaView,
    page=pages.QUOTAS,
    visible=restrict.visible_projects,
    examples={"quota": {"limits": {"VCPU": 100, "claims": 50}}},
    forced=False,
    list_doc="Return a page of quotas, sorted by project, with their usage.",
    get_doc="Return a project's limits, and the usage of its claims over all cells.",
    put_doc="Declare a project's quota, replacing all limits. 201: it is new; existing claims count.",
    delete_doc="Delete a quota. The project then has no limits.",
    list_errors=(OutcomeUnknown,),
    put_errors=(ClaimState,),
)

add_routes(router, QUOTAS)


@router.get("/usage", summary="Get usage", responses=answers({200: Usage}, InvalidRequest))
async def get_usage(request: Request, query: Annotated[UsageQuery, Query()]) -> Response:
    """Return the usage of all claims that have not ended, summed by zone, project and class, as `by` names them."""
    rows = await scheduler(request).usage(usage_by(",".join(query.by)), restrict.visible_projects(caller(request)))
    return responses.answered(Usage(rows))


@router.get("/capacity", summary="Get capacity", responses=answers({200: Capacity}, InvalidRequest))
async def get_capacity(request: Request, query: Annotated[CapacityQuery, Query()]) -> Response:
    """Return by class how much there is, is claimed and is free, and the most one claim can take; `by` adds rows.

    Tenants get what is free to each of their projects, within its quota; no hosts are named.
    """
    who = caller(request)
    rows = await scheduler(request).capacity(restrict.capacity_by(who, query.by), restrict.visible_projects(who))
    return responses.answered(Capacity(query.by, rows))
