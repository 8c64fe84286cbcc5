"""Aggregates, server groups and shared pools."""

from typing import Annotated

from pydantic import Field

from redsched.model import GroupPolicy
from redsched.schema.responses.hosts import SlotAnswer
from redsched.schema.types import Answer


class AggregateAnswer(Answer):
    """An aggregate: its metadata, and the hosts that are in it."""

    name: str
    metadata: dict[str, str]
    hosts: list[str]


class AggregatesAnswer(Answer):
    """A page of aggregates; `next` is the `after` of the next page, null on the last."""

    aggregates: list[AggregateAnswer]
    next: str | None


class ServerGroupAnswer(Answer):
    """A server group, and how many members it has where."""

    name: str
    policy: GroupPolicy
    by: str
    max_per_host: int
    count_by: list[str]
    members: Annotated[int, Field(description="Claims that are in it.")]
    counts: Annotated[
        dict[str, dict[str, int]], Field(description="Members by host, by zone, and by what it counts besides.")
    ]


class ServerGroupsAnswer(Answer):
    """A page of server groups; `next` is the `after` of the next page, null on the last."""

    server_groups: list[ServerGroupAnswer]
    next: str | None


class SharedPoolAnswer(Answer):
    """A shared pool: what each class has, what is claimed and free, and whose hosts may take from it."""

    name: str
    cell: str
    slots: dict[str, SlotAnswer]
    traits: list[str]
    aggregates: Annotated[list[str], Field(description="Empty: all hosts of the cell.")]


class SharedPoolsAnswer(Answer):
    """A page of shared pools; `next` is the `after` of the next page, null on the last."""

    shared_pools: list[SharedPoolAnswer]
    next: str | None
