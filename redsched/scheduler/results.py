"""What the scheduler answers with: plain data for the API, the CLI and whoever uses the library."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from redsched.model import Amounts, ClaimStatus, HostStatus, ServerGroup
from redsched.model.record import record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list. `next` goes on after it; None at the end."""

    items: tuple[T, ...]
    next: str | None = None


@record
class Selection:
    """One place: claimed, or of a dry run (then without id, token and lease). Alternates fitted at that moment."""

    cell: str
    host: str
    slots: Amounts
    alternates: tuple[str, ...] = ()
    claim_id: str | None = None
    state: ClaimStatus | None = None
    token: str | None = None
    expires_at_ms: int | None = None
    member: str = ""
    """Of a gang: the name of the member that it is a place of."""


@record
class Selections:
    """All places of one request. `fresh` is False where the ids had been sent before: this is their first outcome."""

    selections: tuple[Selection, ...]
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class SlotView:
    """A slot of a host, in the unit of its class. `free` is capacity - claimed - external, below 0 when it is over."""

    total: int
    reserved: int
    ratio: float
    min: int
    max: int
    step: int
    capacity: int
    claimed: int
    external: int
    free: int


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool of a host, without its slots. `parent` is the pool that it lies in; '' for the host itself."""

    parent: str
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class FailedMoves:
    """Moves of a claim off its host that have failed in a row: how many, when it is moved again (Unix ms), and why.

    `reason` is that of the last one; '' where none was given.
    """

    count: int
    next_at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as the store holds it. `alive_until_ms` is Unix ms; `claims` counts the claims on it.

    `slots` has those of its pools too, as `gpu0/CUSTOM_GPU_MILLI`.
    """

    name: str
    cell: str
    zone: str
    status: HostStatus
    alive: bool
    attested: bool
    version: int
    lease_s: int
    alive_until_ms: int
    slots: Mapping[str, SlotView]
    traits: frozenset[str]
    labels: Mapping[str, str]
    metrics: Mapping[str, float]
    claims: int
    pools: Mapping[str, PoolView] = field(default_factory=dict)
    aggregates: frozenset[str] = frozenset()
    draining: str = ""
    """How its claims leave: placed elsewhere, for it is drained (`move`) or written off (`evacuate`); `stop`: released,
    for a drain has reached its deadline; '' where they do not."""
    drain_deadline_ms: int | None = None
    """The deadline of a drain with moves, Unix ms: `draining` is `stop` or '' after it, by `drain_then`."""
    drain_then: str = ""
    """What becomes at the deadline of the claims that are left: `stop` or `keep`."""
    unmovable: Mapping[str, str] = field(default_factory=dict)
    """Of these the claims for which there is no other place now, and why: of one host alone, not of lists."""
    failed_moves: Mapping[str, FailedMoves] = field(default_factory=dict)
    """Of these the claims whose last move has failed at its target: of one host alone, not of lists."""
    written_off: bool = False
    """An operator has written it off, and it has not come back."""


@dataclass(frozen=True, slots=True)
class AggregateView:
    """An aggregate over all cells: its metadata, and the hosts that are in it, by name."""

    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerGroupView:
    """A server group over all cells: what was declared, and how many `members` it has.

    `counts` says how many lie where: {"host": {"h1": 1}, "zone": {"az1": 1}, "label:rack": {"r4": 1}}.
    """

    group: ServerGroup
    members: int
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class SharedPoolView:
    """A shared pool of a cell: its slots by class, and the aggregates whose hosts may take from it (none: all)."""

    name: str
    cell: str
    slots: Mapping[str, SlotView]
    traits: frozenset[str]
    aggregates: frozenset[str]


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A project's quota over all cells: its limits, and all that is used, by class and as `claims`."""

    project: str
    limits: Amounts
    used: Amounts


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What claims hold together that have these values in common (`{"zone": "az1"}`), by class and `claims`."""

    of: Mapping[str, str]
    used: Amounts


@dataclass(frozen=True, slots=True)
class ReportResult:
    """What became of a report: OK or ALREADY_DONE. Not `attested`: the host is closed until it attests to `epoch`.

    `drop` are claims whose work the host must stop.
    """

    outcome: str
    epoch: str
    attested: bool
    version: int
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a cell, numbered densely by `seq`."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event: what happened (`kind`) when (Unix ms), by which change of the cell.

    `slots`: what the claim concerned holds. `facts` by name: claim, host, project, consumer, why and so on, each only
    where there is one; docs/events.md names them.
    """

    id: str
    cell: str
    at_ms: int
    seq: int
    kind: str
    slots: Amounts = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reset:
    """Changes are missing, or the store is in a new epoch: read what you follow anew. Goes on after `seq`."""

    cell: str
    seq: int


class Mend(StrEnum):
    """What can put a problem right."""

    HOST = "host"
    """Work out anew what a host says of its claims."""
    ENDING = "ending"
    """End what a host that was written off was to stop."""
    GONE_HOST = "gone-host"
    """Clear away what is left of a host that is not there."""
    COUNTS = "counts"
    """Work out anew what a server group, shared pool or quota counts."""
    DUE = "due"
    """Work out anew when something is due about claims, and which are remembered."""
    GANG = "gang"
    """Have a gang be waited for as it should."""
    CACHE = "cache"
    """Read this scheduler's picture anew."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something broken: the number of the invariant in docs/architecture.md, where, what it says and should say.

    `mend` puts it right, told of `subject`; None where nothing may do so by itself. `advice` is what a person can do.
    """

    invariant: int
    cell: str
    thing: str
    what: str
    found: str
    should: str
    mend: Mend | None = None
    subject: str = ""
    advice: str = ""
    mended: bool = False

    @property
    def detail(self) -> str:
        """All of it in one line."""
        return f"{self.what}: {self.found}, and should be {self.should}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit looked at and found. `over` are hosts, and pools as `pool:licences`, over capacity by rights."""

    hosts: int
    claims: int
    problems: tuple[Problem, ...]
    over: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[Problem, ...]:
        """What is wrong still."""
        return tuple(one for one in self.problems if not one.mended)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this scheduler can decide; if not, `detail` says why. `hosts`: known, alive and attested."""

    ready: bool
    detail: str
    hosts: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of this scheduler's cells. `lag_s`: how long ago its picture had all that the feed had."""

    hosts: int
    hosts_alive: int
    hosts_attested: int
    lag_s: float
    entries: int
    snapshots: int


@record
class Effort:
    """What one selection took. `outcome`: claimed, same, dry-run, or the problem's word; `calls` of the claim script;
    `retries`: those after the first; `decide_s` of `seconds` were spent deciding.
    """

    outcome: str
    calls: int
    retries: int
    decide_s: float
    seconds: float
