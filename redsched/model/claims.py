"""Claims and their tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from redsched.errors import InvalidRequest

Amounts = Mapping[str, int]
"""Whole amounts by slot (`VCPU`, `gpu0/CUSTOM_GPU_MILLI`, `pool:lic/CUSTOM_SEAT`), in the unit of the slot's class."""


class ClaimStatus(StrEnum):
    """Where a claim is in its life (design: claimed -> starting -> active -> ending -> ended)."""

    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"


LEASED = (ClaimStatus.CLAIMED, ClaimStatus.STARTING)
"""Its lease runs: its host has not said yet that it is active."""
HELD = (*LEASED, ClaimStatus.ACTIVE)
"""It is to run: nobody has given it back."""
OVER = (ClaimStatus.ENDING, ClaimStatus.ENDED)
"""It is to stop, or has."""


class Why(StrEnum):
    """Why a claim ended."""

    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"
    MOVED = "moved"
    SHELVED = "shelved"
    VOID = "void"


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """A fencing token: epoch, then seq of the claim's last placing. Orders as the protocol compares them."""

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
class Claim:
    """A claim as the store holds it. `expires_at_ms` is None where no lease runs; an ended one keeps no amounts."""

    id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    amounts: Amounts
    project: str = ""
    consumer: str = ""
    digest: str = ""
    why: Why | None = None
    claimed_at_ms: int | None = None
    expires_at_ms: int | None = None
    group: str = ""
    """The server group that it counts in, and `counted`: under which zone and label values (`{"zone": "az1"}`)."""
    counted: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    """The id by which its owner knows it, where it has succeeded another claim."""
    former: str = ""
    """While it is still to succeed a claim: that claim, its host and token, why, and the deadline of a move."""
    former_host: str = ""
    former_token: str = ""
    former_why: Why | None = None
    by_ms: int | None = None
    came_from: str = ""
    """The claim that it was placed to succeed, also when it has."""
    next: str = ""
    """The claim that is to succeed it, or has."""
    gang: str = ""
    """The gang that it was claimed with: the id of its first member."""
    wanted: Amounts = field(default_factory=dict)
    """While its host resizes it: what it will hold."""
