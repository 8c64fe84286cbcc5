"""A scheduler's own maintenance: one of several schedulers repairs the store, and each repairs its own replica."""

import pytest

from redsched.operate.maintenance import Maintenance
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.scheduler.conftest import report_all, report_of
from tests.support.builders.cells import raw_client
from tests.support.waiting import wait_until

QUIET = Settings(events_keep_s=0, check_s=0)


async def test_a_scheduler_mends_by_itself(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings(check_s=0.05)) as scheduler, raw_client(clean_store) as raw:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=8)])
        keys = scheduler.cells.named("c1").store.keys
        await raw.hset(keys.host("h1"), "claimed.VCPU", "3")

        async def repaired() -> bool:
            return bool(await raw.hget(keys.host("h1"), "claimed.VCPU") is None)

        await wait_until(repaired, what="the sum is repaired")


async def test_one_checks_the_store_and_each_its_own_replica(clean_store: str) -> None:
    """Only one of two schedulers has the duty; the other one still repairs its own replica."""
    async with (
        Scheduler.connect(clean_store, QUIET) as one,
        Scheduler.connect(clean_store, QUIET) as other,
        raw_client(clean_store) as raw,
    ):
        await one.init()
        await report_all(one, [report_of("h1", VCPU=8)])
        cells = [scheduler.cells.named("c1") for scheduler in (one, other)]
        first, second = (
            Maintenance(cell, scheduler.cells, Settings()) for cell, scheduler in zip(cells, (one, other), strict=True)
        )
        assert (await first.check()).problems == ()
        await raw.zadd(cells[0].store.keys.deadlines, {"nix": 2**50})
        await cells[1].updater.catch_up()
        cells[1].updater.columns.remove("h1")
        report = await second.check()
        assert [(found.thing, found.repaired) for found in report.problems] == [("cache h1", True)]
        assert await raw.zscore(cells[0].store.keys.deadlines, "nix") is not None
        assert [found.thing for found in (await first.check()).problems] == ["nix"]
        assert await raw.zscore(cells[0].store.keys.deadlines, "nix") is None


@pytest.mark.parametrize("setting", [{"check_s": 0.0}, {"events_keep_s": 0.0}])
async def test_upkeep_can_be_turned_off(clean_store: str, setting: dict[str, float]) -> None:
    settings = Settings(tick_s=0.01, check_s=0.01).model_copy(update=setting)
    async with Scheduler.connect(clean_store, settings) as scheduler, raw_client(clean_store) as raw:
        keys = scheduler.cells.named("c1").store.keys
        duty, off = ("record", "check") if "check_s" in setting else ("check", "record")

        async def taken() -> bool:
            return bool(await raw.exists(keys.duty(duty)))

        await wait_until(taken, what=f"{duty} is somebody's")
        assert not await raw.exists(keys.duty(off))
