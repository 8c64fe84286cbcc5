"""Result types of the scheduler: plain data for the API, the CLI and users of the library."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from redsched.errors import RedschedError
from redsched.model import Amounts, Claim, ClaimStatus, HostCondition, HostStatus, ServerGroup, condition_of
from redsched.model.kept_for import KeptFor
from redsched.model.record import record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. Pass `next` as `after` to get the next page; None on the last page."""

    items: tuple[T, ...]
    next: str | None = None


@record
class Selection:
    """One place, claimed or from a dry run (without id, token and lease). The alternates fitted at that moment."""

    cell: str
    host: str
    slots: Amounts
    alternates: tuple[str, ...] = ()
    claim_id: str | None = None
    state: ClaimStatus | None = None
    token: str | None = None
    expires_at_ms: int | None = None
    member: str = ""
    """For a gang, the name of the member that this place belongs to."""


@record
class Selections:
    """All places of one request. If its ids were sent before, `fresh` is False and this is the first call's outcome."""

    selections: tuple[Selection, ...]
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class SlotView:
    """A slot, in units of its class. `free` is capacity - claimed - external; it is negative if the slot is over.

    `kept` is what is kept for a request that waits, free or not: other claims do not get it.
    """

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
    kept: int = 0


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool of a host, without its slots. `parent` is the enclosing pool; '' for the host itself.

    `device` identifies the device that the pool is; '' if it is none.
    """

    parent: str
    traits: frozenset[str]
    device: str = ""


@dataclass(frozen=True, slots=True)
class FailedMoves:
    """Consecutive failed moves of a claim off its host: how many, and when the next one is due (Unix ms).

    `reason` is the reason of the last failure; '' if none was given.
    """

    count: int
    next_at_ms: int
    reason: str


class DrainState(StrEnum):
    """The progress of a host's drain or evacuation."""

    MOVING = "moving"
    """Its claims are being placed elsewhere."""
    STOPPING = "stopping"
    """The deadline has passed, and the remaining claims are being released."""
    WAITING = "waiting"
    """It gets no new claims, and its claims stay until they end."""
    OVERDUE = "overdue"
    """The deadline has passed, and the remaining claims stay."""
    EMPTY = "empty"
    NONE = "none"
    """It is neither drained nor evacuated."""


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as stored. `alive_until_ms` is in Unix ms; `claims` is the number of claims on it.

    `slots` includes the slots of its pools, as `gpu0/CUSTOM_GPU_MILLI`.
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
    """How its claims leave: `move` (a drain places them elsewhere), `evacuate` (the host was written off; they are
    placed elsewhere), `stop` (a drain reached its deadline; they are released), or '' if they stay."""
    drain_deadline_ms: int | None = None
    """The deadline of a drain with moves (Unix ms); after it `draining` is `stop` or '', depending on `drain_then`."""
    drain_then: str = ""
    """What happens to the remaining claims at the deadline: `stop` or `keep`."""
    unmovable: Mapping[str, str] = field(default_factory=dict)
    """Claims that have no other place now, and why. Filled in when reading a single host, not in lists."""
    failed_moves: Mapping[str, FailedMoves] = field(default_factory=dict)
    """Claims whose last move failed at its target. Filled in when reading a single host, not in lists."""
    status_reason: str = ""
    """Why an operator gave it a status in which it takes no claims; '' if nobody said."""
    written_off: bool = False
    """Whether an operator wrote it off and it has not returned since."""
    reservation: str = ""
    """The id under which it is reserved for a request that waits for room; '' if it is not."""
    reservation_until_ms: int | None = None
    """When the reservation ends unless it is renewed (Unix ms)."""
    kept: Mapping[str, int] = field(default_factory=dict)
    """The amounts, by slot, that are kept for that request: other claims do not get them."""
    reservation_request: str = ""
    """That request: the claim id that it asks for, else its request id, else the id of the reservation."""
    reservation_project: str = ""
    """The project of that request."""
    down_since_ms: int | None = None
    """When its lease ran out (Unix ms); None while it runs."""

    @property
    def kept_for(self) -> KeptFor:
        """What it keeps, and for whom."""
        return KeptFor(self.kept, self.reservation_request, self.reservation_project)

    @property
    def condition(self) -> HostCondition:
        """The host in one word: `up`, or what keeps it from taking claims."""
        return condition_of(self.status, self.alive, self.attested, self.written_off)

    @property
    def drain_state(self) -> DrainState:
        """The progress of its drain or evacuation."""
        if not self.draining and self.status is not HostStatus.DRAINING:
            return DrainState.NONE
        if not self.claims:
            return DrainState.EMPTY
        if self.draining:
            return DrainState.STOPPING if self.draining == "stop" else DrainState.MOVING
        return DrainState.WAITING if self.drain_deadline_ms is None else DrainState.OVERDUE


@dataclass(frozen=True, slots=True)
class AggregateView:
    """An aggregate over all cells: its metadata and the names of its hosts."""

    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerGroupView:
    """A server group over all cells: its declaration, and its number of `members`.

    `counts` has the number of members by location: {"host": {"h1": 1}, "zone": {"az1": 1}, "label:rack": {"r4": 1}}.
    """

    group: ServerGroup
    members: int
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class SharedPoolView:
    """A shared pool of a cell: its slots by class, and the aggregates whose hosts may use it (empty: all hosts).

    `warnings`: of which classes nothing can ever be claimed, and why.
    """

    name: str
    cell: str
    slots: Mapping[str, SlotView]
    traits: frozenset[str]
    aggregates: frozenset[str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A project's quota over all cells: its limits and its usage, by class and as `claims`."""

    project: str
    limits: Amounts
    used: Amounts


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The total usage of the claims that share the values in `of` (`{"zone": "az1"}`), by class and as `claims`."""

    of: Mapping[str, str]
    used: Amounts


@dataclass(frozen=True, slots=True)
class ReportResult:
    """The outcome of a report: OK or ALREADY_DONE. Unless `attested`, the host is closed until it attests to `epoch`.

    `drop` has the ids of the claims whose work the host must stop. `warnings`: of which slots nothing can ever be
    claimed, and why.
    """

    outcome: str
    epoch: str
    attested: bool
    version: int
    drop: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a cell. `seq` numbers the changes of a cell without gaps.

    `id` is where to go on after it, in every cell that is followed: pass it as `last_id`.
    """

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class EventView:
    """An event: what happened (`kind`), when (Unix ms), and the `seq` of the change that caused it.

    `slots` has the amounts that the claim concerned holds. `facts` has further fields by name (claim, host, project,
    consumer, end_reason and so on), each only if it applies; docs/events.md lists them.
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
    """Changes are missing, or a new epoch began, so that followers must reload. The changes continue after `seq`.

    `id` is as in a Change.
    """

    cell: str
    seq: int
    id: str = field(default="", compare=False)


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
    """The longest delays over its cells: see redsched.scheduler.observe.delays."""
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


class BulkOutcome(StrEnum):
    """The outcome of a bulk call for one claim."""

    SELECTED = "selected"
    """The claim matches, and was not changed: the call was a dry run."""
    RELEASED = "released"
    RENEWED = "renewed"
    UNCHANGED = "unchanged"
    """The claim is active and has no lease to renew."""
    SHELVED = "shelved"
    UNSHELVED = "unshelved"
    ENDING = "ending"
    """It will be released or shelved once its host confirms that the work is gone."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """A claim as it was listed, and the outcome of the call for it; `error` is the reason of a refusal."""

    claim: Claim
    outcome: BulkOutcome
    error: RedschedError | None = None


@dataclass(frozen=True, slots=True)
class BulkPage(Page[BulkResult]):
    """A page of results, as callers of the REST API get it who may change only the claims of one owner."""

    of_others: int = 0
    """On the first page: how many further claims match, and have other owners."""
