"""How long decisions may take: on the event loop of a process that serves others, and where nobody else waits."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redsched import aio
from redsched.errors import TooHard
from redsched.model import Request
from redsched.model.records.problems import TooHardFacts

if TYPE_CHECKING:
    from redsched.decide.work_limit import TooMuchWork, WorkLimit
    from redsched.scheduler.decide_apart.planner import Planner

STRETCH_S = 0.04
"""How long one decision holds the event loop at most. What surrounds it takes a few milliseconds."""
TOTAL_S = 0.25
"""How long all decisions on one request may hold the event loop together."""
CHECK_S = 0.02
"""How long the check of a request that waits may take. Beyond that it counts as hard."""
AT_ONCE_S = 0.1
"""How long a decision in the background may hold it: it is made again later."""
HARD_FOR_S = 60.0
"""How long a shape of requests counts as hard."""
MAX_HARD = 1000
"""The most hard shapes that are remembered."""


@dataclass(frozen=True, slots=True)
class DecisionLimits:
    """The limits of one scheduler. `plan_s` is how long a decision may take at most, wherever it is made.

    With a `planner`, decisions leave the event loop after STRETCH_S; without one, all are made on it.
    """

    plan_s: float
    planner: "Planner | None" = None

    def of_request(self) -> "WorkLimit":
        """Return the limit for the decisions on one request."""
        if self.planner is None:
            return _limit(self.plan_s or TOTAL_S, self.plan_s or TOTAL_S)
        return _limit(STRETCH_S, TOTAL_S)

    def of_check(self) -> "WorkLimit":
        """Return the limit for one check whether a request that waits may fit now."""
        return _limit(CHECK_S, CHECK_S)

    def of_explanation(self, at_once: bool = False) -> "WorkLimit":
        """Return the limit for explaining a refusal: in steps, or `at_once`, while no other task runs."""
        return _limit(STRETCH_S, STRETCH_S if at_once else TOTAL_S)


class HardShapes:
    """The shapes of requests that took too long to decide on the event loop: the next request of one would be hard too.

    They are remembered for HARD_FOR_S.
    """

    def __init__(self) -> None:
        self._until_s: OrderedDict[Hashable, float] = OrderedDict()
        """Until when a shape counts as hard, in the order in which they were found to be."""

    def __contains__(self, request: Request) -> bool:
        return bool(self._until_s) and self._until_s.get(_shape(request), 0.0) > aio.now_s()

    def add(self, request: Request) -> None:
        """Remember the shape of a request as hard."""
        self._until_s.pop(_shape(request), None)
        self._until_s[_shape(request)] = aio.now_s() + HARD_FOR_S
        if len(self._until_s) > MAX_HARD:
            self._until_s.popitem(last=False)


def _shape(request: Request) -> Hashable:
    return request.digest() if request.members else (request.shape_key(), request.count, request.mode)


def background_limit() -> "WorkLimit":
    """Return the limit for one decision on the place of an existing claim: to move it, or to start it again."""
    return _limit(AT_ONCE_S, AT_ONCE_S)


def _limit(stretch_s: float, total_s: float) -> "WorkLimit":
    from redsched.decide.work_limit import WorkLimit  # which needs numpy

    return WorkLimit(stretch_s, total_s)


def too_hard(request: Request, hosts: int, cut: "TooMuchWork") -> TooHard:
    """Return the error for a request whose decision was abandoned, with what made it hard."""
    places, parts = request.places, _parts_of(request)
    size = f"{places} place{'s' * (places > 1)} on {hosts:,} hosts"
    most = f", each with up to {parts} groups, cells, devices and conditions" if parts else ""
    return TooHard(
        f"no host was found within {cut.spent_s:.2g} s of work for {size}{most}: {cut.doing}; "
        f"ask for {_advice(request)}, or name the zone or the hosts to search",
        TooHardFacts(doing=cut.doing, hosts=hosts, places=places, parts=parts, spent_s=round(cut.spent_s, 3)),
    )


def _parts_of(request: Request) -> int:
    """Return the number of groups, cells, devices and conditions of one place: the most of all members."""
    return max(map(_parts, [one.request for one in request.members] or [request]))


def _parts(request: Request) -> int:
    cells = len(request.numa.cells) if request.numa else 0
    conditions = (*request.labels, *request.aggregate_metadata, *request.any_of, *request.member_of)
    return len(request.groups) + cells + len(request.pci) + len(conditions) + bool(request.query)


def _advice(request: Request) -> str:
    if request.members:
        return "fewer members in one request, or members that are alike"
    if request.count > 1:
        return "fewer places in one request" + (" or fewer groups" if request.groups else "")
    return "fewer groups, or equal ones" if request.groups else "less in one request"
