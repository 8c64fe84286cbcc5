"""Plans on running cells: made in a fork, on what all cells have, reading what they need and writing nothing."""

import asyncio
import os
from dataclasses import replace
from typing import Any

import pytest

from redsched import aio
from redsched.errors import InvalidRequest, NotFound, PlannerBusy, TooHard
from redsched.model import GangMember, Hints, HostReport, Inventory, Relation, RelationType, Request
from redsched.model.records.plans import Aim, CapacityPlan, RebalancePlan
from redsched.operate.plans import live, plans as plan_service
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.questions import is_cut, is_late
from redsched.scheduler import Scheduler
from redsched.scheduler.decide_apart.planner import MAX_WAITING
from redsched.settings import Settings
from redsched.store.codec.claim_codec import counted_by
from tests.operate.plans.parts import Plans, archive, host
from tests.scheduler.conftest import report_of
from tests.scheduler.working import at_work
from tests.support.waiting import wait_until

MANY = 2200


def spoiled(copy: CellCopy) -> int:
    """Answer with the process, and leave the columns of this process filled with places."""
    for _ in range(100):
        copy.take(copy.decide(Request({"VCPU": 1})).places[0])
    return os.getpid()


async def test_a_plan_on_many_hosts_is_made_in_another_process(clean_store: str) -> None:
    """What it changes there is not seen here, and this process goes on deciding."""
    async with Scheduler.connect(clean_store, Settings(), plan_apart=True) as scheduler:
        await scheduler.init()
        store = scheduler.cells.named("c1").store
        reports = [HostReport(f"h{n:04}", {"VCPU": Inventory(8)}, lease_s=3600) for n in range(MANY)]
        for first in range(0, MANY, 100):
            batch = reports[first : first + 100]
            replies = await aio.gather(store.hosts.report(one) for one in batch)
            await aio.gather(
                store.hosts.attest(one.name, reply.epoch) for one, reply in zip(batch, replies, strict=True)
            )
        [cell] = scheduler.cells
        assert await scheduler.plans._ask(cell, spoiled) not in (os.getpid(), None)
        assert int(cell.updater.columns.claimed["VCPU"].sum()) == 0
        found = await scheduler.plans.capacity(Request({"VCPU": 3}), "host")
        assert (found.places, found.redundancy and found.redundancy.checked) == (2 * MANY, MANY)
        assert len((await scheduler.select(Request({"VCPU": 3}))).selections) == 1


async def test_cells_add_up_and_claims_stay_in_theirs(two_cells: Scheduler) -> None:
    found = await two_cells.plans.capacity(Request({"VCPU": 2}), "host")
    assert (found.places, found.classes[0].capacity) == (4 + 2 + 1, 14)
    assert found.redundancy is not None
    assert (found.redundancy.checked, found.redundancy.failing) == (3, ())
    await two_cells.select(Request({"VCPU": 4}, hosts=frozenset({"b1"})))
    plan = await two_cells.plans.without(["a1", "b1"])
    assert (plan.hosts, plan.moves, len(plan.unplaced)) == (("a1", "b1"), (), 1)
    more = await two_cells.plans.with_hosts([report_of("b3", "b", VCPU=6)], Request({"VCPU": 4}))
    assert (more.hosts, more.room and (more.room.before, more.room.after)) == (1, (0, 1))
    with pytest.raises(NotFound, match="no cell 'c9'"):
        await two_cells.plans.with_hosts([report_of("new", "c9", VCPU=6)])
    with pytest.raises(InvalidRequest, match="no hosts"):
        await two_cells.plans.with_hosts([])


async def test_what_waits_for_a_place_is_served_by_further_hosts(clean_store: str) -> None:
    """A claim that could not start, with no room elsewhere."""
    async with at_work(clean_store, 4, 2) as work:
        await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h1"})))
        await work.scheduler.select(Request({"VCPU": 4}, claim_ids=("waits",)))
        claim = await work.scheduler.claims.get("waits")
        await work.store.claims.fail("h0", "waits", claim.token, False, counted_by(claim), retry=True)
        await work.scheduler.hosts.disable("h0")
        assert (await work.scheduler.claims.get("waits")).state == "pending"
        asked = work.scheduler.plans
        none = await asked.with_hosts([report_of("small", VCPU=3)])
        assert (none.waiting, none.served) == (1, 0)
        some = await asked.with_hosts([report_of("small", VCPU=3), report_of("large", VCPU=4)])
        assert (some.waiting, some.served) == (1, 1)


async def test_what_claims_refer_to_is_read_too(scheduler: Scheduler) -> None:
    """Members of a gang on other hosts, and claims that hints name."""
    members = tuple(GangMember(name, Request({"VCPU": 1})) for name in ("db", "web"))
    apart = (Relation(RelationType.APART, ("db", "web")),)
    gang = await scheduler.select(Request(members=members, relations=apart, hosts=frozenset()))
    other = gang.selections[1]
    far = Request({"VCPU": 1}, hints=Hints(different_host=frozenset({other.claim_id or ""})), claim_ids=("far",))
    await scheduler.select(far)
    [cell] = scheduler.cells
    host = (await scheduler.claims.get("far")).host
    known = await live.read_known(cell, [host])
    assert {"far", other.claim_id} <= known.claims.keys()
    assert known.unready == known.gangs != set()
    with pytest.raises(NotFound):
        await scheduler.plans.capacity(Request({"VCPU": 1}, hints=Hints(same_host=frozenset({"nobody"}))))


async def test_only_requests_with_hints_about_claims_are_parsed(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing those of all claims would take long."""
    far = Hints(different_host=frozenset({"first"}))
    await scheduler.select(Request({"VCPU": 1}, exclude_hosts=frozenset({"h1"}), claim_ids=("first",)))
    await scheduler.select(Request({"VCPU": 1}, hints=far, claim_ids=("far",)))
    parse, parsed = live._hinted, list[str]()
    monkeypatch.setattr(live, "_hinted", lambda text: parsed.append(text) or parse(text))  # type: ignore[func-returns-value]
    [cell] = scheduler.cells
    known = await live.read_known(cell, cell.updater.columns.names())
    assert len(known.texts) == 2
    assert ["different_host" in text for text in parsed] == [True]


async def test_claims_that_changed_while_they_were_read_are_read_again(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = live._read_hosts
    rounds: list[object] = []

    async def late(*asked: object) -> None:
        await read(*asked)  # type: ignore[arg-type]
        if not rounds:
            await scheduler.select(Request({"VCPU": 1}, hosts=frozenset({"h1"}), claim_ids=("late",)))
        rounds.append(asked[2])

    monkeypatch.setattr(live, "_read_hosts", late)
    [cell] = scheduler.cells
    known = await live.read_known(cell, ["h1", "h2"])
    assert rounds == [["h1", "h2"], ["h1"]]
    assert "late" in known.claims


async def test_too_many_claims_are_refused(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_service, "MAX_LEAVING", 1)
    await scheduler.select(Request({"VCPU": 1}, count=2, hosts=frozenset({"h1"})))
    with pytest.raises(TooHard, match="more than 1 claims"):
        await scheduler.plans.drain(["h1"])


def test_an_unfinished_count_is_tried_again_with_more_time() -> None:
    fleet = Plans(archive([host("a", VCPU=8)]))
    found = fleet.capacity(Request({"VCPU": 1}), "host")
    assert not is_cut(found)
    assert is_cut(replace(found, at_least=True))
    assert found.redundancy is not None
    assert is_cut(replace(found, redundancy=replace(found.redundancy, unchecked=1)))
    assert not is_cut(replace(found, at_least=True, places=100_000))


def test_a_plan_to_be_verified_stays_cut() -> None:
    """Playing its moves again with more time would not find more."""
    cut = RebalancePlan(Aim.REQUEST, (), 0, 0, 1, is_cut=True)
    assert is_cut(cut)
    assert not is_late(cut)
    assert is_late(TooHard("late"))


async def test_claims_are_read_only_for_plans_that_may_be_made(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many at once, most are refused before, and two have read all claims."""
    read, reading, most, may_read = live.read_known, [0], [0], asyncio.Event()

    async def counted(*asked: Any) -> live.Known:
        reading[0] += 1
        most[0] = max(most[0], reading[0])
        try:
            await may_read.wait()
            return await read(*asked)
        finally:
            reading[0] -= 1

    monkeypatch.setattr(plan_service, "read_known", counted)
    asked = [asyncio.create_task(scheduler.plans.capacity(Request({"VCPU": 1}), "host")) for _ in range(20)]
    await wait_until(lambda: sum(one.done() for one in asked) >= 20 - MAX_WAITING // 2, what="most are refused")
    may_read.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    refused = [one for one in found if isinstance(one, PlannerBusy)]
    assert (len(refused), most[0]) == (20 - MAX_WAITING // 2, plan_service.WITH_ALL_CLAIMS)
    assert all(isinstance(one, (CapacityPlan, PlannerBusy)) for one in found)
