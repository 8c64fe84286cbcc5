"""/v1/aggregates, /v1/server-groups and /v1/shared-pools: objects that operators declare, and their state."""

from fastapi import APIRouter

from redsched.api.routes.common import KNOWN_QUERY
from redsched.api.routes.declared_kind import DeclaredKind, add_routes
from redsched.errors import ClaimState, NotFound
from redsched.model import Aggregate, ServerGroup
from redsched.scheduler import AggregateView, ServerGroupView, SharedPoolView
from redsched.schema import pages
from redsched.schema.requests.declared import SharedPoolBody

router = APIRouter(prefix="/v1", tags=["declared"], dependencies=[KNOWN_QUERY])

AGGREGATES = DeclaredKind[AggregateView, Aggregate](
    path="aggregates",
    singular="aggregate",
    example="licensed",
    service=lambda known: known.aggregates,
    put=lambda known, aggregate, tags: known.aggregates.put(aggregate, tags),
    body=Aggregate,
    record=AggregateView,
    page=pages.AGGREGATES,
    examples={"aggregate": {"metadata": {"ssd": "true", "filter_tenant_id": "web"}, "hosts": ["h17"]}},
    list_doc="Return a page of aggregates, sorted by name, with their metadata and hosts.",
    get_doc="Return an aggregate with its metadata and hosts.",
    put_doc="Declare an aggregate in every cell, replacing its metadata and hosts. 201: it is new. 404: unknown host.",
    delete_doc="Delete an aggregate. 409 if it has hosts; `force` removes them from it.",
    put_errors=(NotFound,),
)

SERVER_GROUPS = DeclaredKind[ServerGroupView, ServerGroup](
    path="server-groups",
    singular="server group",
    example="web",
    service=lambda known: known.server_groups,
    put=lambda known, group, tags: known.server_groups.put(group, tags),
    body=ServerGroup,
    record=ServerGroupView,
    page=pages.SERVER_GROUPS,
    examples={"server_group": {"policy": "anti-affinity", "by": "host", "max_per_host": 1, "count_by": ["label:rack"]}},
    list_doc="Return a page of server groups, sorted by name, with their counts.",
    get_doc="Return a server group, and its number of members by host, zone and label value.",
    put_doc="Declare a server group in every cell. 201: it is new. 409: with members, only `max_per_host` can change.",
    delete_doc="Delete a server group. 409 if it has members; with `force` they stay where they are.",
    put_errors=(ClaimState,),
)

SHARED_POOLS = DeclaredKind[SharedPoolView, SharedPoolBody](
    path="shared-pools",
    singular="shared pool",
    example="licences",
    service=lambda known: known.pools,
    put=lambda known, pool, tags: known.pools.put(pool, pool.cell, tags),
    body=SharedPoolBody,
    record=SharedPoolView,
    page=pages.SHARED_POOLS,
    examples={
        "pool": {
            "inventories": {"CUSTOM_SEAT": {"total": 100}},
            "traits": ["CUSTOM_LICENCE"],
            "aggregates": ["licensed"],
        }
    },
    list_doc="Return a page of shared pools, sorted by name, with their claimed and free amounts.",
    get_doc="Return a shared pool with its claimed and free amounts.",
    put_doc="Declare a shared pool in one cell. Claimed amounts stay. 201: it is new. 409: taken in another cell.",
    delete_doc="Delete a shared pool. 409 while any of its amounts are claimed, unless `force`.",
    put_errors=(NotFound, ClaimState),
)

for _kind in (AGGREGATES, SERVER_GROUPS, SHARED_POOLS):
    add_routes(router, _kind)
