"""Claims and their placements."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from redsched.model.hosts import HostCondition
from redsched.model.kept_decision import KeptDecision
from redsched.model.tokens import Token
from redsched.model.validation import parse_signed

LOCAL = "local"
"""The digest of a local claim. No request has it, because theirs are hexadecimal: one id for both is a CONFLICT."""

LOG_PATH = r"/[^\x00-\x1f\x7f]{0,1023}"
"""The pattern of the path of a log."""

Amounts = Mapping[str, int]
"""Whole amounts by slot (`VCPU`, `gpu0/CUSTOM_GPU_MILLI`, `pool:lic/CUSTOM_SEAT`), in the unit of the slot's class."""


class ClaimStatus(StrEnum):
    """The lifecycle of a claim: claimed -> starting -> active -> ending -> ended.

    `pending`: its last placement failed, and a scheduler has to find another one.
    """

    PENDING = "pending"
    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    """Its host has been or will be asked to stop the work, and its report ends the claim. `end_reason` says why."""
    ENDED = "ended"


class ListedState(StrEnum):
    """States by which claims can be listed. No list has ended claims, except shelved ones."""

    PENDING = "pending"
    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    SHELVED = "shelved"


LEASED = (ClaimStatus.CLAIMED, ClaimStatus.STARTING)
"""States with a running lease: the host has not confirmed yet that the claim is active."""
HELD = (*LEASED, ClaimStatus.ACTIVE)
"""States in which the claim runs, or is to run, on its current host."""
ENDING_OR_ENDED = (ClaimStatus.ENDING, ClaimStatus.ENDED)
"""States in which the claim is to stop, or has stopped."""


class EndReason(StrEnum):
    """Why a placement ended, or the whole claim."""

    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"
    MOVED = "moved"
    SHELVED = "shelved"
    VOID = "void"
    WORK_ENDED = "work-ended"
    """The work ended by itself, and the request's `on_exit` is `release`."""
    MAX_RUNTIME = "max-runtime"
    """Its host stopped the work because the request's `max_runtime_s` had passed."""


class OnExit(StrEnum):
    """What happens to a claim whose work ends by itself."""

    RELEASE = "release"
    """Release the claim."""
    REPLACE = "replace"
    """Treat it as failed on its host, and place it again like any failed claim."""
    KEEP = "keep"
    """Keep the claim, and record when its work ended."""


class GangOnExit(StrEnum):
    """What happens to the other members of a gang, all of which were active, when one of them ends by itself."""

    KEEP = "keep"
    """Keep them: each claim stands alone."""
    RELEASE = "release"
    """Release them."""
    REPLACE = "replace"
    """Stop them, and place all members again, together."""


class FromWhy(StrEnum):
    """Why a claim has left a placement for another one."""

    WRITTEN_OFF = "written-off"
    """Its host was written off."""
    DRAINED = "drained"
    """Its host is, or was, drained."""
    MOVED = "moved"
    """A call has moved it."""
    FAILED = "failed"
    EXPIRED = "expired"
    WORK_ENDED = "work-ended"
    GANG = "gang"
    """All of its gang is placed again."""
    SHELVED = "shelved"


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement of a claim that still holds something on a host. `placed`, the token it was placed with, is its name.

    `token` differs from `placed` after a resize. `root` is the placement from which it descends by moves and retries.
    """

    placed: str
    token: str
    root: str
    host: str
    state: ClaimStatus
    amounts: Amounts
    end_reason: EndReason | None = None
    expires_at_ms: int | None = None
    counted: Mapping[str, str] = field(default_factory=dict)
    """The zone and label values under which its server group counts it (`{"zone": "az1"}`)."""
    resizing_to: Amounts = field(default_factory=dict)
    """The amounts it will hold once its host has resized it; empty while no resize is under way."""
    based_on: str = ""
    """The token of the placement that it was moved from or retries."""
    from_host: str = ""
    """The host of that placement; '' if that is not known."""
    from_why: FromWhy | None = None
    """Why it left that placement."""
    placed_at_ms: int | None = None
    """When it was moved or placed again; None for the first placement of a claim."""
    move_deadline_ms: int | None = None
    """The deadline of a move: the placement is released if it is not active by then."""
    work_ended_at_ms: int | None = None
    """When its work was found to have ended, if the claim is kept regardless or about to be placed again."""

    @property
    def rank(self) -> tuple[Token, Token]:
        """The sort key of a claim's placements: of two active ones, the higher one survives."""
        return Token.parse(self.root), Token.parse(self.placed)


def plain_text(text: str) -> str:
    """Return a text from outside without control characters, which terminals obey: they become spaces, not newlines."""
    return "".join(one if one.isprintable() or one == "\n" else " " for one in text)


def one_line(text: str) -> str:
    """Return a multi-line text as one line."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


_EXIT_STATUS = re.compile(r"work-ended: exit status (\d{1,3})\b")


def work_ended_text(exit_status: int | None, observed: Sequence[str]) -> str:
    """Return the reason of work that has ended by itself: its exit status, if known, and what was observed."""
    status = [] if exit_status is None else [f"exit status {exit_status}"]
    return f"work-ended: {', '.join([*status, *observed])}"


def exit_status_in(reason: str) -> int | None:
    """Return the exit status in a reason of `work_ended_text`; None if it has none."""
    found = _EXIT_STATUS.match(reason)
    return int(found[1]) if found else None


STOP_FAILED = "stop-failed"
"""The `op` of the reason why a host could not stop the work of a placement, which no change carries."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a claim failed, expired, lost its work or could not be stopped: what `host` observed of a placement.

    `token` is that placement's. `op` is the feed's name of the change that recorded the reason, or STOP_FAILED; '' if
    an older release wrote it.
    """

    at_ms: int
    host: str
    token: str
    text: str
    op: str = ""

    @property
    def line(self) -> str:
        """Return the text on one line."""
        return one_line(self.text)

    def after(self, failure: "Reason | None") -> "Reason":
        """Return why work could not be stopped in words, with the last other failure of its claim, if there is one."""
        said = f"it could not be stopped: {self.text}"
        if failure is not None and failure.token == self.token:
            said = f"{failure.text}; {said}"
        elif failure is not None:
            said = f"{said}; on {failure.host}: {failure.text}"
        return replace(self, text=said)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as stored. `expires_at_ms` is None if no lease is running; an ended claim has no amounts.

    `host`, `state`, `token`, `amounts`, `end_reason`, `expires_at_ms`, `counted` and `resizing_to` describe one of its
    placements: the main one, or the one chosen with `at` or `on`.
    """

    id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    amounts: Amounts
    project: str = ""
    consumer: str = ""
    owner: str = ""
    """Who in the project owns it; '' if nobody does: then each caller of the project may change it."""
    actor: str = ""
    """Who made it (see `redsched.origin`); '' if not known."""
    request_id: str = ""
    """The request that made it; '' if not known."""
    digest: str = ""
    end_reason: EndReason | None = None
    claimed_at_ms: int | None = None
    expires_at_ms: int | None = None
    group: str = ""
    """The server group that counts it."""
    counted: Mapping[str, str] = field(default_factory=dict)
    gang: str = ""
    """The gang it was claimed with, named by the id of the gang's first member."""
    gang_members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a gang with relations or `gang_on_exit`: the claim ids of each member, including its own."""
    gang_on_exit: GangOnExit = GangOnExit.KEEP
    gang_exit: GangOnExit | None = None
    """What the other members of its gang have yet to follow, because this one has ended: REPLACE or RELEASE."""
    resizing_to: Amounts = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()
    """All its placements, the main one first; empty if the claim has ended, or is pending and has left its host."""
    closed: str = ""
    """The token up to which it was closed: placements with a root up to this token are no longer wanted."""
    closed_reason: EndReason | None = None
    closed_by: str = ""
    """Who released or shelved it (see `redsched.origin`); '' if not known."""
    retry_from: str = ""
    """While pending: the token of the placement that failed."""
    max_attempts: int = 1
    """The number of placements after which the claim has failed."""
    max_runtime_s: int = 0
    """How long its work may run; 0 for no limit."""
    runtime_deadline_ms: int | None = None
    """When its host stops the work: `max_runtime_s` after it was claimed or unshelved; None for no limit."""
    attempts: int = 1
    """The number of placements since it was last active, including the current one."""
    failed_moves: int = 0
    """The number of consecutive failed moves since it was last active."""
    move_failed_at_ms: int = 0
    """When the last move failed."""
    restarts: int = 0
    """How often its work ended by itself and had to be placed again, since it last ran for ten minutes."""
    tried: frozenset[str] = frozenset()
    """The hosts on which it failed since it was last active."""
    chosen_alternates: tuple[str, ...] = ()
    """The alternates chosen together with its first host, best first."""
    on_exit: OnExit = OnExit.RELEASE
    log: str = ""
    """The file with the log of its newest work, as `host:path`; '' if its hook has named none."""
    work_ended_at_ms: int | None = None
    """When its work was found to have ended, if the claim is kept regardless or about to be placed again."""
    reason: Reason | None = None
    """Present only if requested: it is stored under a key of its own."""
    decision: KeptDecision | None = None
    """How the host of its newest placement was chosen. Present only if requested, and if it is kept."""
    payload: object = None
    """What its request gives to the hook, a JSON value. Present only if requested."""
    next_attempt_at_ms: int | None = None
    """While pending: when the next placement is attempted. Present only if requested."""
    host_condition: HostCondition | None = None
    """The condition of `host`. Present only if requested, and while the claim has a placement."""
    leaving: str = ""
    """How it leaves `host`: `move` (a drain), `evacuate` (the host was written off), or '' if it stays. As above."""
    unmovable: str = ""
    """While it is to leave: why it has no other place now; '' if that is not known. Present only if requested."""
    host_down_since_ms: int | None = None
    """When the lease of `host` ran out; None while it runs, and if that is not known. Present only if requested."""
    raw: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The hash as read."""

    def view(self, placement: Placement) -> "Claim":
        """Return the claim as seen at one of its placements."""
        return replace(
            self,
            host=placement.host,
            state=placement.state,
            token=placement.token,
            amounts=placement.amounts,
            end_reason=placement.end_reason,
            expires_at_ms=placement.expires_at_ms,
            counted=placement.counted,
            resizing_to=placement.resizing_to,
            work_ended_at_ms=placement.work_ended_at_ms,
        )

    def at(self, token: str) -> "Claim | None":
        """Return the claim as seen at the placement with this token, current or original; None if there is none."""
        return next((self.view(one) for one in self.placements if token in (one.token, one.placed)), None)

    def on(self, host: str) -> "Claim | None":
        """Return the claim as seen at its placement on a host; None if it has none there."""
        return next((self.view(one) for one in self.placements if one.host == host), None)

    @property
    def placed(self) -> str:
        """The name of the placement shown by this view; '' if there is none."""
        return next((one.placed for one in self.placements if one.token == self.token), "")

    @property
    def target(self) -> Placement | None:
        """The placement to which it is being moved from the one shown by this view; None if it is not moving."""
        current = next((one for one in self.placements if one.token == self.token), None)
        later = (
            one for one in self.placements if current and one.state not in ENDING_OR_ENDED and one.rank > current.rank
        )
        return next(later, None)

    def is_doomed(self, placement: Placement) -> bool:
        """Return whether a placement is no longer wanted: it was closed, or a higher one has been active.

        A scheduler requests its end from the host (reconcile.lua), unless that has been done.
        """
        if self.closed and Token.parse(placement.root) <= Token.parse(self.closed):
            return True
        ranks = [one.rank for one in self.placements if one.state is ClaimStatus.ACTIVE]
        if current := self.raw.get("current"):
            ranks.append((Token.parse(self.raw.get("current_root", current)), Token.parse(current)))
        return bool(ranks) and placement.rank < max(ranks)

    @property
    def wanted(self) -> tuple[Placement, ...]:
        """The placements on which the claim runs or is to run: one, or the source and the target of a move."""
        return tuple(one for one in self.placements if one.state in HELD and not self.is_doomed(one))

    @property
    def was_active(self) -> bool:
        """Whether it is active, or was since it was claimed or unshelved."""
        if any(one.state is ClaimStatus.ACTIVE for one in self.placements):
            return True
        current = self.raw.get("current_root") or self.raw.get("current")
        shelved = self.closed if self.closed_reason is EndReason.SHELVED else ""
        return current is not None and not (shelved and Token.parse(current) <= Token.parse(shelved))

    @property
    def waits_to_leave(self) -> bool:
        """Whether it has to leave its host now, and has no other place yet. A drain moves only active claims."""
        states = HELD if self.leaving == "evacuate" else (ClaimStatus.ACTIVE,)
        return bool(self.leaving) and self.state in states and self.target is None

    @property
    def is_live(self) -> bool:
        """Whether it runs, is to run or waits to be placed. False once it is released, before its host is asked."""
        return self.state is ClaimStatus.PENDING or bool(self.wanted)

    def is_overdue(self, now_ms: int, shift_ms: int = 0) -> bool:
        """Return whether the time that its work may run is up.

        `shift_ms`: by how much the store's clock has jumped in all. What it has jumped since the deadline was written
        does not count.
        """
        deadline_ms = self.runtime_deadline_ms
        known_ms = parse_signed(self.raw.get("clock_shift_ms", ""))
        return deadline_ms is not None and deadline_ms + shift_ms - known_ms <= now_ms

    @property
    def is_local(self) -> bool:
        """Whether it was made for local work, which its host runs regardless of the store, and not for a request."""
        return self.digest == LOCAL

    @property
    def gang_member(self) -> str:
        """The name of the gang member to which it belongs; '' if unknown."""
        return next((name for name, ids in self.gang_members.items() if self.id in ids), "")

    @property
    def gang_ids(self) -> tuple[str, ...]:
        """The ids of all claims of its gang, its own too, in the order of the places; empty if they are not kept."""
        return tuple(one for ids in self.gang_members.values() for one in ids)

    def is_with(self, other: "Claim") -> bool:
        """Return whether the claim with the id of a member of this gang is that member, and not a later claim."""
        return self.id in other.gang_ids

    @property
    def alternates(self) -> tuple[str, ...]:
        """The alternates to try next if it fails: without its own host and those on which it has failed."""
        passed = {self.host, *self.hosts, *self.tried}
        return tuple(one for one in self.chosen_alternates if one not in passed)

    @property
    def is_shelved(self) -> bool:
        """Whether it is shelved and holds nothing on any host."""
        return self.state is ClaimStatus.ENDED and self.end_reason is EndReason.SHELVED

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts on which it has a placement, each once."""
        return tuple(dict.fromkeys(one.host for one in self.placements))
