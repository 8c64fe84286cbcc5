"""Reservations under faults: their scheduler is killed, the store is wiped, and other schedulers compete."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
import redis

from redsched.errors import NoValidHost
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.scheduler.selection import reservations
from tests.scheduler.working import QUICK, Work, at_work
from tests.support.waiting import wait_until

WHOLE = Request({"VCPU": 8}, queue_timeout_s=60, reserve=True)
SMALL = Request({"VCPU": 2})

WAITS = """
import asyncio, sys
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.scheduler.selection import reservations
from redsched.settings import Settings

reservations.LEASE_S, reservations.RENEW_S = 60.0, 0.1

async def main():
    async with Scheduler.connect(sys.argv[1], Settings(tick_s=3600)) as scheduler:
        await scheduler.select(Request({"VCPU": 8}, queue_timeout_s=600, reserve=True))

asyncio.run(main())
"""


@pytest.fixture
def waiting_process(clean_store: str) -> "Iterator[list[subprocess.Popen[bytes]]]":
    """Processes that the test adds, each with a scheduler at which a request waits. They are killed at the end."""
    started = list[subprocess.Popen[bytes]]()
    yield started
    for process in started:
        kill(process)


async def fill(work: Work, requests: int) -> list[str]:
    return [(await work.scheduler.select(SMALL)).selections[0].claim_id or "" for _ in range(requests)]


def number_reserved(work: Work, number: int) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        return len(await work.store.reservations.hosts()) == number

    return found


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process, and wait until it is gone."""
    process.kill()
    process.wait()


def end_lease(url: str, work: Work) -> None:
    """Set the end of the reservation's lease back: whoever still renewed it would move it on again."""
    with redis.Redis.from_url(url, protocol=2) as client:
        client.hset(work.store.keys.host("h0"), "reservation_until_ms", 1)
        client.zadd(work.store.keys.reservations, {"h0": 1})


async def test_a_killed_scheduler_leaves_nothing_reserved(
    clean_store: str, waiting_process: "list[subprocess.Popen[bytes]]"
) -> None:
    async with at_work(clean_store, 8, settings=QUICK) as work:
        await fill(work, 1)
        waiting_process.append(await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", WAITS, clean_store]))
        await wait_until(number_reserved(work, 1), timeout=30, what="a host is reserved")
        first_end_ms = (await work.store.reservations.hosts())["h0"]

        async def is_renewed() -> bool:
            return (await work.store.reservations.hosts())["h0"] > first_end_ms

        await wait_until(is_renewed, what="the other process renews its reservation")
        with pytest.raises(NoValidHost):
            await work.scheduler.select(SMALL)
        await asyncio.to_thread(kill, waiting_process[0])
        end_lease(clean_store, work)
        await wait_until(number_reserved(work, 0), timeout=30, what="nothing is reserved")
        await fill(work, 3)


async def test_no_scheduler_gets_in_before(clean_store: str) -> None:
    """Each of three others tries to place small work all the time while the host empties."""
    async with at_work(clean_store, 8, 2, settings=QUICK) as work, AsyncExitStack() as stack:
        others = [await stack.enter_async_context(Scheduler.connect(clean_store, QUICK)) for _ in range(3)]
        ids = [
            (await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h0"})))).selections[0].claim_id or ""
            for _ in range(4)
        ]
        await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h1"})))
        waiting = asyncio.create_task(work.scheduler.select(WHOLE))
        await wait_until(number_reserved(work, 1), what="a host is reserved")
        got = list[str]()

        async def compete(scheduler: Scheduler) -> None:
            while not waiting.done():
                try:
                    got.append((await scheduler.select(SMALL)).selections[0].host)
                except NoValidHost:
                    await asyncio.sleep(0.005)

        competing = [asyncio.create_task(compete(one)) for one in others]
        for claim_id in ids:
            await work.scheduler.claims.release(claim_id)
            await work.work()
            await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            assert (await waiting).selections[0].host == "h0"
        await asyncio.gather(*competing)
        assert got == []
        await work.is_sound()


async def test_a_wiped_store_gets_the_reservation_again(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "RENEW_S", 0.05)
    async with at_work(clean_store, 8, settings=QUICK) as work:
        await work.active(SMALL)
        waiting = asyncio.create_task(work.scheduler.select(WHOLE))
        await wait_until(number_reserved(work, 1), what="a host is reserved")
        with redis.Redis.from_url(clean_store, protocol=2) as client:
            client.flushall()
        assert await work.store.reservations.hosts() == {}
        for host in work.hosts:
            await host.speak()
        await wait_until(number_reserved(work, 1), timeout=30, what="a host is reserved again")
        waiting.cancel()
        await asyncio.wait([waiting])
