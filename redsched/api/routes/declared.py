"""/v1/aggregates, /v1/server-groups and /v1/shared-pools: what operators declare, by PUT, and how it stands."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from redsched.api import etags, responses
from redsched.api.openapi import BODY, answers, body
from redsched.api.problems import PreconditionFailed
from redsched.api.request_body import read
from redsched.api.routes.common import KNOWN_QUERY, AggregateName, PoolName, ServerGroupName, scheduler
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown
from redsched.schema import render
from redsched.schema.requests import AggregateBody, ForgetQuery, PageQuery, ServerGroupBody, SharedPoolBody
from redsched.schema.responses import (
    AggregateAnswer,
    AggregatesAnswer,
    ServerGroupAnswer,
    ServerGroupsAnswer,
    SharedPoolAnswer,
    SharedPoolsAnswer,
)

router = APIRouter(prefix="/v1", tags=["declared"], dependencies=[KNOWN_QUERY])

AGGREGATE = {"metadata": {"ssd": "true", "filter_tenant_id": "web"}, "hosts": ["h17"]}
SERVER_GROUP = {"policy": "anti-affinity", "by": "host", "max_per_host": 1, "count_by": ["label:rack"]}
POOL = {"inventories": {"CUSTOM_SEAT": {"total": 100}}, "traits": ["CUSTOM_LICENCE"], "aggregates": ["licensed"]}

TAKEN_BACK = answers({204: None}, InvalidRequest, NotFound, ClaimState, OutcomeUnknown, PreconditionFailed)


@router.get("/aggregates", summary="List aggregates", responses=answers({200: AggregatesAnswer}, InvalidRequest))
async def list_aggregates(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of aggregates, by name, with their metadata and hosts."""
    page = await scheduler(request).aggregates.list(**query.model_dump())
    return responses.answer({"aggregates": [render.aggregate(one) for one in page.items], "next": page.next})


@router.get(
    "/aggregates/{name}",
    summary="One aggregate",
    responses=answers({200: AggregateAnswer}, InvalidRequest, NotFound, etag=True),
)
async def get_aggregate(request: Request, name: AggregateName) -> Response:
    """An aggregate with its metadata and hosts."""
    found = await scheduler(request).aggregates.get(name)
    return responses.answer(render.aggregate(found), headers=etags.AGGREGATES.header(found))


@router.put(
    "/aggregates/{name}",
    dependencies=[etags.IF_MATCH],
    summary="Declare an aggregate",
    responses=answers(
        {200: AggregateAnswer, 201: AggregateAnswer}, *BODY, NotFound, OutcomeUnknown, PreconditionFailed, etag=True
    ),
    openapi_extra=body(AggregateBody, {"aggregate": AGGREGATE}),
)
async def put_aggregate(request: Request, name: AggregateName) -> Response:
    """Replaces its metadata and hosts, in every cell. 201: it is new. 404: a host that has never reported."""
    asked = (await read(request, AggregateBody)).aggregate(name)
    await etags.AGGREGATES.check(request, name)
    found, new = await scheduler(request).aggregates.put(asked)
    return responses.created(render.aggregate(found), request.url.path, new, etags.AGGREGATES.header(found))


@router.delete(
    "/aggregates/{name}",
    dependencies=[etags.IF_MATCH],
    status_code=204,
    summary="Take an aggregate back",
    responses=TAKEN_BACK,
)
async def delete_aggregate(request: Request, name: AggregateName, query: Annotated[ForgetQuery, Query()]) -> Response:
    """409 while it has hosts, unless `force`: then they leave it."""
    await etags.AGGREGATES.check(request, name)
    await scheduler(request).aggregates.delete(name, force=query.force)
    return responses.nothing()


@router.get(
    "/server-groups", summary="List server groups", responses=answers({200: ServerGroupsAnswer}, InvalidRequest)
)
async def list_server_groups(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of server groups, by name, with their counts."""
    page = await scheduler(request).server_groups.list(**query.model_dump())
    return responses.answer({"server_groups": [render.server_group(one) for one in page.items], "next": page.next})


@router.get(
    "/server-groups/{name}",
    summary="One server group",
    responses=answers({200: ServerGroupAnswer}, InvalidRequest, NotFound, etag=True),
)
async def get_server_group(request: Request, name: ServerGroupName) -> Response:
    """A server group, and how many members it has where."""
    found = await scheduler(request).server_groups.get(name)
    return responses.answer(render.server_group(found), headers=etags.SERVER_GROUPS.header(found))


@router.put(
    "/server-groups/{name}",
    dependencies=[etags.IF_MATCH],
    summary="Declare a server group",
    responses=answers(
        {200: ServerGroupAnswer, 201: ServerGroupAnswer},
        *BODY,
        ClaimState,
        OutcomeUnknown,
        PreconditionFailed,
        etag=True,
    ),
    openapi_extra=body(ServerGroupBody, {"server_group": SERVER_GROUP}),
)
async def put_server_group(request: Request, name: ServerGroupName) -> Response:
    """In every cell. 201: it is new. 409: it has members, and something else than `max_per_host` would change."""
    asked = (await read(request, ServerGroupBody)).server_group(name)
    await etags.SERVER_GROUPS.check(request, name)
    found, new = await scheduler(request).server_groups.put(asked)
    return responses.created(render.server_group(found), request.url.path, new, etags.SERVER_GROUPS.header(found))


@router.delete(
    "/server-groups/{name}",
    dependencies=[etags.IF_MATCH],
    status_code=204,
    summary="Take a server group back",
    responses=TAKEN_BACK,
)
async def delete_server_group(
    request: Request, name: ServerGroupName, query: Annotated[ForgetQuery, Query()]
) -> Response:
    """409 while it has members, unless `force`: they stay where they are."""
    await etags.SERVER_GROUPS.check(request, name)
    await scheduler(request).server_groups.delete(name, force=query.force)
    return responses.nothing()


@router.get("/shared-pools", summary="List shared pools", responses=answers({200: SharedPoolsAnswer}, InvalidRequest))
async def list_shared_pools(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of shared pools, by name, with what is claimed and free."""
    page = await scheduler(request).pools.list(**query.model_dump())
    return responses.answer({"shared_pools": [render.shared_pool(one) for one in page.items], "next": page.next})


@router.get(
    "/shared-pools/{name}",
    summary="One shared pool",
    responses=answers({200: SharedPoolAnswer}, InvalidRequest, NotFound, etag=True),
)
async def get_shared_pool(request: Request, name: PoolName) -> Response:
    """A shared pool with what is claimed and free."""
    found = await scheduler(request).pools.get(name)
    return responses.answer(render.shared_pool(found), headers=etags.SHARED_POOLS.header(found))


@router.put(
    "/shared-pools/{name}",
    dependencies=[etags.IF_MATCH],
    summary="Declare a shared pool",
    responses=answers(
        {200: SharedPoolAnswer, 201: SharedPoolAnswer},
        *BODY,
        NotFound,
        ClaimState,
        OutcomeUnknown,
        PreconditionFailed,
        etag=True,
    ),
    openapi_extra=body(SharedPoolBody, {"pool": POOL}),
)
async def put_shared_pool(request: Request, name: PoolName) -> Response:
    """In one cell. What is claimed of it stays. 201: it is new. 409: the name is taken in another cell."""
    asked = await read(request, SharedPoolBody)
    await etags.SHARED_POOLS.check(request, name)
    found, new = await scheduler(request).pools.put(asked.pool(name), asked.cell)
    return responses.created(render.shared_pool(found), request.url.path, new, etags.SHARED_POOLS.header(found))


@router.delete(
    "/shared-pools/{name}",
    dependencies=[etags.IF_MATCH],
    status_code=204,
    summary="Take a shared pool back",
    responses=TAKEN_BACK,
)
async def delete_shared_pool(request: Request, name: PoolName, query: Annotated[ForgetQuery, Query()]) -> Response:
    """409 while something of it is claimed, unless `force`."""
    await etags.SHARED_POOLS.check(request, name)
    await scheduler(request).pools.delete(name, force=query.force)
    return responses.nothing()
