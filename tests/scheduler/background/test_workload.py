"""Requests for scarce classes are counted, once each, and all schedulers of a cell weigh by the same sums."""

import pytest

from redsched.errors import NoValidHost
from redsched.model import GangMember, Group, HostReport, Inventory, Pool, Request
from redsched.model.workload import ScarceDemand, Workload
from redsched.scheduler import Scheduler
from redsched.scheduler.background.workload import WorkloadCounter
from redsched.settings import Settings
from redsched.store.commands.workload import STEP


def share(milli: int, vcpu: int = 2, **more: object) -> Request:
    return Request({"VCPU": vcpu}, groups=(Group("gpu", {"CUSTOM_GPU_MILLI": milli}),), **more)  # type: ignore[arg-type]


def counter_of(scheduler: Scheduler) -> WorkloadCounter:
    return scheduler.tasks["c1"].workload


async def sums_after(scheduler: Scheduler, missing: int) -> dict[int, float]:
    """Exchange counts, add as many empty requests as complete a step, and return the shares in the columns."""
    await counter_of(scheduler).exchange()
    await scheduler.cells.named("c1").store.workload.add(missing, Workload())
    await counter_of(scheduler).exchange()
    return dict(scheduler.cells.named("c1").updater.columns.workload.shares)


async def gpu_host(scheduler: Scheduler) -> None:
    gpus = {f"gpu{number}": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}) for number in range(2)}
    report = HostReport("g1", {"VCPU": Inventory(64), "MEMORY_MB": Inventory(4096)}, pools=gpus, lease_s=3600)
    await scheduler.hosts.report(report)
    await scheduler.explain(Request({"VCPU": 1}))


async def test_each_request_for_gpus_counts_once(scheduler: Scheduler) -> None:
    await gpu_host(scheduler)
    await scheduler.select(share(250, claim_ids=("a",)))
    await scheduler.select(share(250, claim_ids=("a",)))  # the same request again
    await scheduler.select(share(500, claim=False))
    await scheduler.select(Request({"VCPU": 1}))
    members = (GangMember("w", share(300)), GangMember("cpu", Request({"VCPU": 1})))
    await scheduler.select(Request(members=members))
    with pytest.raises(NoValidHost):
        await scheduler.select(share(1000, vcpu=100))
    assert await sums_after(scheduler, STEP - 3) == {250: 1, 300: 1, 1000: 1}
    gpus = ScarceDemand(3, {"CUSTOM_GPU_MILLI": 1550, "VCPU": 104})
    assert scheduler.cells.named("c1").updater.columns.workload.scarce == {"CUSTOM_GPU_MILLI": gpus}


async def test_every_scheduler_weighs_by_the_same_sums(scheduler: Scheduler, clean_store: str) -> None:
    """Also one that starts later, and none computes scores again for the same sums."""
    await gpu_host(scheduler)
    await scheduler.select(share(700))
    assert await sums_after(scheduler, STEP - 1) == {700: 1}
    columns = scheduler.cells.named("c1").updater.columns
    before = columns.workload
    await counter_of(scheduler).exchange()
    assert columns.workload is before
    async with Scheduler.connect(clean_store, Settings()) as other:
        assert other.cells.named("c1").updater.columns.workload.shares == {700: 1}


async def test_requests_for_other_scarce_classes_count_by_class(clean_store: str) -> None:
    settings = Settings(scarce={"FPGA": {"VCPU": 4.0}, "CUSTOM_SSD_GB": {"MEMORY_MB": 2.0}})
    async with Scheduler.connect(clean_store, settings) as scheduler:
        await scheduler.init()
        both = Request({"FPGA": 2, "CUSTOM_SSD_GB": 50, "VCPU": 9, "MEMORY_MB": 70}, count=2)
        for request in (both, Request({"VCPU": 1})):
            with pytest.raises(NoValidHost):
                await scheduler.select(request)
        assert await sums_after(scheduler, STEP - 1) == {}
        assert scheduler.cells.named("c1").updater.columns.workload.scarce == {
            "FPGA": ScarceDemand(2, {"FPGA": 4, "VCPU": 18}),
            "CUSTOM_SSD_GB": ScarceDemand(2, {"CUSTOM_SSD_GB": 100, "MEMORY_MB": 140}),
        }
