"""What deciding and explaining answer, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many hosts a reason removed; each host counts once, under the first reason that removed it."""

    reason: str
    hosts: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request may go, or why nowhere.

    `members` has one tuple of candidate hosts for each place asked for, best first after the first, which is the chosen
    one; it is empty when the request is refused, and only then are there `reasons`. `alternates` fit too, best first,
    and are no member's first candidate; there are `count` more than asked for (as far as hosts fit), so that those
    which were claimed in the end can be left out. `score` is that of the best host: higher is better, comparable
    between cells. `fits` of `hosts` hosts may take a place: 0 when refused.
    """

    members: tuple[tuple[str, ...], ...]
    alternates: tuple[str, ...]
    score: float
    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A host that fails on amounts alone: by class, what is needed and what is free (below 0: the host is over)."""

    host: str
    needs: Mapping[str, int]
    free: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a host, by its reason; `detail` has the numbers."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Every check of one host. `reason` is the first that failed; None when the host fits."""

    host: str
    reason: str | None
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a decision comes about: the counts over all hosts, the nearest misses, and the checks of a named host."""

    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...]
    nearest: tuple[Miss, ...]
    checks: tuple[HostCheck, ...] = ()
