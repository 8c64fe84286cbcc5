"""The results of the typed calls, as plain data; the scripts' headers define each outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from redsched.model import Candidate, ClaimRule, ClaimStatus, EndReason, Exceeded, HostLimit, OnExit
from redsched.model.record import record
from redsched.store.codec.outcomes import Outcome


@record
class ScriptResult:
    """An outcome, its epoch and the store's time (Unix, ms). `facts` are the further values of the reply."""

    outcome: Outcome
    epoch: str
    now_ms: int
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """The cell's epoch and seq, the store's time (Unix, ms), and whether the cell is settled in this epoch."""

    epoch: str
    seq: int
    now_ms: int
    settled: bool


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """OK | ALREADY_DONE | NOT_OWNER. Unless `attested`, the host takes no claims until its agent attests."""

    outcome: Outcome
    epoch: str
    now_ms: int
    attested: bool
    version: int


@dataclass(frozen=True, slots=True)
class AttestAnswer:
    """The reply of attest.lua.

    OK | ALREADY_DONE | WRONG_EPOCH | UNKNOWN | NOT_OWNER | CONFLICT. `drop`: placements whose work the host must stop,
    by `placed`.
    """

    outcome: Outcome
    epoch: str
    now_ms: int
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JournaledClaim:
    """A placement in an agent's journal, for attesting: `record` as `record_of` returned it."""

    id: str
    placed: str
    token: str
    root: str
    state: ClaimStatus
    record: Mapping[str, str]
    was_active: bool = False
    """For an ending placement: as in `EndedPlacement`."""


@dataclass(frozen=True, slots=True)
class EndedPlacement:
    """A placement in an agent's journal whose work has ended."""

    id: str
    placed: str
    token: str
    end_reason: str = ""
    """Why it ended, according to the store; '' if the store has not said."""
    was_active: bool = False
    """Whether its work had been active, and was not stopped because its gang failed."""


class ReleaseMode(StrEnum):
    """How to release a claim."""

    ASK = "ask"
    """At once if no host has accepted it; else ask its host to stop the work."""
    FORCE = "force"
    """At once: the host is known to be wrong."""
    UNLESS_ACTIVE = "unless-active"
    """As ASK, but not at all if the claim is active."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """For a member that is an existing claim and needs another placement; `end_reason`: MOVED, FAILED or SHELVED.

    `host` and `token` are those of the placement that it is based on; `by_s` is how long a move may take until the new
    placement is active (0: any time); `gang` is the gang of the claim.
    """

    host: str
    token: str
    end_reason: EndReason
    by_s: int = 0
    gang: str = ""


@record
class Member:
    """One requested place: its claim id, and its candidates, best first. `group`: the server group to count it in."""

    id: str
    candidates: tuple[Candidate, ...]
    group: str = ""
    replacement: Replacement | None = None


@record
class ClaimCall:
    """The input of claim.lua and replace.lua.

    `epoch`, `now_ms` and `seen_seq` are those of the replica decided on, the last being the cell's seq that it had
    reached; `fresh`: the ids were made for this call.
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
    """By host; hosts without limits are absent."""
    request: str = ""
    """The request as canonical JSON, to be stored under the digest; '' if it is known to be there."""
    limited: bool = False
    """Whether the project is known to have a quota, so that its limits must be in the cell."""
    is_gang: bool = False
    """Whether the failure of one member ends all, until all are active."""
    call_id: str = ""
    """Identifies this call, so that undoing it leaves claims that a later call was answered with; '' for none."""
    on_exit: OnExit = OnExit.RELEASE
    written_off: tuple[str, ...] = ()
    """Written-off hosts: members of an affinity group there do not restrict the replacement of one of them."""
    max_attempts: int = 1
    """How often a scheduler places each of these claims before the claim has failed."""
    alternates: tuple[str, ...] = ()
    """Further hosts that fit, best first: each claim keeps up to `most_alternates` of those that no member gets."""
    most_alternates: int = 0
    gang_members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a gang with relations: the ids of each member's claims, stored with all of them."""
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other claims that influenced the choice of places for members placed again: the hosts on which they were."""


@record
class Placed:
    """Where a member was placed: `expires_at_ms` is None if no lease runs.

    `candidate` is the number (from 0) of the candidate that it got; None if the ids had been sent before.
    """

    host: str
    token: str
    state: ClaimStatus
    expires_at_ms: int | None
    candidate: int | None = None


@record
class HostUsage:
    """What a host held after the script: absolute claimed amounts of the slots that were checked.

    `cause` is why it could not take the last amounts tried: '' (it could), a Cause, or the slot that was too small.
    `claims` is the number of its claims, `starting` the number of those that are not active yet.
    """

    host: str
    version: int
    cause: str
    claimed: Mapping[str, int]
    claims: int
    starting: int


@dataclass(frozen=True, slots=True)
class SharedObject:
    """A `server-group` or `pool` (its kind) written by the script: the changed fields with their new values."""

    kind: str
    name: str
    version: int
    fields: Mapping[str, str]


@record
class ClaimAnswer:
    """The reply of claim.lua.

    OK | ALREADY_DONE | FULL | OVER_QUOTA | UNSHARED | UNKNOWN | ENDED | CONFLICT | EXPIRED | WRONG_EPOCH | SETTLING |
    STALE_VIEW. For a member that is placed again, about its claim: NO_CLAIM, STALE, ENDED, NOT_ATTESTED, GANG (its gang
    is not complete yet, or has failed), MOVING (it is not active yet). `placed` is in the order of the members.

    `objects` are the groups and shared pools that it wrote, `unknown` those that are not declared, written
    `server-group:web` and `pool:licences`; `over` is how the call would exceed the project's quota.
    """

    outcome: Outcome
    epoch: str
    now_ms: int
    placed: tuple[Placed, ...] = ()
    looked_at: tuple[HostUsage, ...] = ()
    objects: tuple[SharedObject, ...] = ()
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
    """An entry of the feed: an object, its version after the change, and the changed fields with their new values."""

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
    """One read of a cell: its clock, its earliest claim deadline (Unix, ms) and the next entries of its feed.

    `clock` was read before `changes`, and is None if the cell has no meta: it is new, or was wiped.
    """

    clock: Clock | None
    next_deadline_ms: int | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """How far the event log has followed the feed: the last entry recorded, and its seq."""

    entry_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the event log. docs/keys.md lists its fields."""

    entry_id: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FeedEnd:
    """Where the feed ended at one instant, and the clock of that instant (None: the cell has no meta)."""

    clock: Clock | None
    entry_id: str


@dataclass(frozen=True, slots=True)
class HostHashes:
    """A host as stored: the fields of both of its hashes, merged; empty if there is no such host."""

    name: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AuditedHost:
    """A host, the ids in its set of claims, and those claims' hashes (empty where missing), at one instant."""

    name: str
    fields: Mapping[str, str]
    ids: frozenset[str]
    claims: Mapping[str, Mapping[str, str]]
