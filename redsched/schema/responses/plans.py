"""Responses about plans."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from redsched import scheduler
from redsched.schema.answer import Answer, From
from redsched.schema.responses.problems import ReasonCount


class ClassAmountsAnswer(Answer, shows=scheduler.ClassAmounts):
    """A class, over all hosts that take claims and all shared pools, in the class's unit."""

    resource_class: str
    capacity: int
    free: int
    after: Annotated[int, Field(description="What is free after the plan.")]


class PlannedMoveAnswer(Answer, shows=scheduler.PlannedMove):
    """A claim, the host that it leaves, and the host to which the scheduler would move it."""

    claim_id: str
    project: str
    source: str
    target: str


class UnplacedAnswer(Answer, shows=scheduler.Unplaced):
    """A claim that would have no other place, and why."""

    claim_id: str
    project: str
    host: str
    reason: str


class WithoutDomainAnswer(Answer, shows=scheduler.WithoutDomain):
    """What would happen without one host, zone or label value."""

    domain: str
    hosts: Annotated[int, Field(description="Number of its hosts.")]
    claims: Annotated[int, Field(description="Number of claims that need another place then.")]
    unplaced: Annotated[int, Field(description="Number of these that find none.")]
    examples: Annotated[
        list[UnplacedAnswer], Field(description="The largest of these: at most 10, and 1000 in one response.")
    ]


class RedundancyAnswer(Answer, shows=scheduler.Redundancy):
    """Whether all claims fit without any one host, zone or label value."""

    by: str
    checked: int
    failed: Annotated[int, Field(description="Number of those without which some claim has no place.")]
    failing: Annotated[list[WithoutDomainAnswer], Field(description="The worst of these, at most 1000.")]
    unchecked: Annotated[int, Field(description="Number of those that were not tried, for lack of time.")]
    unlabelled: Annotated[int, Field(description="Number of hosts that have no such label.")]


class CapacityPlanAnswer(Answer, shows=scheduler.CapacityPlan):
    """How many more of a request fit."""

    places: Annotated[int, Field(description="How often the whole request fits.")]
    at_least: Annotated[bool, Field(description="Whether more may fit: the count reached its limit, or its time.")]
    zones: Annotated[Mapping[str, int], Field(description="Places by zone.")]
    reasons: Annotated[list[ReasonCount], Field(description="What the hosts lack for one more.")]
    classes: Annotated[list[ClassAmountsAnswer], Field(description="The classes of the request.")]
    quota: Annotated[int | None, Field(description="How often the project's quota allows the request; null: no quota.")]
    redundancy: RedundancyAnswer | None


class LeavingPlanAnswer(Answer, shows=scheduler.LeavingPlan):
    """Where the claims of hosts would go."""

    hosts: list[str]
    moves: list[PlannedMoveAnswer]
    unplaced: list[UnplacedAnswer]
    classes: list[ClassAmountsAnswer]


class RoomAnswer(Answer, shows=scheduler.Room):
    """How many of the request fit before and after."""

    before: int
    after: int
    at_least: bool


class AddingPlanAnswer(Answer, shows=scheduler.AddingPlan):
    """What further hosts would change."""

    hosts: Annotated[int, Field(description="Number of hosts added.")]
    classes: Annotated[list[ClassAmountsAnswer], Field(description="`capacity` includes the new hosts.")]
    waiting: Annotated[int, Field(description="Number of claims that wait for a place now.")]
    served: Annotated[int, Field(description="Number of these that would get one.")]
    room: RoomAnswer | None


class MoveAnswer(Answer, shows=scheduler.Move):
    """A move of a claim, as seen at the placement with `token`."""

    claim_id: str
    project: str
    token: str
    source: str
    target: str
    gain: Annotated[str, Field(description="What it gains, as text.")]


class RebalancePlanAnswer(Answer, shows=scheduler.RebalancePlan):
    """Moves in order, and the number that they change.

    request: places that fit; waiting: claims and requests that wait and get a place; drain: claims left on the hosts;
    policy: the sum of the gains of scores.
    """

    aim: scheduler.Aim
    moves: list[MoveAnswer]
    before: float
    after: float
    goal: Annotated[float, Field(description="The number to be reached; 0 for policy, which has no end.")]
    is_cut: Annotated[bool, Field(description="Whether the search took too long, so that more may be gained.")]


class AppliedMoveAnswer(Answer, shows=scheduler.AppliedMove):
    """A move that was made, or the problem because of which it was not."""

    claim_id: str
    source: str
    target: str
    problem: str


class AppliedAnswer(Answer):
    """The moves that were begun, in order. After one with a problem, none was begun."""

    moves: Annotated[list[AppliedMoveAnswer], From(lambda found: [AppliedMoveAnswer.of(one) for one in found])]
