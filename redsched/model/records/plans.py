"""The results of plans, as the library returns them and as the API shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from redsched.errors import InvalidRequest
from redsched.model.decision_note import ReasonCount
from redsched.model.request import Request


def planned(request: Request) -> Request:
    """Return the request of a plan. Raises InvalidRequest if it has claim ids."""
    if request.claim_ids:
        raise InvalidRequest("claim_ids belong to one selection: leave them out of a plan")
    return request


@dataclass(frozen=True, slots=True)
class ClassAmounts:
    """A class, on the hosts that take claims: its capacity, and what is free now and `after` the plan.

    Amounts are in the unit of the class, over all hosts, their pools, and the shared pools.
    """

    resource_class: str
    capacity: int
    free: int
    after: Annotated[int, Field(description="What is free after the plan.")]


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
    """What would happen without one host, zone or label value."""

    domain: str
    hosts: Annotated[int, Field(description="Number of its hosts.")]
    claims: Annotated[int, Field(description="Number of claims that need another place then.")]
    unplaced: Annotated[int, Field(description="Number of these that find none.")]
    examples: Annotated[
        tuple[Unplaced, ...], Field(description="The largest of these: at most 10, and 1000 in one response.")
    ]


@dataclass(frozen=True, slots=True)
class Redundancy:
    """Whether all claims fit without any one `by`: a host, a zone or a value of `label:<key>`."""

    by: str
    checked: int
    failed: Annotated[int, Field(description="Number of those without which some claim has no place.")]
    failing: Annotated[tuple[WithoutDomain, ...], Field(description="The worst of these, at most 1000.")]
    unchecked: Annotated[int, Field(description="Number of those that were not tried, for lack of time.")] = 0
    unlabelled: Annotated[int, Field(description="Number of hosts that have no such label.")] = 0


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """How many more of a request fit."""

    places: Annotated[int, Field(description="How often the whole request fits.")]
    at_least: Annotated[bool, Field(description="Whether more may fit: the count reached its limit, or its time.")]
    zones: Annotated[Mapping[str, int], Field(description="Places by zone.")]
    reasons: Annotated[tuple[ReasonCount, ...], Field(description="What the hosts lack for one more.")]
    classes: Annotated[tuple[ClassAmounts, ...], Field(description="The classes of the request.")]
    quota: Annotated[
        int | None, Field(description="How often the project's quota allows the request; null: no quota.")
    ] = None
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
    gain: Annotated[str, Field(description="What it gains, as text.")]


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """Moves in order, and the number that they change from `before` to `after`, which depends on the aim.

    request: the places of the request that fit, at most its count; waiting: how many of `goal` that wait get a place;
    drain: the claims left on the hosts; policy: the sum of what each move gained when it was chosen.
    """

    aim: Aim
    moves: tuple[Move, ...]
    before: float
    after: float
    goal: Annotated[float, Field(description="The number to be reached; 0 for policy, which has no end.")]
    is_cut: Annotated[bool, Field(description="Whether the search took too long, so that more may be gained.")] = False


@dataclass(frozen=True, slots=True)
class AppliedMove:
    """A move of a plan that was made, or why it was not; with an empty `problem` the claim runs on its target."""

    claim_id: str
    source: str
    target: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The moves that were begun, in order. After one with a problem, none was begun."""

    moves: tuple[AppliedMove, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """How many of a request fit before and after a plan."""

    before: int
    after: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class AddingPlan:
    """What further hosts would change. `room` is about the request that was given; None without one."""

    hosts: Annotated[int, Field(description="Number of hosts added.")]
    classes: Annotated[tuple[ClassAmounts, ...], Field(description="`capacity` includes the new hosts.")]
    waiting: Annotated[int, Field(description="Number of claims that wait for a place now.")]
    served: Annotated[int, Field(description="Number of these that would get one.")]
    room: Room | None = None
