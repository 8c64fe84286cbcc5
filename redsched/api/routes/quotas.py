"""/v1/quotas: what projects may take together, by PUT, and what they do. /v1/usage: what all claims take."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import etags, responses
from redsched.api.openapi import BODY, answers, body
from redsched.api.problems import PreconditionFailed
from redsched.api.request_body import read
from redsched.api.routes.common import KNOWN_QUERY, ProjectName, scheduler
from redsched.errors import InvalidRequest, NotFound, OutcomeUnknown
from redsched.scheduler import usage_by
from redsched.schema import render
from redsched.schema.requests import PageQuery, QuotaBody, UsageQuery
from redsched.schema.responses import QuotaAnswer, QuotasAnswer, UsageAnswer

router = APIRouter(prefix="/v1", tags=["quotas"], dependencies=[KNOWN_QUERY])

QUOTA = {"limits": {"VCPU": 100, "claims": 50}}


@router.get("/quotas", summary="List quotas", responses=answers({200: QuotasAnswer}, InvalidRequest, OutcomeUnknown))
async def list_quotas(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of quotas, by project, with what is used of each."""
    page = await scheduler(request).quotas.list(**query.model_dump())
    return responses.answer({"quotas": [render.quota(one) for one in page.items], "next": page.next})


@router.get(
    "/quotas/{project}",
    summary="One quota",
    responses=answers({200: QuotaAnswer}, InvalidRequest, NotFound, OutcomeUnknown, etag=True),
)
async def get_quota(request: Request, project: ProjectName) -> Response:
    """A project's limits, and what its claims use over all cells."""
    found = await scheduler(request).quotas.get(project)
    return responses.answer(render.quota(found), headers=etags.QUOTAS.header(found))


@router.put(
    "/quotas/{project}",
    dependencies=[etags.IF_MATCH],
    summary="Declare a quota",
    responses=answers({200: QuotaAnswer, 201: QuotaAnswer}, *BODY, OutcomeUnknown, PreconditionFailed, etag=True),
    openapi_extra=body(QuotaBody, {"quota": QUOTA}),
)
async def put_quota(request: Request, project: ProjectName) -> Response:
    """Replaces all limits. 201: it is new, and claims that are there already are counted."""
    asked = (await read(request, QuotaBody)).quota(project)
    await etags.QUOTAS.check(request, project)
    found, new = await scheduler(request).quotas.put(asked)
    return responses.created(render.quota(found), request.url.path, new, etags.QUOTAS.header(found))


@router.delete(
    "/quotas/{project}",
    dependencies=[etags.IF_MATCH],
    status_code=204,
    summary="Take a quota back",
    responses=answers({204: None}, InvalidRequest, NotFound, OutcomeUnknown, PreconditionFailed),
)
async def delete_quota(request: Request, project: ProjectName) -> Response:
    """From now on nothing limits the project."""
    await etags.QUOTAS.check(request, project)
    await scheduler(request).quotas.delete(project)
    return responses.nothing()


@router.get("/usage", summary="What claims use", responses=answers({200: UsageAnswer}, InvalidRequest))
async def get_usage(request: Request, query: Annotated[UsageQuery, Query()]) -> Response:
    """Sums over all claims that have not ended, for each zone and project that `by` names; `class`: of each class."""
    return responses.answer(
        {"usage": [render.usage(one) for one in await scheduler(request).usage(usage_by(",".join(query.by)))]}
    )
