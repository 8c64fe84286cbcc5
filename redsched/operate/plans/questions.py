"""What a plan is asked, as functions of a copy; and the limit on the work of answering."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from redsched.decide.scoring.demand import taken_by
from redsched.decide.work_limit import TooMuchWork, WorkLimit, check_work
from redsched.errors import Conflict, InvalidRequest, NotFound, RedschedError, TooHard
from redsched.model import CLAIMS, Amounts, HostReport, HostStatus, Request
from redsched.model.records.plans import AddingPlan, CapacityPlan, ClassAmounts, LeavingPlan, RebalancePlan, Room
from redsched.model.records.problems import TooHardFacts
from redsched.operate.plans import leaving
from redsched.operate.plans.capacity import MAX_PLACES, capacity
from redsched.operate.plans.cell_copy import CellCopy, free_by_class
from redsched.operate.plans.relocation import Relocation
from redsched.scheduler.references import undeclared_in
from redsched.store.codec.fields import attribute_fields, host_fields

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
        return with_hosts(copy, self.reports, self.request)


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


def with_hosts(copy: CellCopy, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
    """Return what these hosts, empty and enabled, would change. Raises InvalidRequest, TooMuchWork."""
    known = [one.name for one in reports if one.name in copy.columns]
    if known:
        raise InvalidRequest(
            f"host {known[0]!r} is in cell {copy.cell} already: give the hosts to be added names of their own"
        )
    before = free_by_class(copy.columns)
    first = capacity(copy, request) if request is not None else None
    served_before = _served(copy)
    with copy.trial():
        for report in reports:
            copy.add(report.name, new_host_fields(report, copy.columns.epoch))
        after = free_by_class(copy.columns)
        then = capacity(copy, request) if request is not None else None
        served = _served(copy)
    classes = tuple(ClassAmounts(one, after[one][0], before.get(one, (0, 0))[1], after[one][1]) for one in after)
    room = Room(first.places, then.places, first.at_least or then.at_least) if first and then else None
    return AddingPlan(len(reports), classes, len(copy.pending()) - served_before, served - served_before, room)


def _served(copy: CellCopy) -> int:
    """Return how many of the claims that wait for a place would get one, in order."""
    served = 0
    with copy.trial():
        for claim in copy.pending():
            check_work("placing what waits")
            try:
                Relocation(copy).move(claim)
            except (Conflict, NotFound):
                continue
            served += 1
    return served


def new_host_fields(report: HostReport, epoch: str) -> dict[str, str]:
    """Return all fields of a host that is up and enabled, and has attested to this epoch, without claims."""
    fields = {"version": "1", "epoch": epoch, "status": HostStatus.ENABLED.value, "alive": "1"}
    return {**host_fields(report), **attribute_fields(report), **fields}
