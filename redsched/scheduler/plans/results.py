"""The results of plans: plain data for the API, the CLI and users of the library."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from redsched.decide import ReasonCount


@dataclass(frozen=True, slots=True)
class ClassAmounts:
    """A class, on the hosts that take claims: its capacity, and what is free now and `after` the plan.

    Amounts are in the unit of the class, over all hosts, their pools, and the shared pools.
    """

    resource_class: str
    capacity: int
    free: int
    after: int


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A claim, and the host to which the scheduler would move it."""

    claim_id: str
    project: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A claim that would have no other place, and why."""

    claim_id: str
    project: str
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class WithoutDomain:
    """What would happen without the hosts of one host, zone or label value.

    `claims` of it need another place, `unplaced` of these find none; `examples` are the largest of them.
    """

    domain: str
    hosts: int
    claims: int
    unplaced: int
    examples: tuple[Unplaced, ...]


@dataclass(frozen=True, slots=True)
class Redundancy:
    """Whether everything still fits without any one `by`: a host, a zone or a value of `label:<key>`.

    Without any one of `failed` of them something would have no place; `failing` are the worst of these. `unchecked`
    were not tried, for lack of time; `unlabelled` hosts belong to none.
    """

    by: str
    checked: int
    failed: int
    failing: tuple[WithoutDomain, ...]
    unchecked: int = 0
    unlabelled: int = 0


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """How many more of a request fit.

    `places` is the number of times that the whole request fits; `at_least` if there may be more, because the count
    reached its limit or its time. `zones` has the places of each zone, `reasons` what the hosts lack for one more, and
    `classes` what is free of each class requested. `quota` is the number of times that the project's quota allows it;
    None without a quota.
    """

    places: int
    at_least: bool
    zones: Mapping[str, int]
    reasons: tuple[ReasonCount, ...]
    classes: tuple[ClassAmounts, ...]
    quota: int | None = None
    redundancy: Redundancy | None = None


@dataclass(frozen=True, slots=True)
class LeavingPlan:
    """Where the claims of hosts would go that are drained, or gone."""

    hosts: tuple[str, ...]
    moves: tuple[PlannedMove, ...]
    unplaced: tuple[Unplaced, ...]
    classes: tuple[ClassAmounts, ...]


class Aim(StrEnum):
    """What claims are moved for."""

    REQUEST = "request"
    """Room for a request."""
    WAITING = "waiting"
    """Room for the claims and requests that wait."""
    DRAIN = "drain"
    """Hosts without claims."""
    POLICY = "policy"
    """Places that a policy prefers."""


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a claim, as seen at the placement with `token`, and what it gains."""

    claim_id: str
    project: str
    token: str
    source: str
    target: str
    gain: str


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """Moves in order, and the number that they change from `before` to `after`, which depends on the aim.

    request: the places of the request that fit, at most its count; waiting: how many of `goal` that wait get a place;
    drain: the claims left on the hosts; policy: the sum of what each move gained when it was chosen. `goal` is the
    number to be reached. `is_cut` if the search took too long, and more may be gained.
    """

    aim: Aim
    moves: tuple[Move, ...]
    before: float
    after: float
    goal: float
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class AppliedMove:
    """A move of a plan that was made, or why it was not; with an empty `problem` the claim runs on its target."""

    claim_id: str
    source: str
    target: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """How many of a request fit before and after a plan."""

    before: int
    after: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class AddingPlan:
    """What further hosts would change. `waiting` claims have no place now; `served` of them would have one.

    `room` is about the request that was given; None without one.
    """

    hosts: int
    classes: tuple[ClassAmounts, ...]
    waiting: int
    served: int
    room: Room | None = None
