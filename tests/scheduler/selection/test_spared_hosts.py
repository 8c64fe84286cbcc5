"""At default settings, jobs of a lab leave its GPU boxes to those who need them: a whole scheduler and a store."""

import pytest

from redsched.decide.scoring import POLICIES
from redsched.model import Group, HostReport, Inventory, Request
from redsched.model.hosts import Pool
from redsched.scheduler import Scheduler
from tests.support.builders.cells import usual_settings

JOB = {"VCPU": 4, "MEMORY_MB": 8192}


async def report_lab(scheduler: Scheduler) -> None:
    """Report four boxes with four GPUs each, and twenty CI machines with room for two jobs each."""
    gpus = {f"gpu{number}": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}) for number in range(4)}
    large = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144)}
    small = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16_384)}
    # Machines first: a replica that is a moment behind knows no box without them.
    for number in range(20):
        await scheduler.hosts.report(HostReport(f"ci-{number}", small, lease_s=3600))
    for number in range(4):
        await scheduler.hosts.report(HostReport(f"box-{number}", large, lease_s=3600, pools=gpus))


@pytest.mark.parametrize("policy", POLICIES)
async def test_forty_ci_jobs_fill_the_ci_machines_before_any_gpu_box(clean_store: str, policy: str) -> None:
    async with Scheduler.connect(clean_store, usual_settings()) as scheduler:
        await scheduler.init()
        await report_lab(scheduler)

        async def hosts(request: Request, count: int) -> list[str]:
            return [(await scheduler.select(request)).selections[0].host for _ in range(count)]

        jobs = await hosts(Request(JOB, policy=policy), 40)
        assert sorted(jobs) == sorted(2 * [f"ci-{number}" for number in range(20)])
        gpu = Request(JOB, policy=policy, groups=(Group("gpu0", {"CUSTOM_GPU_MILLI": 1000}),))
        assert sorted(await hosts(gpu, 16)) == sorted(4 * [f"box-{number}" for number in range(4)])
        assert (await hosts(Request(JOB, policy=policy), 1))[0].startswith("box-")
