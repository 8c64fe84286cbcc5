"""What a planner is asked to do: decide on a request in one cell, or explain one. Runs in a fork, without the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from redsched.decide.reserving import usable
from redsched.decide.result import Decision
from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.errors import RedschedError, TooHard
from redsched.model import Request
from redsched.model.records.explanations import Explanation
from redsched.scheduler.cells import Cell
from redsched.scheduler.decide_apart.limits import too_hard
from redsched.scheduler.selection.refusal import PendingRefusal

if TYPE_CHECKING:
    from redsched.scheduler.decide_apart.planner import Planner


@dataclass(frozen=True, slots=True)
class Planned:
    """A planner's decision, with the epoch and seq of its columns; without places, why there are none."""

    decision: Decision
    epoch: str
    seq: int
    settled: bool
    explanation: Explanation | None


async def decided_apart(planner: "Planner", cell: Cell, request: Request, reservation: str = "") -> Planned:
    """Return a planner's decision on a request in one cell, on columns at the head of its feed.

    `reservation`: that of the request, if hosts are reserved for it.

    Raises TooHard, PlannerBusy, Unavailable, InvalidRequest.
    """
    job = partial(_decide, cell, request, cell.updater.now_ms(), reservation)
    found: Planned = await planner.run(job, request.project, cell.read_at_head, _is_cut)
    return found


async def explained_apart(planner: "Planner", cell: Cell, request: Request, hosts: Sequence[str]) -> Explanation:
    """Return a planner's explanation of a request in one cell. Raises as `decided_apart` does."""
    job = partial(_explain, cell, request, hosts)
    found: Explanation = await planner.run(job, request.project, cell.read_at_head, _is_cut)
    return found


def _is_cut(found: object) -> bool:
    return isinstance(found, TooHard)


def _decide(cell: Cell, request: Request, now_ms: int, reservation: str, limit_s: float) -> Planned | RedschedError:
    updater, limit = cell.updater, WorkLimit(limit_s, limit_s)
    try:
        with limit.working(), usable(updater.columns, request, now_ms, reservation):
            decision = cell.decider.decide(request, Random())
    except TooMuchWork as cut:
        return too_hard(request, len(updater.columns), cut)
    why = None
    if not decision.places:
        why = PendingRefusal(cell, request, limit, decision.reasons).found_at_once()
    return Planned(decision, updater.epoch, updater.seq, updater.settled, why)


def _explain(cell: Cell, request: Request, hosts: Sequence[str], limit_s: float) -> Explanation | RedschedError:
    try:
        with WorkLimit(limit_s, limit_s).working():
            return cell.decider.explain(request, *hosts)
    except TooMuchWork as cut:
        return too_hard(request, len(cell.updater.columns), cut)
