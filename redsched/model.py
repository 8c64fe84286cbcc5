"""The words of the design as plain data: inventories, reports, requests, claims, tokens.

Frozen, validated when made, and free of I/O. What travels over HTTP has pydantic models in `redsched.api`; what lies in
Redis is read and written in `redsched.store`; both turn into these.
"""

import hashlib
import json
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field, fields
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import Any

from redsched.errors import InvalidRequest
from redsched.names import (
    MAX_AMOUNT,
    check_amount,
    check_class,
    check_label_value,
    check_name,
    check_trait,
    shown,
)

Amounts = Mapping[str, int]
"""Whole amounts by slot (`VCPU`, later `gpu0/CUSTOM_GPU_MILLI`), in the unit of the slot's class."""

MAX_COUNT = 200
MAX_ALTERNATES = 50
MAX_LEASE_S = 86_400
MAX_RATIO = 10_000.0
MAX_CLASSES = 64
"""Classes of one request, and inventories of one host: a script reads and writes them in one command."""
MAX_TRAITS = 1000
MAX_LABELS = 256
"""Labels of one host, and metrics of one host."""


class HostStatus(StrEnum):
    """The operator's word on a host. Only an enabled host gets new claims."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    DRAINING = "draining"


class ClaimStatus(StrEnum):
    """Where a claim is in its life (design: claimed -> starting -> active -> ending -> ended)."""

    CLAIMED = "claimed"
    STARTING = "starting"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"


class Why(StrEnum):
    """Why a claim ended."""

    RELEASED = "released"
    EXPIRED = "expired"
    FAILED = "failed"
    MOVED = "moved"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a slot has. capacity = floor((total - reserved) * allocation_ratio), never below 0 (Placement's formula)."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    min_unit: int = 1
    max_unit: int | None = None
    step_size: int = 1

    def __post_init__(self) -> None:
        check_amount("total", self.total)
        check_amount("reserved", self.reserved)
        check_amount("min_unit", self.min_unit, 1)
        check_amount("step_size", self.step_size, 1)
        if self.max_unit is not None:
            check_amount("max_unit", self.max_unit, 1)
        if not 0 < self.allocation_ratio <= MAX_RATIO:
            raise InvalidRequest(
                f"allocation_ratio must be above 0 and at most {MAX_RATIO:g}, not {self.allocation_ratio!r}"
            )
        if self.capacity > MAX_AMOUNT:
            raise InvalidRequest(f"total x allocation_ratio is {self.capacity}, above the largest amount {MAX_AMOUNT}")

    @property
    def capacity(self) -> int:
        """What claims and external usage together may take."""
        exact = Decimal(max(0, self.total - self.reserved)) * Decimal(str(self.allocation_ratio))
        return int(exact.to_integral_value(ROUND_FLOOR))

    @property
    def largest(self) -> int:
        """The largest amount one claim may take: max_unit, else total."""
        return self.total if self.max_unit is None else self.max_unit


@dataclass(frozen=True, slots=True)
class HostReport:
    """A host's word about itself: all that it owns. `external` is usage that no claim explains."""

    name: str
    inventories: Mapping[str, Inventory]
    cell: str = "c1"
    zone: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    metrics: Mapping[str, float] = field(default_factory=dict)
    external: Amounts = field(default_factory=dict)
    lease_s: int = 30

    def __post_init__(self) -> None:
        for what in ("name", "cell", "zone"):
            check_name("host" if what == "name" else what, getattr(self, what))
        _check_size("inventories", self.inventories, MAX_CLASSES)
        _check_size("traits", self.traits, MAX_TRAITS)
        _check_size("labels", self.labels, MAX_LABELS)
        _check_size("metrics", self.metrics, MAX_LABELS)
        for slot in self.inventories:
            check_class(slot)
        for trait in self.traits:
            check_trait(trait)
        for key, value in self.labels.items():
            check_label_value(check_name("label", key), value)
        for key in self.metrics:
            check_name("metric", key)
        for slot, amount in self.external.items():
            if slot not in self.inventories:
                raise InvalidRequest(f"external names {slot!r}, which is not among the inventories")
            check_amount(f"external {slot}", amount)
        _check_lease(self.lease_s)


@dataclass(frozen=True, slots=True)
class AgentStamp:
    """Who sends a report, and its place in the order: the journal's id, the process' nonce, a growing number."""

    journal: str
    nonce: str
    number: int

    def __post_init__(self) -> None:
        check_name("journal", self.journal)
        check_name("nonce", self.nonce)
        check_amount("number", self.number, 1)


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


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. Every place of `count` takes `resources` from one host; all of them or none."""

    resources: Amounts
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: tuple[frozenset[str], ...] = ()
    zones: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    exclude_hosts: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    count: int = 1
    alternates: int = 0
    project: str = ""
    consumer: str = ""
    claim_ids: tuple[str, ...] = ()
    lease_s: int = 120
    claim: bool = True

    def __post_init__(self) -> None:
        if not self.resources:
            raise InvalidRequest('resources is empty: ask for at least one amount, such as {"VCPU": 1}')
        _check_size("resources", self.resources, MAX_CLASSES)
        for slot, amount in self.resources.items():
            check_amount(check_class(slot), amount, 1)
        for trait in self.required | self.forbidden | frozenset().union(*self.any_of):
            check_trait(trait)
        if any(not one for one in self.any_of):
            raise InvalidRequest(
                "any_of holds an empty list, which no host can satisfy: name at least one trait in each"
            )
        for what, names in (
            ("zone", self.zones),
            ("host", self.hosts | self.exclude_hosts),
            ("claim id", self.claim_ids),
        ):
            for name in names:
                check_name(what, name)
        for key, value in self.labels.items():
            check_label_value(check_name("label", key), value)
        for what in ("project", "consumer"):
            if getattr(self, what):
                check_name(what, getattr(self, what))
        self._check_numbers()

    def _check_numbers(self) -> None:
        _check_range("count", self.count, 1, MAX_COUNT)
        _check_range("alternates", self.alternates, 0, MAX_ALTERNATES)
        _check_lease(self.lease_s)
        if self.claim_ids and len(self.claim_ids) != self.count:
            raise InvalidRequest(
                f"claim_ids holds {len(self.claim_ids)} ids for count {self.count}: give one for each place"
            )
        if len(set(self.claim_ids)) != len(self.claim_ids):
            raise InvalidRequest("claim_ids names an id twice: each place needs an id of its own")
        for name, multiplier in self.weights.items():
            if not -1e6 <= multiplier <= 1e6:
                raise InvalidRequest(f"weight {name!r} must be between -1e6 and 1e6, not {multiplier!r}")

    def shape(self) -> str:
        """Canonical JSON of all that a decision depends on: equal shapes have equal masks and scores."""
        return _canonical(self, _SHAPE_FIELDS)

    def digest(self) -> str:
        """32 hex digits over what is asked for and for whom: what an id, sent again, must match."""
        return hashlib.blake2b(_canonical(self, _DIGEST_FIELDS).encode(), digest_size=16).hexdigest()


_SHAPE_FIELDS = (
    "resources",
    "required",
    "forbidden",
    "any_of",
    "zones",
    "hosts",
    "exclude_hosts",
    "labels",
    "policy",
    "weights",
)
_DIGEST_FIELDS = tuple(f.name for f in fields(Request) if f.name not in {"claim_ids", "claim", "alternates"})


def _canonical(request: Request, names: tuple[str, ...]) -> str:
    return json.dumps({name: _plain(getattr(request, name)) for name in names}, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return sorted(_plain(one) for one in value)
    return dict(value) if isinstance(value, Mapping) else value


def _check_range(what: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidRequest(f"{what} must be a whole number from {low} to {high}, not {shown(value)}")


def _check_size(what: str, things: Sized, most: int) -> None:
    if len(things) > most:
        raise InvalidRequest(f"{what} has {len(things)} entries: {most} at most")


def _check_lease(lease_s: int) -> None:
    _check_range("lease_s", lease_s, 1, MAX_LEASE_S)
