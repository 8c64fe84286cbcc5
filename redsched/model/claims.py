"""Claims and their placements."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import not_
from typing import Annotated, Any

from pydantic import Field, field_serializer

from redsched.model.decision_note import DecisionNote
from redsched.model.hosts import HostCondition
from redsched.model.records.fields import EMPTY_IF_NULL, HIDDEN, Alternate, Alternates, as_objects
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
    """A placement that still holds amounts on its host. `placed`, the token it was placed with, is its name.

    `token` differs from `placed` after a resize.
    """

    placed: Annotated[str, Field(description="The placement's name: its first token.")]
    token: str
    root: Annotated[str, Field(description="The first placement in its chain of moves and retries.")]
    host: str
    state: ClaimStatus
    slots: Amounts
    end_reason: EndReason | None = None
    expires_at_ms: int | None = None
    move_deadline_ms: Annotated[
        int | None, Field(description="For a move with a deadline: when the placement must be active.")
    ] = None
    from_host: Annotated[
        str,
        Field(
            description="The host that it came from: it was moved, or placed again. Absent otherwise.", exclude_if=not_
        ),
    ] = ""
    from_why: Annotated[
        FromWhy | None, Field(description="Why it left that host. Likewise absent.", exclude_if=not_)
    ] = None
    placed_at_ms: Annotated[
        int | None,
        Field(
            description="When it was moved or placed again. Likewise absent.", exclude_if=lambda at_ms: at_ms is None
        ),
    ] = None
    counted: Annotated[Mapping[str, str], HIDDEN] = field(default_factory=dict)
    """The zone and label values under which its server group counts it (`{"zone": "az1"}`)."""
    resizing_to: Annotated[Amounts, HIDDEN] = field(default_factory=dict)
    """The amounts it will hold once its host has resized it; empty while no resize is under way."""
    based_on: Annotated[str, HIDDEN] = ""
    """The token of the placement that it was moved from or retries."""
    work_ended_at_ms: Annotated[int | None, HIDDEN] = None
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
    """Why a claim failed, expired, lost its work or could not be stopped: what `host` observed of a placement."""

    at_ms: int
    host: Annotated[str, Field(description="The host of that placement.")]
    token: Annotated[str, Field(description="The token of the placement that failed.")]
    text: Annotated[str, Field(description="The cause: a hook's exit code and last output, a slot, a deadline.")]
    op: Annotated[str, HIDDEN] = ""
    """The feed's name of the change that recorded it, or STOP_FAILED; '' if an older release wrote it."""

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
    """A claim as stored. `host`, `state`, `token`, `slots` and the like are those of its main placement.

    `at` and `on` return it as seen at another of its placements.
    """

    claim_id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    slots: Amounts
    project: str = ""
    consumer: str = ""
    owner: Annotated[
        str, Field(description="Who in the project owns it: a token, a subject, or whom an operator named; else empty.")
    ] = ""
    actor: Annotated[
        str, Field(description="Who made it: a token, a subject, `cli:<user>` ...; empty if not known.")
    ] = ""
    request_id: Annotated[str, Field(description="The request that made it; empty if not known.")] = ""
    host_condition: Annotated[
        HostCondition | None,
        Field(description="Its host in one word. Null without a placement, and in responses to calls of agents."),
    ] = None
    host_down_since_ms: Annotated[
        int | None,
        Field(description="When the lease of its host ran out, Unix ms: since then nothing is known of its work."),
    ] = None
    leaving: Annotated[
        str,
        Field(
            description="`move` or `evacuate`: its host is drained, or was written off. Absent if it stays there.",
            exclude_if=not_,
        ),
    ] = ""
    unmovable: Annotated[
        str,
        Field(
            description="Why it has no other place now. Absent in lists, and if it has one, or stays.", exclude_if=not_
        ),
    ] = ""
    server_group: Annotated[
        str,
        EMPTY_IF_NULL,
        Field(description="The server group that counts it. Null for an ended claim, because it is not kept."),
    ] = ""
    end_reason: EndReason | None = None
    claimed_at_ms: int | None = None
    expires_at_ms: Annotated[int | None, Field(description="Null if no lease is running.")] = None
    closed: Annotated[
        str, Field(description="Token up to which the claim was given up. Placements up to it are obsolete.")
    ] = ""
    closed_by: Annotated[
        str, Field(description="Who released or shelved it, as `actor`. Absent if not known.", exclude_if=not_)
    ] = ""
    attempts: Annotated[int, Field(description="Number of placements since it was last active.")] = 1
    max_attempts: Annotated[int, Field(description="Number of attempts after which it fails.")] = 1
    max_runtime_s: Annotated[int, Field(description="Seconds that its work may run. 0: no limit.")] = 0
    runtime_deadline_ms: Annotated[
        int | None,
        Field(description="When its host stops the work, `max_runtime_s` after it was claimed or unshelved."),
    ] = None
    restarts: Annotated[
        int,
        Field(
            description="With `on_exit: replace`: how often its work ended by itself, or was stopped with its gang, "
            "since it last ran for 10 min."
        ),
    ] = 0
    next_attempt_at_ms: Annotated[
        int | None, Field(description="For a pending claim: time of the next attempt to place it. Null in lists.")
    ] = None
    alternates: Annotated[
        Alternates,
        Field(
            description="Hosts selected along with its first host. If it fails, the first of them that still fits is "
            "used next. Null for an ended claim, because they are not kept."
        ),
    ] = ()
    placements: Annotated[
        tuple[Placement, ...],
        Field(description="Placements that still hold amounts, the main one first. More than one during a move."),
    ] = ()
    resizing_to: Annotated[Amounts, Field(description="While its host resizes it: the new amounts.")] = field(
        default_factory=dict
    )
    digest: Annotated[
        str, Field(description="Digest of the request. This field and the next ones are for its host's journal.")
    ] = ""
    counted: Annotated[
        Mapping[str, str], Field(description="The zone and label values under which its server group counts it.")
    ] = field(default_factory=dict)
    on_exit: Annotated[OnExit, Field(description="What happens to it when its work ends by itself.")] = OnExit.RELEASE
    gang_on_exit: Annotated[
        GangOnExit,
        Field(description="What happens to the other members of its active gang when it ends by itself."),
    ] = GangOnExit.KEEP
    log: Annotated[
        str,
        Field(description="File with the log of its newest work, as `host:path`. Empty if its hook has named none."),
    ] = ""
    payload: Annotated[
        Any,
        Field(description="What its request gives to the hook, any JSON value. Null in lists, and if there is none."),
    ] = None
    work_ended_at_ms: Annotated[
        int | None, Field(description="When its work was found to have ended. Null while it runs.")
    ] = None
    reason: Annotated[
        Reason | None, Field(description="Why it failed, expired, or lost its work. Null if not kept.")
    ] = None
    decision: Annotated[
        DecisionNote | None,
        Field(description="How the host of its newest placement was chosen. Null in lists, and if it is not known."),
    ] = None
    gang: Annotated[str, HIDDEN] = ""
    """The gang it was claimed with, named by the id of the gang's first member."""
    gang_members: Annotated[Mapping[str, tuple[str, ...]], HIDDEN] = field(default_factory=dict)
    """For a gang with relations or `gang_on_exit`: the claim ids of each member, including its own."""
    gang_exit: Annotated[GangOnExit | None, HIDDEN] = None
    """What the other members of its gang have yet to follow, because this one has ended: REPLACE or RELEASE."""
    closed_reason: Annotated[EndReason | None, HIDDEN] = None
    retry_from: Annotated[str, HIDDEN] = ""
    """While pending: the token of the placement that failed."""
    failed_moves: Annotated[int, HIDDEN] = 0
    """The number of consecutive failed moves since it was last active."""
    move_failed_at_ms: Annotated[int, HIDDEN] = 0
    """When the last move failed."""
    tried: Annotated[frozenset[str], HIDDEN] = frozenset()
    """The hosts on which it failed since it was last active."""
    raw: Annotated[Mapping[str, str], HIDDEN] = field(default_factory=dict, compare=False, repr=False)
    """The hash as read."""

    @field_serializer("server_group")
    def _group_if_kept(self, name: str) -> str | None:
        return None if self.state is ClaimStatus.ENDED else name

    @field_serializer("alternates")
    def _alternates_if_kept(self, hosts: tuple[str, ...]) -> list[Alternate] | None:
        return None if self.state is ClaimStatus.ENDED else as_objects(hosts)

    def view(self, placement: Placement) -> "Claim":
        """Return the claim as seen at one of its placements."""
        return replace(
            self,
            host=placement.host,
            state=placement.state,
            token=placement.token,
            slots=placement.slots,
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
        return next((name for name, ids in self.gang_members.items() if self.claim_id in ids), "")

    @property
    def gang_ids(self) -> tuple[str, ...]:
        """The ids of all claims of its gang, its own too, in the order of the places; empty if they are not kept."""
        return tuple(one for ids in self.gang_members.values() for one in ids)

    def is_with(self, other: "Claim") -> bool:
        """Return whether the claim with the id of a member of this gang is that member, and not a later claim."""
        return self.claim_id in other.gang_ids

    def with_alternates(self, chosen: Iterable[str]) -> "Claim":
        """Return it with the alternates chosen with its first host, but for its own hosts and where it has failed."""
        passed = {self.host, *self.hosts, *self.tried}
        return replace(self, alternates=tuple(one for one in chosen if one not in passed))

    @property
    def is_shelved(self) -> bool:
        """Whether it is shelved and holds nothing on any host."""
        return self.state is ClaimStatus.ENDED and self.end_reason is EndReason.SHELVED

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts on which it has a placement, each once."""
        return tuple(dict.fromkeys(one.host for one in self.placements))


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedClaim(Claim):
    """A claim that is being moved, resized or shelved, which its host or target host has yet to complete."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]

    @classmethod
    def of(cls, claim: Claim, watch: str) -> "AcceptedClaim":
        """Return a claim with the path that shows its progress."""
        return cls(**{one.name: getattr(claim, one.name) for one in fields(claim)}, watch=watch)
