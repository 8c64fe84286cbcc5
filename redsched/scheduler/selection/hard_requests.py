"""Requests that take too long to decide on the event loop: a planner proposes places for them.

What the planner proposes is claimed like any other proposal. A refusal is its own too, on columns at the head of the
feed. Shapes that were too hard are remembered for a while, as the next request of such a shape would be too.
"""

from collections import OrderedDict
from collections.abc import Hashable

from redsched import aio
from redsched.scheduler.cells import Cell
from redsched.scheduler.decide_apart.jobs import decided_apart
from redsched.scheduler.decide_apart.limits import DecisionLimits
from redsched.scheduler.selection.attempt import Proposal, SchedulingAttempt
from redsched.scheduler.selection.refusal import FoundRefusal

REMEMBERED_S = 60.0
MAX_REMEMBERED = 1000


class HardRequests:
    """The hard requests of one scheduler."""

    def __init__(self, limits: DecisionLimits) -> None:
        self._limits = limits
        self._until_s: OrderedDict[Hashable, float] = OrderedDict()
        """Until when a shape counts as hard, in the order in which they were found to be."""

    def is_known(self, attempt: SchedulingAttempt) -> bool:
        """Return whether a request, or one of its shape, was found to be hard."""
        if attempt.is_hard or not self._until_s:
            return attempt.is_hard
        attempt.is_hard = self._until_s.get(_shape(attempt), 0.0) > aio.now_s()
        return attempt.is_hard

    def note(self, attempt: SchedulingAttempt) -> None:
        """Remember that a request is hard."""
        attempt.is_hard = True
        self._until_s.pop(_shape(attempt), None)
        self._until_s[_shape(attempt)] = aio.now_s() + REMEMBERED_S
        if len(self._until_s) > MAX_REMEMBERED:
            self._until_s.popitem(last=False)

    async def propose(self, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        """Return the planner's proposal for the first of these cells that has all places, else the best one.

        Raises TooHard, PlannerBusy, Unavailable.
        """
        best: Proposal | None = None
        for cell in cells:
            proposal = await self._proposal(attempt, cell)
            if best is None or proposal.rank > best.rank:
                best = proposal
            if len(best.decision.places) >= attempt.request.places:
                break
        assert best is not None
        return best

    async def _proposal(self, attempt: SchedulingAttempt, cell: Cell) -> Proposal:
        assert self._limits.planner is not None
        planned = await decided_apart(self._limits.planner, cell, attempt.resolved, attempt.reservation)
        attempt.catch_up = True
        attempt.refusals.pop(cell.name, None)
        if planned.explanation is not None:
            attempt.refusals[cell.name] = FoundRefusal(planned.explanation, planned.settled)
        return Proposal(cell, planned.decision, planned.epoch, planned.seq)


def _shape(attempt: SchedulingAttempt) -> Hashable:
    request = attempt.resolved
    return request.digest() if request.members else (request.shape_key(), request.count, request.mode)
