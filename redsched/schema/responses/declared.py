"""Responses about aggregates, server groups and shared pools."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from redsched.model import GroupPolicy
from redsched.scheduler import AggregateView, Page, ServerGroupView, SharedPoolView
from redsched.schema.answer import Answer, From
from redsched.schema.responses.hosts import SlotAnswer


class AggregateAnswer(Answer, shows=AggregateView):
    """An aggregate: its metadata and its hosts."""

    name: str
    metadata: dict[str, str]
    hosts: list[str]


class AggregatesAnswer(Answer, shows=Page):
    """A page of aggregates. `next` is the `after` of the next page, null on the last one."""

    aggregates: Annotated[list[AggregateAnswer], From("items")]
    next: str | None


class ServerGroupAnswer(Answer, shows=ServerGroupView):
    """A server group, and its number of members by host, zone and label value."""

    name: Annotated[str, From("group.name")]
    policy: Annotated[GroupPolicy, From("group.policy")]
    by: Annotated[str, From("group.by")]
    max_per_host: Annotated[int, From("group.max_per_host")]
    count_by: Annotated[list[str], From("group.count_by")]
    members: Annotated[int, Field(description="Number of claims in the group.")]
    counts: Annotated[
        Mapping[str, dict[str, int]],
        Field(description="Number of members by host, by zone, and by each topology of `count_by`."),
    ]


class ServerGroupsAnswer(Answer, shows=Page):
    """A page of server groups. `next` is the `after` of the next page, null on the last one."""

    server_groups: Annotated[list[ServerGroupAnswer], From("items")]
    next: str | None


class SharedPoolAnswer(Answer, shows=SharedPoolView):
    """A shared pool: its inventories with claimed and free amounts, and the aggregates whose hosts may use it."""

    name: str
    cell: str
    slots: dict[str, SlotAnswer]
    traits: list[str]
    aggregates: Annotated[
        list[str], Field(description="Aggregates whose hosts may use it. Empty: all hosts of the cell.")
    ]
    warnings: Annotated[
        list[str], Field(default_factory=list, description="Of which classes nothing can ever be claimed, and why.")
    ]


class SharedPoolsAnswer(Answer, shows=Page):
    """A page of shared pools. `next` is the `after` of the next page, null on the last one."""

    shared_pools: Annotated[list[SharedPoolAnswer], From("items")]
    next: str | None
