"""The status of a store and its cells. Times are Unix ms by the store's clock, ages in ms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import not_
from typing import Annotated

from pydantic import Field, computed_field


@dataclass(frozen=True, slots=True)
class StatusProblem:
    """Something that is wrong or stuck."""

    kind: Annotated[str, Field(description="Its name for programs, such as `host-down`.")]
    cell: Annotated[str, Field(description="Empty for a problem of the store.")]
    detail: Annotated[str, Field(description="What is wrong, and why.")]
    advice: Annotated[str, Field(description="What to do.")]
    commands: Annotated[tuple[str, ...], Field(description="What to run.")] = ()
    about: Annotated[tuple[str, ...], Field(description="The first 100 hosts or claims that it is about.")] = ()
    count: Annotated[int, Field(description="Their number.")] = 0


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server of the store."""

    name: Annotated[str, Field(description="Empty for the only server.")]
    version: str
    role: Annotated[str, Field(description="`primary` or `replica`.")]
    replicas: int
    memory_bytes: int
    max_memory_bytes: Annotated[int, Field(description="0: no limit.")]
    memory_policy: str
    append_only: Annotated[bool, Field(description="Whether it appends each write to a file.")]
    saved: Annotated[bool, Field(description="Whether the last write to its disk succeeded.")]
    primary: Annotated[str, Field(description="Address of the primary of a replica.")] = ""
    is_linked: Annotated[bool, Field(description="Whether a replica is connected to its primary.")] = True
    is_full: Annotated[
        bool, Field(description="Whether it is out of memory, and refuses what needs more.", exclude_if=not_)
    ] = False


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """A scheduler that runs."""

    id: str
    version: str
    node: str
    pid: int
    lag_ms: Annotated[int, Field(description="How far its replica was behind the store, in ms.")]
    seen_ms: Annotated[int, Field(description="How long ago it announced itself, in ms.")]


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Numbers of hosts. Each is in `total`; `up`, `down` and `written_off` add up to it."""

    total: int = 0
    up: int = 0
    down: int = 0
    written_off: int = 0
    unattested: Annotated[int, Field(description="Hosts that have not attested to the epoch.")] = 0
    disabled: int = 0
    draining: int = 0
    with_agent: Annotated[int, Field(description="Hosts that an agent reports.")] = 0
    slowest: Annotated[str, Field(description="The host that is up and was heard of least recently.")] = ""
    slowest_ms: Annotated[int, Field(description="How long ago that was, in ms.")] = 0
    agent_versions: Annotated[
        Mapping[str, int],
        Field(description="Numbers of agents by release; empty for those that do not tell theirs."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The last check of a cell by a scheduler: problems left and repaired, and the first of those left."""

    at_ms: int
    hosts: int
    claims: int
    broken: int
    repaired: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedHost:
    """A host that takes no claims because an operator has disabled or drained it."""

    name: str
    status: Annotated[str, Field(description="`disabled` or `draining`.")]
    claims: Annotated[int, Field(description="Those that are left there.")]
    moves: Annotated[bool, Field(description="Whether they are being moved to other hosts. Otherwise they stay.")]
    reason: Annotated[str, Field(description="Why, if that is known.")]


@dataclass(frozen=True, slots=True)
class CellStatus:
    """A cell."""

    name: str
    epoch: str = ""
    epoch_began_ms: Annotated[
        int,
        Field(description="When the store last restarted, failed over or lost data: the first write after that."),
    ] = 0
    now_ms: Annotated[int, Field(description="The store's time (Unix, ms).")] = 0
    settled: bool = False
    settle_at_ms: Annotated[int | None, Field(description="When the cell settles at the latest; null if it has.")] = (
        None
    )
    unattested: Annotated[
        int,
        Field(
            description="For how many hosts it waits. After a wipe: how many that schedulers remember; -1: none does."
        ),
    ] = 0
    hosts: HostCounts = HostCounts()
    claims: Annotated[
        Mapping[str, int], Field(description="Placements by state, and the pending and shelved claims.")
    ] = field(default_factory=dict)
    at_least: Annotated[tuple[str, ...], Field(description="States of which there may be more.")] = ()
    draining: Annotated[
        tuple[str, ...], Field(description="Hosts whose claims are being moved, and have claims left.")
    ] = ()
    closed: Annotated[
        tuple[ClosedHost, ...],
        Field(
            description="The first 100 hosts that are disabled or drained, those with the most claims first. Absent if "
            "there are none.",
            exclude_if=not_,
        ),
    ] = ()
    schedulers: tuple[SchedulerStatus, ...] = ()
    audit: AuditStatus | None = None


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The state of the store and of all cells, and what is wrong: the most serious problem first."""

    servers: Sequence[ServerStatus]
    durability: Annotated[str, Field(description="What claims wait for, by the settings of who reports it.")]
    cells: Sequence[CellStatus]
    problems: Sequence[StatusProblem]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on a property
    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems
