"""Bodies of declared objects: aggregates, server groups, shared pools, quotas. A PUT replaces the whole object."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from redsched.model import MAX_CLASSES, Aggregate, GroupPolicy, Quota, ServerGroup, SharedPool
from redsched.model.declared import MAX_METADATA, MAX_PER_HOST, MAX_TOPOLOGIES
from redsched.schema.requests.converting import given
from redsched.schema.requests.lists import Traits, as_list
from redsched.schema.requests.reports import InventoryBody
from redsched.schema.types import (
    Amount,
    GivenName,
    MetadataKey,
    MetadataValue,
    Name,
    ResourceClass,
    Strict,
    Topology,
    whole_from,
)

MAX_HOSTS = 100_000


class AggregateBody(Strict):
    """A named set of hosts with metadata."""

    metadata: Annotated[
        dict[MetadataKey, MetadataValue],
        Field(
            max_length=MAX_METADATA, description="Keys and values. docs/constraints.md lists the keys with a meaning."
        ),
    ] = Field(default_factory=dict)
    hosts: Annotated[
        frozenset[Name],
        Field(max_length=MAX_HOSTS, json_schema_extra=as_list, description="All hosts of the aggregate."),
    ] = frozenset()

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"ssd": "true"}, "hosts": []}]})

    def aggregate(self, name: str) -> Aggregate:
        """Convert to the model's aggregate. Raises InvalidRequest."""
        return Aggregate(name, **given(self))


class ServerGroupBody(Strict):
    """A policy for placing claims relative to each other."""

    policy: GroupPolicy
    by: Annotated[Topology, Field(description="What members share or do not share: host, zone or label:<key>.")] = (
        "host"
    )
    max_per_host: Annotated[
        int,
        whole_from(1, MAX_PER_HOST),
        Field(description="How many members may share a host, zone or label value, under anti-affinity."),
    ] = 1
    count_by: Annotated[
        tuple[Topology, ...],
        Field(max_length=MAX_TOPOLOGIES, description="Further topologies by which members are counted, for `spread`."),
    ] = ()

    model_config = ConfigDict(json_schema_extra={"examples": [{"policy": "anti-affinity", "max_per_host": 2}]})

    def server_group(self, name: str) -> ServerGroup:
        """Convert to the model's server group. Raises InvalidRequest."""
        return ServerGroup(name, **given(self))


class SharedPoolBody(Strict):
    """A pool that several hosts of a cell may use."""

    inventories: Annotated[
        dict[ResourceClass, InventoryBody],
        Field(min_length=1, max_length=MAX_CLASSES, description="Inventories by class."),
    ]
    traits: Traits = frozenset()
    aggregates: Annotated[
        frozenset[Name],
        Field(
            max_length=MAX_METADATA,
            json_schema_extra=as_list,
            description="Aggregates whose hosts may use the pool. Empty: all hosts of the cell.",
        ),
    ] = frozenset()
    cell: Annotated[GivenName, Field(description="The cell whose hosts may use the pool.")] = "c1"

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"inventories": {"CUSTOM_SEAT": {"total": 100}}, "aggregates": ["licensed"]}]}
    )

    def pool(self, name: str) -> SharedPool:
        """Convert to the model's shared pool. Raises InvalidRequest."""
        return SharedPool(name, **given(self, frozenset(("cell",))))


class QuotaBody(Strict):
    """Limits on the total usage of a project's claims, over all cells."""

    limits: Annotated[
        dict[ResourceClass | Literal["claims"], Amount],
        Field(
            min_length=1,
            max_length=MAX_CLASSES,
            description="Limits by class; `claims` limits their number. Other classes are unlimited.",
        ),
    ]

    model_config = ConfigDict(json_schema_extra={"examples": [{"limits": {"VCPU": 100, "claims": 50}}]})

    def quota(self, project: str) -> Quota:
        """Convert to the model's quota. Raises InvalidRequest."""
        return Quota(project, self.limits)
