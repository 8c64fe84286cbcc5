"""Declared objects as they are stored, with what claims use of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import not_
from typing import Annotated

from pydantic import Field

from redsched.model.declared import GroupPolicy, ServerGroup
from redsched.model.records.fields import Names, Numbers, Texts, if_any
from redsched.model.records.hosts import Slots


@dataclass(frozen=True, slots=True)
class AggregateView:
    """An aggregate over all cells: its metadata and its hosts."""

    name: str
    metadata: Texts
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerGroupView:
    """A server group over all cells, and its number of members by host, zone and label value."""

    name: str
    policy: GroupPolicy
    by: str
    max_per_host: int
    count_by: tuple[str, ...]
    members: Annotated[int, Field(description="Number of claims in the group.")]
    counts: Annotated[
        Mapping[str, Numbers],
        Field(description="Number of members by host, by zone, and by each topology of `count_by`."),
    ]

    @property
    def group(self) -> ServerGroup:
        """Its declaration."""
        return ServerGroup(self.name, self.policy, self.by, self.max_per_host, self.count_by)


@dataclass(frozen=True, slots=True)
class SharedPoolView:
    """A shared pool: its inventories with claimed and free amounts, and the aggregates whose hosts may use it."""

    name: str
    cell: str
    slots: Slots
    traits: Names
    aggregates: Annotated[Names, Field(description="Aggregates whose hosts may use it. Empty: all hosts of the cell.")]
    warnings: Annotated[
        tuple[str, ...],
        Field(
            description="Of which classes nothing can ever be claimed, and why. Absent if there are none.",
            exclude_if=not_,
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A project's quota, and the usage of its claims over all cells."""

    project: str
    limits: Annotated[Numbers, Field(description="Limits by class; `claims` limits their number.")]
    used: Annotated[
        Numbers,
        Field(description="Usage by class, including classes without a limit; `claims` is their number."),
    ]


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of a group of claims; `zone` and `project` are present if they were requested."""

    used: Annotated[Numbers, Field(description="Usage by class, if requested; `claims` is the number of claims.")]
    zone: Annotated[str | None, if_any("Zone of their hosts.")] = None
    project: Annotated[str | None, if_any("Their project. Empty: claims without a project.")] = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage, with a row for each combination of keys that occurs, sorted."""

    usage: tuple[UsageRow, ...]
