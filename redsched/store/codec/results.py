"""What the typed calls return. Plain data; the scripts' headers say what each outcome means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from redsched.model import Candidate, ClaimRule, ClaimStatus, EndReason, Exceeded, HostLimit, OnExit
from redsched.model.record import record
from redsched.store.codec.outcomes import Outcome


@record
class ScriptResult:
    """An outcome, the epoch it was given in and the store's time (Unix, ms). `facts` are the script's further words."""

    outcome: Outcome
    epoch: str
    now_ms: int
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """The cell's epoch and seq, the store's time (Unix, ms), and whether all hosts have been heard in this epoch."""

    epoch: str
    seq: int
    now_ms: int
    settled: bool


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """OK | ALREADY_DONE | NOT_OWNER. Without `attested` the host is not open for claims yet: attest."""

    outcome: Outcome
    epoch: str
    now_ms: int
    attested: bool
    version: int


@dataclass(frozen=True, slots=True)
class AttestAnswer:
    """What attest.lua answered.

    OK | ALREADY_DONE | WRONG_EPOCH | UNKNOWN | NOT_OWNER | CONFLICT. `drop`: placements whose work the host must stop,
    by `placed`.
    """

    outcome: Outcome
    epoch: str
    now_ms: int
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JournaledClaim:
    """A placement as an agent's journal holds it, for attesting: `record` as `record_of` made it."""

    id: str
    placed: str
    token: str
    root: str
    state: ClaimStatus
    record: Mapping[str, str]
    was_active: bool = False
    """Of one that is ending: as in `EndedPlacement`."""


@dataclass(frozen=True, slots=True)
class EndedPlacement:
    """A placement whose work has ended, as an agent's journal remembers it."""

    id: str
    placed: str
    token: str
    end_reason: str = ""
    """Why it ended, as the store said; '' where it did not."""
    was_active: bool = False
    """Whether its work had been active, and was not stopped because its gang failed."""


class ReleaseMode(StrEnum):
    """How a claim is given back."""

    ASK = "ask"
    """At once where no host has taken it up; else its host is asked to stop the work."""
    FORCE = "force"
    """At once, for the host is known to be wrong."""
    UNLESS_ACTIVE = "unless-active"
    """As ASK, and not at all where it is active."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """For a member that is a claim already and is to have another placement; `end_reason`: MOVED, FAILED or SHELVED.

    `host` and `token` are those of the placement that it is based on; `by_s` is how long a move may take until the new
    one must be active (0: any time); `gang` is that of the claim.
    """

    host: str
    token: str
    end_reason: EndReason
    by_s: int = 0
    gang: str = ""


@record
class Member:
    """One place that is asked for: its claim id, and where it may go, best first. `group`: that it is to count in."""

    id: str
    candidates: tuple[Candidate, ...]
    group: str = ""
    again: Replacement | None = None


@record
class ClaimCall:
    """All that claim.lua needs.

    `epoch`, `now_ms` and `seen_seq` are those of the picture decided on, the last being the cell's seq that it had
    reached; `fresh`: ids made for this call.
    """

    members: tuple[Member, ...]
    epoch: str
    now_ms: int
    seen_seq: int
    digest: str
    fresh: bool
    lease_ms: int
    project: str = ""
    consumer: str = ""
    rules: tuple[ClaimRule, ...] = ()
    limits: Mapping[str, HostLimit] = field(default_factory=dict)
    """By host; none for hosts without any."""
    request: str = ""
    """The request as canonical JSON, to be kept under the digest; '' where it is known to lie there."""
    limited: bool = False
    """Whether the project is known to have a quota, so that its limits must be in the cell."""
    is_gang: bool = False
    """Whether failure of one ends all, until all are active."""
    call_id: str = ""
    """What undoing names, so that it leaves what another call was told of since; '' for none."""
    on_exit: OnExit = OnExit.RELEASE
    written_off: tuple[str, ...] = ()
    """Hosts that were written off: members of an affinity group there do not bind the replacement of one of them."""
    max_attempts: int = 1
    """How often a scheduler places each of these claims before it has failed."""
    alternates: tuple[str, ...] = ()
    """Hosts that fit too, best first: those that no member gets are kept with each claim, `most_alternates` of them."""
    most_alternates: int = 0
    gang_members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a gang with relations: the ids of each member's claims, to be kept with all of them."""
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other claims that the places of members which are placed again were chosen beside: on which hosts they were."""


@record
class Placed:
    """Where a member is: `expires_at_ms` is None where no lease runs.

    `candidate` is the number (from 0) of the candidate that it got; None where the ids had been sent before.
    """

    host: str
    token: str
    state: ClaimStatus
    expires_at_ms: int | None
    candidate: int | None = None


@record
class HostUsage:
    """What a host held after the script: absolute claimed amounts of the slots that were looked at.

    `cause` is why it could not take the last amounts tried: '' (it could), a Cause, or the slot that was too small.
    `claims` are those on it, `starting` those of them that are not active yet.
    """

    host: str
    version: int
    cause: str
    claimed: Mapping[str, int]
    claims: int
    starting: int


@dataclass(frozen=True, slots=True)
class Thing:
    """A `server-group` or `pool` (its kind) that the script has written: the changed fields with their new values."""

    kind: str
    name: str
    version: int
    fields: Mapping[str, str]


@record
class ClaimAnswer:
    """What claim.lua answered.

    OK | ALREADY_DONE | FULL | OVER_QUOTA | UNSHARED | UNKNOWN | ENDED | CONFLICT | EXPIRED | WRONG_EPOCH | SETTLING |
    STALE_VIEW. Where a member is placed again, of its claim: NO_CLAIM, STALE, ENDED, NOT_ATTESTED, GANG (its gang is
    waited for, or has failed), MOVING (it is not active yet). `placed` in the order of the members.

    `things` are the groups and shared pools that it wrote, `unknown` those that nobody has declared, written
    `server-group:web` and `pool:licences`; `over` is what the project's quota does not allow.
    """

    outcome: Outcome
    epoch: str
    now_ms: int
    placed: tuple[Placed, ...] = ()
    looked_at: tuple[HostUsage, ...] = ()
    things: tuple[Thing, ...] = ()
    unknown: tuple[str, ...] = ()
    over: tuple[Exceeded, ...] = ()


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A hint for a host's agent: `op` is claim or end. `epoch` stamps the hint; the token may be of an older one."""

    entry_id: str
    number: int
    epoch: str
    op: str
    claim_id: str
    token: str


@record
class Change:
    """An entry of the feed: a thing, its version after the change, and the changed fields with their new values."""

    entry_id: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    more: int
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Poll:
    """One look at a cell: its clock, its earliest claim deadline (Unix ms) and the next entries of its feed.

    `clock` was read before `changes`, and is None where the cell has no meta: it is new, or was wiped.
    """

    clock: Clock | None
    next_deadline_ms: int | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """How far the event log has come in the feed: the entry and its seq."""

    entry_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the event log. docs/keys.md names its fields."""

    entry_id: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FeedEnd:
    """Where the feed ended at one instant, and the clock of that instant (None: the cell has no meta)."""

    clock: Clock | None
    entry_id: str


@dataclass(frozen=True, slots=True)
class HostHashes:
    """A host as the store holds it: the fields of both of its hashes, together; empty when there is no such host."""

    name: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditedHost:
    """A host, the ids in its set of claims, and those claims' hashes (empty where there is none), at one instant."""

    name: str
    fields: Mapping[str, str]
    ids: frozenset[str]
    claims: Mapping[str, Mapping[str, str]]
