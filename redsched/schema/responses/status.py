"""The response of `redsched status --json`."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from redsched.scheduler.status.results import (
    AuditStatus,
    CellStatus,
    ClosedHost,
    HostCounts,
    SchedulerStatus,
    ServerStatus,
    StatusProblem,
    StatusReport,
)
from redsched.schema.answer import Answer


class StatusProblemAnswer(Answer, shows=StatusProblem):
    """Something that is wrong or stuck."""

    kind: Annotated[str, Field(description="Its name for programs, such as `host-down`.")]
    cell: Annotated[str, Field(description="Empty for a problem of the store.")]
    detail: Annotated[str, Field(description="What is wrong, and why.")]
    advice: Annotated[str, Field(description="What to do.")]
    commands: Annotated[list[str], Field(description="What to run.")]
    about: Annotated[list[str], Field(description="The first 100 hosts or claims that it is about.")]
    count: Annotated[int, Field(description="Their number.")]


class ServerStatusAnswer(Answer, shows=ServerStatus):
    """A server of the store."""

    name: Annotated[str, Field(description="Empty for the only server.")]
    version: str
    role: Annotated[str, Field(description="`primary` or `replica`.")]
    replicas: int
    memory_bytes: int
    max_memory_bytes: Annotated[int, Field(description="0: no limit.")]
    memory_policy: str
    append_only: bool
    saved: Annotated[bool, Field(description="Whether the last write to its disk succeeded.")]
    primary: Annotated[str, Field(description="Address of the primary of a replica.")]
    is_linked: bool
    is_full: Annotated[bool, Field(description="Whether it is out of memory, and refuses what needs more.")] = False


class SchedulerStatusAnswer(Answer, shows=SchedulerStatus):
    """A scheduler that runs."""

    id: str
    version: str
    node: str
    pid: int
    lag_ms: Annotated[int, Field(description="How far its replica was behind the store, in ms.")]
    seen_ms: Annotated[int, Field(description="How long ago it announced itself, in ms.")]


class HostCountsAnswer(Answer, shows=HostCounts):
    """Numbers of hosts."""

    total: int
    up: int
    down: int
    written_off: int
    unattested: int
    disabled: int
    draining: int
    with_agent: int
    slowest: Annotated[str, Field(description="The host that is up and was heard of least recently.")]
    slowest_ms: int
    agent_versions: Annotated[
        dict[str, int], Field(description="Numbers of agents by release; empty for those that do not tell theirs.")
    ]


class AuditStatusAnswer(Answer, shows=AuditStatus):
    """The last check by a scheduler."""

    at_ms: int
    hosts: int
    claims: int
    broken: int
    repaired: int
    problems: list[str]


class ClosedHostAnswer(Answer, shows=ClosedHost):
    """A host that takes no claims because an operator has disabled or drained it."""

    name: str
    status: Annotated[str, Field(description="`disabled` or `draining`.")]
    claims: Annotated[int, Field(description="Those that are left there.")]
    moves: Annotated[bool, Field(description="Whether they are being moved to other hosts. Otherwise they stay.")]
    reason: Annotated[str, Field(description="Why, if that is known.")]


class CellStatusAnswer(Answer, shows=CellStatus):
    """A cell."""

    name: str
    epoch: str
    epoch_began_ms: Annotated[
        int,
        Field(description="When the store last restarted, failed over or lost data (Unix, ms)."),
    ]
    now_ms: Annotated[int, Field(description="The store's time (Unix, ms).")]
    settled: bool
    settle_at_ms: Annotated[int | None, Field(description="When the cell settles at the latest; null if it has.")]
    unattested: Annotated[
        int,
        Field(
            description="For how many hosts it waits. After a wipe: how many that schedulers remember; -1: none does."
        ),
    ]
    hosts: HostCountsAnswer
    claims: Annotated[Mapping[str, int], Field(description="Numbers by state.")]
    at_least: Annotated[list[str], Field(description="States of which there may be more.")]
    draining: Annotated[list[str], Field(description="Hosts whose claims are being moved, and have claims left.")]
    closed: Annotated[
        list[ClosedHostAnswer],
        Field(
            default_factory=list,
            description="The first 100 hosts that are disabled or drained, those with the most claims first. Absent if "
            "there are none.",
        ),
    ]
    schedulers: list[SchedulerStatusAnswer]
    audit: AuditStatusAnswer | None


class StatusAnswer(Answer, shows=StatusReport):
    """The state of the store and of all cells, and what is wrong."""

    healthy: bool
    problems: list[StatusProblemAnswer]
    cells: list[CellStatusAnswer]
    servers: list[ServerStatusAnswer]
    durability: Annotated[str, Field(description="What claims wait for, by the settings of the command.")]
