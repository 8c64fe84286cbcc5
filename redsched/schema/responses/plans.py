"""Responses about plans."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from redsched import scheduler
from redsched.schema.answer import Answer
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
    unplaced: list[UnplacedAnswer]


class RedundancyAnswer(Answer, shows=scheduler.Redundancy):
    """Whether all claims fit without any one host, zone or label value."""

    by: str
    checked: int
    failing: Annotated[list[WithoutDomainAnswer], Field(description="Those without which some claim has no place.")]
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
