"""Capacity that shrank under claims: a problem of the status, an event, and a figure of the metrics."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from redsched.cache.fleet import fleet_steps
from redsched.decide.steps import finished
from redsched.model import HostReport, Inventory, Pool, Request, SharedPool
from redsched.model.records.status import StatusProblem
from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import new_epoch

KIND = "over-capacity"
GPU = "CUSTOM_GPU_MILLI"
SEAT = "CUSTOM_SEAT"


@pytest.fixture
async def work(clean_store: str) -> AsyncIterator[Work]:
    """Yield hosts h0 and h1 with 8 VCPU each, and the claim `web` with 6 of them on h0."""
    async with at_work(clean_store, 8, 8) as found:
        await found.active(Request({"VCPU": 6}, hosts=frozenset({"h0"}), claim_ids=("web",)))
        yield found


async def report(work: Work, host: int, report: HostReport) -> None:
    """Let a host report something else than before."""
    work.hosts[host].report = replace(report, name=f"h{host}", lease_s=3600)
    await work.hosts[host].speak()


async def over(work: Work) -> list[StatusProblem]:
    """Return the problems of this kind in the status."""
    return [one for one in (await work.scheduler.status()).problems if one.kind.endswith(KIND)]


async def figures(work: Work) -> tuple[int, int]:
    """Return how many hosts and shared pools are over their capacity, by the metrics."""
    await work.scheduler.cells.catch_up()
    usage = finished(fleet_steps(work.scheduler.cells.named("c1").updater.columns))
    return usage.over_capacity, usage.pools_over_capacity


async def events(work: Work) -> list[tuple[str, str]]:
    """Return host or pool, and reason, of each event of this kind."""
    await Recorder(work.store, Settings()).record()
    found = [one.facts for one in await work.scheduler.events.newest() if one.kind == KIND]
    return [(one.get("host") or one["thing"], one["reason"]) for one in found]


async def test_a_host_that_shrank_under_its_claims_is_a_problem_until_they_fit_again(work: Work) -> None:
    await report(work, 0, HostReport("h0", {"VCPU": Inventory(4)}))
    [problem] = await over(work)
    assert problem.detail == (
        "1 host has less than its claims hold, and may not be able to run them: h0 (VCPU: 6 claimed of 4)"
    )
    assert (problem.kind, problem.cell, problem.about, problem.count) == (KIND, "c1", ("h0",), 1)
    assert problem.commands == ("redsched host show h0",)
    assert await figures(work) == (1, 0)
    await report(work, 0, HostReport("h0", {"VCPU": Inventory(6)}))
    assert (await over(work), await figures(work)) == ([], (0, 0))
    await work.is_sound()


async def test_it_is_over_as_soon_as_the_claims_have_ended(work: Work) -> None:
    """The host need not report again for that."""
    await report(work, 0, HostReport("h0", {"VCPU": Inventory(4)}))
    await work.scheduler.claims.release("web")
    await work.work()
    assert (await over(work), await figures(work)) == ([], (0, 0))


async def test_each_time_is_one_event_with_what_is_missing(work: Work) -> None:
    """Reports that change nothing about it, and less and less capacity, are none."""
    for total in (4, 4, 3):
        await report(work, 0, HostReport("h0", {"VCPU": Inventory(total)}))
    assert await events(work) == [("h0", "VCPU: 6 claimed of 4")]
    for total in (8, 2):
        await report(work, 0, HostReport("h0", {"VCPU": Inventory(total)}))
    assert await events(work) == [("h0", "VCPU: 6 claimed of 4"), ("h0", "VCPU: 6 claimed of 2")]


async def test_a_device_that_is_gone_has_no_capacity_left(work: Work) -> None:
    with_gpu = HostReport("h1", {"VCPU": Inventory(8)}, pools={"gpu0": Pool({GPU: Inventory(1000)})})
    await report(work, 1, with_gpu)
    await work.active(Request({"VCPU": 1, GPU: 500}, claim_ids=("train",)), 1)
    await report(work, 1, HostReport("h1", {"VCPU": Inventory(8)}))
    [problem] = await over(work)
    assert problem.detail.endswith(f": h1 (gpu0/{GPU}: 500 claimed of 0)")
    assert await events(work) == [("h1", f"gpu0/{GPU}: 500 claimed of 0")]
    assert await figures(work) == (1, 0)


async def test_so_is_a_host_that_attests_more_than_it_has_and_one_that_runs_more(work: Work) -> None:
    await new_epoch(work.store)
    await report(work, 0, HostReport("h0", {"VCPU": Inventory(4)}))
    await report(work, 1, HostReport("h1", {"VCPU": Inventory(8)}))
    await work.store.claims.report_local("h1", "console", {"VCPU": 9})
    [problem] = await over(work)
    assert problem.about == ("h0", "h1")
    assert await events(work) == [("h0", "VCPU: 6 claimed of 4"), ("h1", "VCPU: 9 claimed of 8")]
    assert (await figures(work))[0] == 2


async def test_a_shared_pool_that_was_declared_smaller_is_one_too(work: Work) -> None:
    await work.store.declared.put_pool(SharedPool("lic", {SEAT: Inventory(10)}))
    await work.scheduler.cells.catch_up()
    await work.active(Request({"VCPU": 1, SEAT: 6}, hosts=frozenset({"h1"}), claim_ids=("cad",)), 1)
    await work.store.declared.put_pool(SharedPool("lic", {SEAT: Inventory(5)}))
    [problem] = await over(work)
    assert (problem.kind, problem.about) == (f"pool-{KIND}", ("lic",))
    assert problem.detail == f"1 shared pool has less than its claims hold: lic ({SEAT}: 6 claimed of 5)"
    assert problem.commands == ("redsched shared-pool show lic",)
    assert await events(work) == [("pool:lic", f"{SEAT}: 6 claimed of 5")]
    assert await figures(work) == (0, 1)


async def test_a_host_that_was_written_off_is_none(work: Work) -> None:
    """Its claims are a problem of another kind."""
    await report(work, 0, HostReport("h0", {"VCPU": Inventory(4)}))
    await work.store.hosts.write_off("h0", force=True)
    assert (await over(work), await figures(work)) == ([], (0, 0))


async def test_what_can_never_be_claimed_is_a_problem_and_a_warning_of_the_answer(work: Work) -> None:
    given = HostReport("h7", {"VCPU": Inventory(8, reserved=9)}, lease_s=3600)
    answer = await work.scheduler.hosts.report(given)
    assert answer.warnings == ("VCPU: reserved 9 is above total 8",)
    await work.store.declared.put_pool(SharedPool("lic", {SEAT: Inventory(10, min_unit=20)}))
    pool = await work.scheduler.shared_pools.get("lic")
    assert [one.partition(":")[0] for one in pool.warnings] == [SEAT]
    found = [one for one in (await work.scheduler.status()).problems if one.kind.endswith("unusable")]
    assert [(one.kind, one.about) for one in found] == [("unusable", ("h7",)), ("pool-unusable", ("lic",))]
    detail = "of 1 host, nothing of some inventory can ever be claimed: h7 (VCPU: reserved 9 is above total 8)"
    assert found[0].detail == detail
    assert f"lic ({SEAT}: the smallest amount" in found[1].detail
    answer = await work.scheduler.hosts.report(replace(given, inventories={"VCPU": Inventory(8)}))
    await work.store.declared.put_pool(SharedPool("lic", {SEAT: Inventory(10)}))
    assert (answer.warnings, list((await work.scheduler.status()).problems)) == ((), [])
