"""Claims and their tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from redsched.errors import InvalidRequest

Amounts = Mapping[str, int]
"""Whole amounts by slot (`VCPU`, `gpu0/CUSTOM_GPU_MILLI`, `pool:lic/CUSTOM_SEAT`), in the unit of the slot's class."""


class ClaimStatus(StrEnum):
    """Where a claim is in its life: claimed -> starting -> active -> ending -> ended.

    `pending`: its last placement has failed, and a scheduler is to find it another one.
    """

    PENDING = "pending"
    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"


class ListedState(StrEnum):
    """By what state claims can be listed. Ended claims are in no list, except shelved ones."""

    PENDING = "pending"
    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    SHELVED = "shelved"


LEASED = (ClaimStatus.CLAIMED, ClaimStatus.STARTING)
"""Its lease runs: its host has not said yet that it is active."""
HELD = (*LEASED, ClaimStatus.ACTIVE)
"""It is to run on the host that it is on."""
OVER = (ClaimStatus.ENDING, ClaimStatus.ENDED)
"""It is to stop, or has."""


class EndReason(StrEnum):
    """Why a placement ended, or the claim with it."""

    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"
    MOVED = "moved"
    SHELVED = "shelved"
    VOID = "void"
    WORK_ENDED = "work-ended"
    """Its work ended by itself, and the request's `on_exit` is `release`."""


class OnExit(StrEnum):
    """What becomes of a claim whose work ends by itself."""

    RELEASE = "release"
    """It ends."""
    REPLACE = "replace"
    """It fails on its host, and is placed again like any that fails."""
    KEEP = "keep"
    """It stays, and shows when its work ended."""


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """A fencing token: epoch, then seq of a placement or resize. Orders as the protocol compares them."""

    epoch_ms: int
    epoch_id: str
    seq: int

    @property
    def epoch(self) -> str:
        """The epoch as the store writes it: `<ms>-<first 8 of the replication id>`."""
        return f"{self.epoch_ms}-{self.epoch_id}"

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Read `1790000000000-9f3a12cd.4711`. Raises InvalidRequest on anything else."""
        epoch, _, seq = text.rpartition(".")
        epoch_ms, _, epoch_id = epoch.partition("-")
        if not (epoch_ms.isdecimal() and seq.isdecimal() and epoch_id.isalnum() and text.isascii() and len(text) <= 64):
            raise InvalidRequest(f"token {text[:80]!r} is not a token: pass it as the claim's answer gave it")
        return cls(int(epoch_ms), epoch_id, int(seq))


@dataclass(frozen=True, slots=True)
class Placement:
    """One place of a claim, which still holds something there. Named by `placed`, the token that it was placed with.

    `token` differs from that after a resize. `root` is the placement that it descends from by moves and retries.
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
    """Under which zone and label values its server group counts it (`{"zone": "az1"}`)."""
    resizing_to: Amounts = field(default_factory=dict)
    """While its host resizes it: what it will hold."""
    based_on: str = ""
    """The token of the placement that it was moved from, or is another attempt of."""
    move_deadline_ms: int | None = None
    """The deadline of a move: when it is given back unless it is active."""
    work_ended_at_ms: int | None = None
    """When its work was found to have ended, where it is kept nevertheless, or about to be placed again."""

    @property
    def rank(self) -> tuple[Token, Token]:
        """The order of a claim's placements: of two that are active, the higher one goes on."""
        return Token.parse(self.root), Token.parse(self.placed)


def one_line(text: str) -> str:
    """Return a text of several lines on one."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a claim failed, expired or lost its work, in words: what was seen on `host`, of placement `token`.

    `op`: the change that it was given with, as the feed names it; '' where an older release wrote it.
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


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as the store holds it. `expires_at_ms` is None where no lease runs; an ended one keeps no amounts.

    `host`, `state`, `token`, `amounts`, `end_reason`, `expires_at_ms`, `counted` and `resizing_to` are those of one of
    its placements: the main one, unless `at` or `on` was asked for another.
    """

    id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    amounts: Amounts
    project: str = ""
    consumer: str = ""
    digest: str = ""
    end_reason: EndReason | None = None
    claimed_at_ms: int | None = None
    expires_at_ms: int | None = None
    group: str = ""
    """The server group that it counts in."""
    counted: Mapping[str, str] = field(default_factory=dict)
    gang: str = ""
    """The gang that it was claimed with: the id of its first member."""
    gang_members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a gang with relations: the ids of the claims of each member, its own too."""
    resizing_to: Amounts = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()
    """All that it has, the main one first; none where it has ended or is pending."""
    closed: str = ""
    """The token up to which it was given back: no placement with such a root is wanted."""
    closed_reason: EndReason | None = None
    retry_from: str = ""
    """While it is pending: the token of the placement that has failed."""
    max_attempts: int = 1
    """How often it is placed before it has failed."""
    attempts: int = 1
    """Placements since it was active last, the present one included."""
    failed_moves: int = 0
    """Moves in a row that have failed since it was active last."""
    move_failed_at_ms: int = 0
    """When the last of them failed."""
    restarts: int = 0
    """How often its work has ended by itself, and was to be placed again, since it last ran for ten minutes."""
    tried: frozenset[str] = frozenset()
    """Hosts on which it has failed since it was active last."""
    chosen_alternates: tuple[str, ...] = ()
    """The alternates that were chosen with its first host, best first."""
    on_exit: OnExit = OnExit.RELEASE
    work_ended_at_ms: int | None = None
    """When its work was found to have ended, where it is kept nevertheless, or about to be placed again."""
    reason: Reason | None = None
    """Only where it was asked for: it lies in a key of its own."""
    next_attempt_at_ms: int | None = None
    """While it is pending: when a place is looked for next. Only where it was asked for."""
    raw: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The hash as it was read."""

    def view(self, placement: Placement) -> "Claim":
        """Return the claim as it is at one of its placements."""
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
        """Return the claim at the placement with this token, or placed with it; None where it has none."""
        return next((self.view(one) for one in self.placements if token in (one.token, one.placed)), None)

    def on(self, host: str) -> "Claim | None":
        """Return the claim at its placement on a host; None where it has none there."""
        return next((self.view(one) for one in self.placements if one.host == host), None)

    @property
    def placed(self) -> str:
        """The name of the placement that this view is of; '' where there is none."""
        return next((one.placed for one in self.placements if one.token == self.token), "")

    @property
    def target(self) -> Placement | None:
        """The placement that it is being moved to from the one shown here."""
        here = next((one for one in self.placements if one.token == self.token), None)
        later = (one for one in self.placements if here and one.state not in OVER and one.rank > here.rank)
        return next(later, None)

    @property
    def gang_member(self) -> str:
        """Return the name of the gang's member that it is a place of; '' where that is not known."""
        return next((name for name, ids in self.gang_members.items() if self.id in ids), "")

    @property
    def alternates(self) -> tuple[str, ...]:
        """Return the alternates on which it is not, and has not failed: where it goes next if it fails."""
        passed = {self.host, *self.hosts, *self.tried}
        return tuple(one for one in self.chosen_alternates if one not in passed)

    @property
    def is_shelved(self) -> bool:
        """Whether it is shelved, and nothing of it is left on a host."""
        return self.state is ClaimStatus.ENDED and self.end_reason is EndReason.SHELVED

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts that it has a placement on."""
        return tuple(dict.fromkeys(one.host for one in self.placements))
