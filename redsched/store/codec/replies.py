"""The results of the typed calls, as plain data; the scripts' headers define each outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from redsched.model import (
    MAX_ALTERNATES,
    Candidate,
    ClaimRule,
    ClaimStatus,
    EndReason,
    Exceeded,
    HostLimit,
)
from redsched.model.record import record
from redsched.model.types import Body, GivenName, GivenToken, read_as
from redsched.origin import Origin
from redsched.store.codec.outcomes import Outcome


@record
class ScriptResult:
    """An outcome, its epoch and the store's time (Unix, ms). `facts`, in JSON `details`, depend on call and outcome."""

    outcome: Outcome
    epoch: str
    now_ms: int
    facts: Annotated[tuple[str, ...], Field(serialization_alias="details", validation_alias="details")] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """The cell's epoch and seq, the store's time (Unix, ms), and whether the cell is settled in this epoch.

    `settle_at_ms`: when it settles at the latest. `unattested`: for how many hosts the store knows that it waits; -1
    after a wipe. `remembered_missing`: of the hosts that schedulers remember then, how many have not attested; -1 if
    none has reported that.
    """

    epoch: str
    seq: int
    now_ms: int
    settled: bool
    settle_at_ms: int = 0
    unattested: int = 0
    remembered_missing: int = -1

    @property
    def knows_hosts(self) -> bool:
        """Whether the hosts of the store are all hosts of the cell: not while it waits after a wipe."""
        return self.settled or self.unattested >= 0

    @property
    def missing(self) -> int:
        """How many hosts have yet to attest before the cell settles; -1 if nobody knows."""
        return self.unattested if self.unattested >= 0 else self.remembered_missing


@dataclass(frozen=True, slots=True)
class ReportReply:
    """OK | ALREADY_DONE | NOT_OWNER. Unless `attested`, the host takes no claims until its agent attests."""

    outcome: Outcome
    epoch: str
    now_ms: int
    attested: bool
    version: int


@dataclass(frozen=True, slots=True)
class AttestReply:
    """The reply of attest.lua.

    OK | ALREADY_DONE | WRONG_EPOCH | UNKNOWN | NOT_OWNER | CONFLICT. `drop`: placements whose work the host must stop,
    by `placed`.
    """

    outcome: Outcome
    epoch: str
    now_ms: int
    drop: tuple[str, ...] = ()


_PlacedName = Annotated[GivenToken | Literal[""], Field(description="The placement's name. Defaults to its token.")]


def _status(word: str) -> ClaimStatus:
    """Return the status that a word names. A function: pydantic cannot call an Enum class on Python 3.13."""
    return ClaimStatus(word)


_Held = Annotated[Literal["claimed", "starting", "active", "ending"], AfterValidator(_status)]
_WAS_ACTIVE = "Whether it had been active, and was not stopped because of a failure of its gang"


@dataclass(frozen=True, slots=True)
class JournaledClaim(Body):
    """A claim that a host holds, as recorded in its journal: `record` as `record_of` returned it."""

    id: GivenName
    token: Annotated[
        GivenToken | Literal[""], Field(description="The placement's token. Empty: local work without a claim.")
    ] = ""
    placed: _PlacedName = ""
    root: Annotated[
        GivenToken | Literal[""],
        Field(description="The first placement in its chain of moves and retries. Defaults to `placed`."),
    ] = ""
    state: Annotated[ClaimStatus, read_as(_Held)] = ClaimStatus.ACTIVE
    record: Mapping[str, str] = field(default_factory=dict)
    was_active: Annotated[bool, Field(description=f"{_WAS_ACTIVE}. Used in state ending.")] = False
    alternates: Annotated[
        tuple[GivenName, ...],
        Field(max_length=MAX_ALTERNATES, description="Hosts to try first if it fails, in order."),
    ] = ()


@dataclass(frozen=True, slots=True)
class EndedPlacement(Body):
    """A claim whose work has ended on the host, as its journal remembers it."""

    id: GivenName
    token: GivenToken
    placed: _PlacedName = ""
    end_reason: Annotated[
        str,
        read_as(EndReason | Literal[""]),
        Field(description="Why it ended, as reported by the scheduler. Empty if unknown."),
    ] = ""
    was_active: Annotated[bool, Field(description=f"{_WAS_ACTIVE}.")] = False
    ended_ago_ms: Annotated[int | None, Field(ge=0, description="How long ago it ended. null if unknown.")] = None


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

    `host` and `token` are those of the placement on which it is based; `by_s` is the time within which the new
    placement of a move must be active (0: no limit); `gang` is the gang of the claim. `with_gang`: it has FAILED, and
    is placed again with the other members of its gang.
    """

    host: str
    token: str
    end_reason: EndReason
    by_s: int = 0
    gang: str = ""
    with_gang: bool = False


@record
class Member:
    """One requested place: its claim id, and its candidates, best first. `group`: the server group to count it in.

    `decision`: how the candidates were chosen, to be kept with the claim; '' for nothing.
    """

    id: str
    candidates: tuple[Candidate, ...]
    group: str = ""
    replacement: Replacement | None = None
    decision: str = ""


@record
class ClaimCall:
    """The input of claim.lua and replace.lua.

    `epoch`, `now_ms` and `seen_seq` are the epoch, time and seq of the replica on which the decision is based; `fresh`
    means that the ids were generated for this call.
    """

    members: tuple[Member, ...]
    epoch: str
    now_ms: int
    seen_seq: int
    digest: str
    fresh: bool
    lease_ms: int
    project: str = ""
    carried: Mapping[str, str] = field(default_factory=dict)
    """Fields that each claim stores, as from `claim_fields.carried`. The scripts do not read them."""
    owner: str = ""
    own_only: bool = False
    """Whether earlier claims with these ids are refused if others own them."""
    rules: tuple[ClaimRule, ...] = ()
    limits: Mapping[str, HostLimit] = field(default_factory=dict)
    """The limits of the candidates by host; hosts without limits are absent."""
    request: str = ""
    """The request as canonical JSON, to be stored under the digest; '' if the store is known to have it."""
    limited: bool = False
    """Whether the project is known to have a quota, so that its limits must be in the cell."""
    is_gang: bool = False
    """Whether the failure of one member ends all members, as long as not all are active."""
    call_id: str = ""
    """Identifies this call, so that undoing it spares claims that a later call has returned; '' for none."""
    written_off: tuple[str, ...] = ()
    """Written-off hosts: members of an affinity group there do not restrict the replacement of one of them."""
    max_runtime_s: int = 0
    """How long the work of each of these claims may run, from its claim or unshelving on; 0 for no limit."""
    alternates: tuple[str, ...] = ()
    """Further hosts that fit, best first. Each claim keeps up to `most_alternates` of them that no member gets."""
    most_alternates: int = 0
    reservation: str = ""
    """The reservation of the request, if hosts are reserved for it: it may use what they keep for it; '*': for any."""
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The hosts, by claim id, of other claims on which the choice of places for members placed again was based."""
    origins: tuple[Origin, ...] = ()
    """Who asked for each member, if several requests share the call; empty: all of it is done for what runs now."""


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
    """A host after the script: the absolute claimed amounts of the slots that the script checked.

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
class ClaimReply:
    """The reply of claim.lua.

    OK | ALREADY_DONE | FULL | OVER_QUOTA | UNSHARED | UNKNOWN | ENDED | CONFLICT | EXPIRED | WRONG_EPOCH | SETTLING |
    STALE_VIEW. For a member that is placed again, about its claim: NO_CLAIM, STALE, ENDED, NOT_ATTESTED, GANG (its gang
    is not complete yet, or has failed), MOVING (it is not active yet). `placed` is in the order of the members.

    `objects` are the groups and shared pools that the script wrote, `unknown` those that are not declared, as
    `server-group:web` and `pool:licences`; `over` has the limits of the project's quota that the call would exceed.
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
    """A notification for a host's agent: a claim to start, resize or end. The token may be older than `epoch`."""

    entry_id: str
    number: int
    epoch: str
    op: Annotated[str, Field(json_schema_extra={"enum": ["claim", "resize", "end"]})]
    claim_id: str
    token: str
    actor: Annotated[str, Field(description="Who caused it; empty if not known.")] = ""
    request_id: Annotated[str, Field(description="The request that caused it, likewise.")] = ""

    @property
    def origin(self) -> Origin:
        """Who caused it, and in which request."""
        return Origin(self.actor, self.request_id)


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
    """The position in the feed that the event log has reached: the last entry recorded, and its seq."""

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
class FencingBegun:
    """A fence command that may be called for a host now: in which epoch, since when, and when the host's lease ended.

    Times are Unix ms by the store's clock.
    """

    host: str
    epoch: str
    began_ms: int
    lease_ms: int


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


@dataclass(frozen=True, slots=True)
class Inboxes:
    """The notifications of hosts that have any, by host."""

    epoch: Annotated[str, Field(description="The cell's epoch; empty if the call did not wait.")]
    reset: Annotated[bool, Field(description="Whether changes may have been missed: look at everything.")]
    entries: Mapping[str, Sequence[InboxEntry]]
