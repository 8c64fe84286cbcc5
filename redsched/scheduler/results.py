"""Result types of the scheduler: plain data for the API, the CLI and users of the library."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import not_
from typing import Annotated, TypeVar

from pydantic import Field

from redsched.model.record import record
from redsched.store.codec.replies import InboxEntry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportResult:
    """The result of a report. `attested` false: send `claims` and this `epoch`. `drop`: placements to stop.

    `warnings`: of which slots nothing can ever be claimed, and why.
    """

    outcome: Annotated[str, Field(json_schema_extra={"enum": ["OK", "ALREADY_DONE"]})]
    epoch: str
    attested: bool
    version: int
    drop: tuple[str, ...] = ()
    warnings: Annotated[tuple[str, ...], Field(exclude_if=not_)] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """OK, or NOT_ATTESTED: the store is in a new epoch; send a report that attests to it."""

    outcome: Annotated[str, Field(json_schema_extra={"enum": ["OK", "NOT_ATTESTED"]})]


@dataclass(frozen=True, slots=True)
class Inbox:
    """The pending notifications for the host's agent."""

    entries: tuple[InboxEntry, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this scheduler can decide; if not, `detail` says why. `hosts` counts those known, alive and attested."""

    ready: bool
    detail: str
    hosts: int


class Fenced(StrEnum):
    """How an attempt to fence a host has ended."""

    WRITTEN_OFF = "written-off"
    FAILED = "failed"
    """The command has proved nothing."""
    RETURNED = "returned"
    """The command has succeeded, but the host was heard of, or the epoch has changed."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts over this scheduler's cells. `lag_s` is the time since its replica last had all of the feed."""

    hosts: int
    hosts_alive: int
    hosts_attested: int
    lag_s: float
    entries: int
    snapshots: int
    gaps: int = 0
    """How often the feed no longer had the next entries."""
    claims_expired: int = 0
    hosts_down: int = 0
    """Claims that this scheduler ended, and hosts that it marked down, because their lease had expired."""
    decisions_not_kept: int = 0
    """Decisions that claims do not keep, because writing them down would have taken more than its share of the time."""
    audits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The checks made, by cell and what was checked there (AUDIT_SCOPES), from 0 on."""
    findings: "Mapping[Finding, int]" = field(default_factory=dict)
    """What these checks found."""
    waiting: int = 0
    """Requests that wait for room."""
    unmovable: int = 0
    """Claims on drained or evacuated hosts for which this scheduler lately found no other place."""
    fenced: Mapping[Fenced, int] = field(default_factory=dict)
    """Attempts of this scheduler to fence a host, by outcome."""
    fencing_held: int = 0
    """Hosts that this scheduler should fence and may not."""
    agent_delay_s: float = 0.0
    agent_delay_part: float = 0.0
    expiry_delay_s: float = 0.0
    reconcile_delay_s: float = 0.0
    """The longest delays over its cells: see redsched.scheduler.background.delays."""
    store_s: float | None = None
    """How long the last look at the store took; None if it failed."""
    store_memory_bytes: int = 0
    store_memory_limit_bytes: int = 0
    """The memory of the fullest primary, and its limit (0: none)."""


AUDITED = (1, 2, 3, 5, 10)
"""The invariants that audits check."""
AUDIT_SCOPES = ("cell", "ids", "replica")
"""What an audit checks: the store, ids and names of hosts that are in several cells, or a scheduler's replica."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A kind of problem that audits find: the violated invariant, and whether it was repaired."""

    invariant: int
    repaired: bool


@record
class ClaimCost:
    """The cost of one call of the claim script: its duration, and the number of hosts that it looked at.

    `conflicted`: some of them had changed since the decision, and could not take what was decided.
    """

    seconds: float
    candidates: int
    conflicted: bool


@record
class Effort:
    """The cost of one selection. `outcome` is claimed, same, dry-run or the problem type.

    `calls` counts calls of the claim script, `retries` those after the first; `decide_s` of `seconds` were spent
    deciding. `claims` has the calls that were answered. `reason` is why most hosts were ruled out, if none fitted.
    """

    outcome: str
    calls: int
    retries: int
    decide_s: float
    seconds: float
    claims: tuple[ClaimCost, ...] = ()
    reason: str = ""
