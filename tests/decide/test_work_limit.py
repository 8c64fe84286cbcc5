"""Deciding is abandoned at its limit of work, leaves no trace then, and tells garbage collections apart."""

from itertools import count
from random import Random

import pytest

from benchmarks.constraint_cases import CASES
from benchmarks.fleet_of_pools import SHARES, make_cell, make_counts, make_fleet
from redsched.cache.columns import Columns
from redsched.decide import work_limit
from redsched.decide.decider import Decider
from redsched.decide.steps import Steps, finished
from redsched.decide.work_limit import TooMuchWork, WorkLimit, within
from redsched.model import GangMember, Group, Relation, RelationType, Request
from redsched.scheduler.decide_apart.limits import DecisionLimits
from redsched.settings import Settings

pytestmark = pytest.mark.heavy

SMALL = {"VCPU": 1, "MEMORY_MB": 256}
HARD = Request(
    groups=tuple(Group(f"g{n}", {SHARES: 101 + 7 * n}) for n in range(17)),
    group_policy="none",
    count=200,
    mode="incremental",
)
GANGS = {
    "count: 200": Request(SMALL, count=200),
    "200 alike": Request(members=(GangMember("m", Request(SMALL, count=200)),)),
    "200 members": Request(members=tuple(GangMember(f"m{n}", Request({"VCPU": 1 + n % 9})) for n in range(200))),
    "200 apart": Request(
        members=(GangMember("m", Request(SMALL, count=200)),),
        relations=(Relation(RelationType.APART, ("m",)),),
    ),
}


@pytest.fixture(scope="module")
def columns() -> Columns:
    rng = Random(300)
    fleet = make_fleet(300, rng)
    return make_cell(fleet, make_counts(fleet, rng))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each check of the limit take a second, on any machine."""
    ticks = count()
    monkeypatch.setattr(work_limit, "clock", lambda: float(next(ticks)))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("most", [1, 3, 10, 30, 100, 300])
@pytest.mark.parametrize("name", ["hard", *GANGS, *(case.name for case in CASES)])
def test_an_abandoned_decision_leaves_no_trace(columns: Columns, name: str, most: int) -> None:
    """Wherever it was abandoned, the columns are as before, and the next decision is that of a new decider."""
    request = {"hard": HARD, **GANGS, **{case.name: case.request(0) for case in CASES}}[name]
    decider = Decider(columns, Settings())
    claimed = {slot: columns.claimed[slot].copy() for slot in ("VCPU", f"gpu0/{SHARES}")}
    try:
        with WorkLimit(most, most).working():
            decider.decide(request, Random(1))
    except TooMuchWork:
        assert columns.tentative == 0
        assert all((columns.claimed[slot] == before).all() for slot, before in claimed.items())
    small = CASES[0].request(0) if name == "hard" else request
    assert decider.decide(small, Random(2)) == Decider(columns, Settings()).decide(small, Random(2))


@pytest.mark.parametrize("name", [*GANGS, *(case.name for case in CASES)])
def test_ordinary_requests_are_never_too_hard(columns: Columns, name: str) -> None:
    """Also where there is no planner."""
    request = {**GANGS, **{case.name: case.request(0) for case in CASES}}[name]
    limit = DecisionLimits(Settings().plan_limit_s).of_request()
    with limit.working():
        assert Decider(columns, Settings()).decide(request, Random(1)).places


def test_the_limit_names_the_place(columns: Columns) -> None:
    with pytest.raises(TooMuchWork, match=r"for place \d+ of 200"), WorkLimit(0.05, 0.05).working():
        Decider(columns, Settings()).decide(HARD, Random(1))


@pytest.mark.usefixtures("steps")
def test_stretches_add_up() -> None:
    """Each stretch has its own limit, and all together have another one."""
    limit = WorkLimit(5, 12)

    def checks() -> Steps[None]:
        while True:
            work_limit.check_work("counting")
            yield

    with pytest.raises(TooMuchWork, match="counting"):
        finished(within(limit, checks()))
    assert 12 <= limit.spent_s < 20


@pytest.mark.usefixtures("steps")
def test_collections_do_not_count() -> None:
    """A collection is due to all requests, not to the one during which it happens."""
    limit = WorkLimit(10, 10)
    with limit.working():
        work_limit._collections.on_phase("start", {})
        for _ in range(50):
            work_limit.clock()
        work_limit._collections.on_phase("stop", {})
        work_limit.check_work("counting")


def test_without_a_limit_nothing_is_limited() -> None:
    work_limit.check_work("counting")


def test_an_explanation_is_cut_short(columns: Columns) -> None:
    """Once the counts are known, the limit only ends the search for what would help."""
    request = Request({"VCPU": 10_000}, groups=(Group("g", {SHARES: 2000}),))
    steps = Decider(columns, Settings()).refusal_steps(request, 16)
    next(steps)
    found = finished(within(WorkLimit(0, 0), steps))
    assert found.cut_short
    assert found.reasons
    assert [one.changes for one in found.nearest] == [()] * len(found.nearest)
