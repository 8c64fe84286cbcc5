"""What a plan is asked, as functions of a copy; and the limit on the work of answering."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from redsched.decide.scoring.demand import taken_by
from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.errors import NotFound, RedschedError, TooHard
from redsched.model import CLAIMS, Amounts, HostReport, Request
from redsched.model.records.plans import AddingPlan, CapacityPlan, LeavingPlan, RebalancePlan
from redsched.model.records.problems import TooHardFacts
from redsched.operate.plans import adding, leaving
from redsched.operate.plans.capacity import MAX_PLACES, capacity
from redsched.operate.plans.cell_copy import CellCopy
from redsched.scheduler.references import undeclared_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """How many more of a request fit; with `by`, also whether everything fits without any one host, zone or label."""

    request: Request
    by: str = ""

    def __call__(self, copy: CellCopy) -> CapacityPlan:
        """Return the answer. Raises NotFound, InvalidRequest."""
        _refuse_undeclared(copy, self.request)
        found = capacity(copy, self.request)
        return replace(found, redundancy=leaving.n_plus_one(copy, self.by)) if self.by else found


@dataclass(frozen=True, slots=True)
class LeavingQuestion:
    """Where the claims of hosts would go; `gone`: if the hosts died, else if they were drained."""

    hosts: Collection[str]
    gone: bool

    def __call__(self, copy: CellCopy) -> LeavingPlan:
        """Return the answer. Raises NotFound."""
        return (leaving.without if self.gone else leaving.drained)(copy, self.hosts)


@dataclass(frozen=True, slots=True)
class AddingQuestion:
    """What further hosts would change, in general and for a request."""

    reports: Sequence[HostReport]
    request: Request | None = None

    def __call__(self, copy: CellCopy) -> AddingPlan:
        """Return the answer. Raises NotFound, InvalidRequest."""
        if self.request is not None:
            _refuse_undeclared(copy, self.request)
        return adding.with_hosts(copy, self.reports, self.request)


def answer(source: Callable[[], CellCopy], question: Callable[[CellCopy], T], limit_s: float) -> T | RedschedError:
    """Return the answer about a new copy, or TooHard if it takes longer. Raises what the question raises."""
    copy = source()
    try:
        with WorkLimit(limit_s, limit_s).working():
            return question(copy)
    except TooMuchWork as cut:
        hosts, claims = len(copy.columns), len(copy.claims)
        return TooHard(
            f"the plan was not complete within {cut.spent_s:.2g} s of work on {hosts:,} hosts and {claims:,} claims: "
            f"{cut.doing}; plan for fewer hosts or moves, or raise the limit: `--budget` of a command, or "
            "REDSCHED_PLAN_LIMIT_S",
            TooHardFacts(doing=cut.doing, hosts=hosts, claims=claims, spent_s=round(cut.spent_s, 3)),
        )


def is_cut(found: Any) -> bool:
    """Return whether an answer would be better with more time."""
    if isinstance(found, CapacityPlan):
        is_short = found.at_least and found.places < MAX_PLACES
        return is_short or (found.redundancy is not None and found.redundancy.unchecked > 0)
    return found.is_cut if isinstance(found, RebalancePlan) else isinstance(found, TooHard)


def is_late(found: Any) -> bool:
    """Return whether there is no answer for lack of time. More time does not change what a plan to be verified has."""
    return isinstance(found, TooHard)


def times_within(limits: Amounts, used: Amounts, request: Request) -> int | None:
    """Return how often a quota allows a request beside what is used; None if it does not limit what is requested."""
    asked = {**taken_by(request), CLAIMS: request.places}
    rooms = [max(0, limit - used.get(name, 0)) // asked[name] for name, limit in limits.items() if asked.get(name)]
    return min(rooms) if rooms else None


def _refuse_undeclared(copy: CellCopy, request: Request) -> None:
    if missing := next(undeclared_in(request, copy.columns), ""):
        raise NotFound(f"{missing} is not declared: declare it first, or leave it out of the request")
