"""Every fork ends with the call that began it, also one whose result nobody got."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
import redis

from redsched.errors import Unavailable
from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.decide_apart.planner import Forked, Planner
from redsched.settings import Settings
from tests.support.builders.cells import usual_settings
from tests.support.waiting import wait_until

HOST = HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600)


def check_ended(one: Planner, begun: list[Forked]) -> None:
    """Check that forks have ended, and that nothing is left of them."""
    assert one.pids == []
    for forked in begun:
        with pytest.raises(ChildProcessError):
            os.waitpid(forked.pid, os.WNOHANG)
        assert forked._pipe.closed


async def test_a_fork_that_is_made_twice_ends_twice() -> None:
    begun = list[Forked]()

    async def fork(begin: Callable[[], Forked]) -> Forked:
        begun.extend((begin(), begin()))
        return begun[-1]

    one = Planner(30.0)
    assert await one.run(lambda _limit_s: "done", "", fork, lambda _found: False) == "done"
    await wait_until(lambda: begun[-1]._pipe.closed, what="the loop has closed the pipe that was read")
    check_ended(one, begun)


async def test_a_fork_whose_caller_was_cancelled_meanwhile_ends() -> None:
    begun = list[Forked]()

    async def fork(begin: Callable[[], Forked]) -> Forked:
        begun.append(begin())
        await asyncio.Event().wait()
        return begun[0]

    one = Planner(30.0)
    running = asyncio.create_task(one.run(lambda _limit_s: None, "", fork, lambda _found: False))
    await wait_until(lambda: bool(begun), what="it is forked")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    check_ended(one, begun)


async def test_a_fork_that_is_stopped_before_its_caller_gets_it_is_an_error_to_try_again() -> None:
    one, begun = Planner(30.0), list[Forked]()

    async def fork(begin: Callable[[], Forked]) -> Forked:
        begun.append(begin())
        await one.stop()
        return begun[0]

    with pytest.raises(Unavailable):
        await one.run(lambda _limit_s: None, "", fork, lambda _found: False)
    check_ended(one, begun)


@pytest.mark.parametrize("read_only", [False, True])
async def test_columns_are_read_once_where_a_claim_is_overdue(clean_store: str, read_only: bool) -> None:
    """A reader leaves the claim as it is, and reads all the same."""
    async with Scheduler.connect(clean_store, usual_settings()) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HOST)
        await scheduler.select(Request({"VCPU": 1}, claim_ids=("overdue",), lease_s=3600))
    with redis.Redis.from_url(clean_store, protocol=2) as raw:
        raw.hset("rs:{c1}:claim:overdue", "expires_at_ms", 1)
        raw.zadd("rs:{c1}:deadlines", {"overdue": 1})
    settings = Settings(redis_url=clean_store, tick_s=3600)
    async with Scheduler.connect(clean_store, settings, on_demand=True, read_only=read_only) as scheduler:
        [cell] = scheduler.cells
        seen = list[Any]()
        await cell.read_at_head(lambda: seen.append(int(cell.updater.columns.claimed["VCPU"].sum())))
        assert seen == [1 if read_only else 0]
