"""What operators declare: aggregates, server groups, shared pools, quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from redsched.errors import InvalidRequest
from redsched.model.hosts import Inventory, check_provided
from redsched.model.limits import MAX_CLASSES, check_range, check_size
from redsched.model.lists import Traits, as_list
from redsched.model.metadata import check_aggregate_metadata
from redsched.model.types import (
    Amount,
    Body,
    FromPath,
    Host,
    MetadataKey,
    MetadataValue,
    Name,
    ResourceClass,
    Topology,
    whole_from,
)
from redsched.model.validation import MAX_AMOUNT, check_amount, check_class, check_name, check_topology

MAX_METADATA = 256
MAX_PER_HOST = 1_000_000
MAX_TOPOLOGIES = 8
MAX_HOSTS = 100_000
"""The most hosts of an aggregate."""


class GroupPolicy(StrEnum):
    """How the members of a server group are placed relative to each other. Weighers implement the soft policies."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"


@dataclass(frozen=True, slots=True)
class Aggregate(Body):
    """A named set of hosts with metadata. docs/constraints.md lists the keys with a meaning."""

    name: Annotated[str, FromPath()]
    metadata: Annotated[
        Mapping[MetadataKey, MetadataValue],
        Field(
            max_length=MAX_METADATA, description="Keys and values. docs/constraints.md lists the keys with a meaning."
        ),
    ] = field(default_factory=dict)
    hosts: Annotated[
        frozenset[Host],
        Field(max_length=MAX_HOSTS, json_schema_extra=as_list, description="All hosts of the aggregate."),
    ] = frozenset()

    def __post_init__(self) -> None:
        check_name("aggregate", self.name)
        check_size("metadata", self.metadata, MAX_METADATA)
        for key, value in self.metadata.items():
            check_aggregate_metadata(key, value)
        for host in self.hosts:
            check_name("host", host)


@dataclass(frozen=True, slots=True)
class ServerGroup(Body):
    """Claims that are placed relative to each other: together or apart.

    `by` is what they share or must not share: the host, the zone, or a label's value. `max_per_host` is how many may
    share one under anti-affinity. Members are always counted by host and by zone; `count_by` names further labels by
    which to count them, so that requests can spread over those.
    """

    name: Annotated[str, FromPath()]
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

    def __post_init__(self) -> None:
        check_name("server group", self.name)
        check_topology(self.by)
        check_range("max_per_host", self.max_per_host, 1, MAX_PER_HOST)
        check_size("count_by", self.count_by, MAX_TOPOLOGIES)
        for one in self.count_by:
            check_topology(one)
        if self.max_per_host != 1 and self.policy is not GroupPolicy.ANTI_AFFINITY:
            raise InvalidRequest(f"max_per_host applies to anti-affinity only, not to {self.policy}: leave it out")

    def topologies(self) -> tuple[str, ...]:
        """Return every topology by which its members are counted, `host` first."""
        return tuple(dict.fromkeys(("host", "zone", self.by, *self.count_by)))

    def breach(self, members: int, counts: Mapping[str, int]) -> str:
        """Return how members break the hard policy, given how many are in each domain of `by`; '' if it holds.

        Members of no domain, because their hosts lack the label, break it too: no claim may join there.
        """
        if self.policy not in (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY):
            return ""
        placed = {domain: number for domain, number in sorted(counts.items()) if number}
        unplaced = members - sum(placed.values())
        if unplaced > 0:
            placed[f"no {self.by}"] = unplaced
        if self.policy is GroupPolicy.AFFINITY:
            return f"members are split: {_by_domain(placed)}" if members > max(counts.values(), default=0) else ""
        most = {domain: self.max_per_host if domain in counts else 0 for domain in placed}
        above = {domain: number for domain, number in placed.items() if number > most[domain]}
        return f"found {_by_domain(above)}, at most {self.max_per_host} allowed in each" if above else ""


def _by_domain(counts: Mapping[str, int], most: int = 5) -> str:
    texts = [f"{number} in {domain}" for domain, number in counts.items()]
    more = f" and in {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


@dataclass(frozen=True, slots=True)
class SharedPool(Body):
    """A pool shared by several hosts of a cell: those of its aggregates, or all hosts if it names none."""

    name: Annotated[str, FromPath()]
    inventories: Annotated[
        Mapping[ResourceClass, Inventory],
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

    def __post_init__(self) -> None:
        check_name("pool", self.name)
        if not self.inventories:
            raise InvalidRequest("inventories is empty: a shared pool needs at least one")
        check_provided(self.inventories, self.traits)
        check_size("aggregates", self.aggregates, MAX_METADATA)
        for aggregate in self.aggregates:
            check_name("aggregate", aggregate)


CLAIMS = "claims"
"""The key of a quota for the number of claims, beside the resource classes."""


@dataclass(frozen=True, slots=True, order=True)
class Exceeded:
    """A limit of a project's quota that a request would exceed: `used` + `asked` is more than `limit`.

    It may be MAX_AMOUNT, which no sum exceeds, without a quota.
    """

    resource: str
    limit: int
    used: int
    asked: int

    @property
    def is_of_range(self) -> bool:
        """Whether the limit is that of all sums."""
        return self.limit == MAX_AMOUNT

    @property
    def detail(self) -> str:
        """All its values in one sentence."""
        return f"{self.used} of {self.limit} {self.resource} are used, {self.asked} more requested"


@dataclass(frozen=True, slots=True)
class Quota(Body):
    """A project's limits over all cells: `limits` by class, and by `claims` for the number of its claims.

    Classes without a limit are unlimited. A limit below the current usage blocks new claims, and ends none.
    """

    project: Annotated[str, FromPath()]
    limits: Annotated[
        Mapping[ResourceClass | Literal["claims"], Amount],
        Field(
            min_length=1,
            max_length=MAX_CLASSES,
            description="Limits by class; `claims` limits their number. Other classes are unlimited.",
        ),
    ]

    def __post_init__(self) -> None:
        check_name("project", self.project)
        if not self.limits:
            raise InvalidRequest('limits is empty: give at least one, such as {"VCPU": 100} or {"claims": 50}')
        check_size("limits", self.limits, MAX_CLASSES)
        for name, limit in self.limits.items():
            check_amount(name if name == CLAIMS else check_class(name), limit)
