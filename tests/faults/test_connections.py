"""A process uses few connections for many calls, delays no call to fill a batch, and survives cancelled callers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from redsched import pacing
from redsched.errors import OutcomeUnknown, Unavailable
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.client.script_client import ScriptClient
from redsched.store.client.scripts import load_all
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.scheduler.quotas.calls import scripts_about_claims
from tests.support.fleets.hosts import fleet
from tests.support.processes.proxy import proxy
from tests.support.processes.racers import updater_of
from tests.support.waiting import wait_until

PROMPT_S = 30.0
"""The timeout of a prompt end: far below the reply timeouts of these tests, and ample on a busy machine."""
PATIENT = Settings(reply_timeout_s=60.0, resend_for_s=60.0, select_timeout_s=60.0, catch_up_timeout_s=60.0, tick_s=600)
ONE = Request({"VCPU": 1})


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Scheduler, ScriptClient]]:
    """Yield a scheduler over one host of 100 VCPU, and its script client, once that is idle."""
    async with Store.connect(url) as store:
        await store.cell("c1").init()
        await fleet(store.cell("c1"), [100])
    async with Scheduler.connect(url, PATIENT) as scheduler:
        runner = scheduler._store.runner
        # The probe, the ticks on opening the store, and those of the first sweep; the next sweep is minutes away.
        await wait_until(lambda: runner.counters.calls >= 3 and runner.idle)
        yield scheduler, runner


@contextmanager
def paused(server: PrivateServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


def connections(server: PrivateServer, name: str) -> int:
    with redis.Redis(unix_socket_path=str(server.socket), decode_responses=True) as raw:
        return sum(client["name"] == name for client in raw.client_list())


@pytest.mark.usefixtures("clean_store")
async def test_a_hundred_at_once_share_pipelines_and_connections(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred concurrent selections use a few pipelines over one connection, and their reads at most the pool.

    They are of different consumers: those of one would share the calls of the script as well. All decisions are made in
    one turn of the loop, however long they take: how many turns they are spread over depends on the machine.
    """
    monkeypatch.setattr(pacing, "TURN_S", 3600.0)
    async with opened(server.url) as (scheduler, runner):
        pipelines = runner.counters.pipelines
        requests = [replace(ONE, consumer=f"user-{number}") for number in range(100)]
        with scripts_about_claims(scheduler) as called:
            found = await asyncio.gather(*map(scheduler.select, requests))
        assert len({one.selections[0].claim_id for one in found}) == 100
        assert called == ["claim"] * 100
        assert runner.counters.pipelines - pipelines < 10
        assert connections(server, "redsched-writer") == 1
        await asyncio.gather(*(scheduler.claims.get(str(one.selections[0].claim_id)) for one in found))
        assert connections(server, "redsched-reader") <= PATIENT.pool_size


@pytest.mark.usefixtures("clean_store")
async def test_a_lone_call_waits_for_nobody(server: PrivateServer) -> None:
    """Consecutive calls are sent one by one, each as its own pipeline."""
    async with opened(server.url) as (scheduler, runner):
        pipelines = runner.counters.pipelines
        with scripts_about_claims(scheduler) as called:
            for _ in range(10):
                await scheduler.select(ONE)
        assert called == ["claim"] * 10
        # A call of the scheduler's own, such as its first sweep on a slow machine, may share one of them.
        assert runner.counters.pipelines - pipelines >= 10


@pytest.mark.usefixtures("clean_store")
async def test_a_pipeline_heals_scripts_that_were_flushed(server: PrivateServer) -> None:
    """Scripts are flushed before fifty concurrent calls: the rejected calls are retried, and no caller notices."""
    async with opened(server.url) as (scheduler, runner):
        with redis.Redis(unix_socket_path=str(server.socket)) as raw:
            raw.script_flush()
        found = await asyncio.gather(*(scheduler.select(ONE) for _ in range(50)))
        assert len({one.selections[0].claim_id for one in found}) == 50
        assert 1 <= runner.counters.reloaded <= 2
        assert (await scheduler.hosts.get("h0")).slots["VCPU"].claimed == 50


@pytest.mark.usefixtures("clean_store")
async def test_scripts_flushed_right_after_they_were_loaded_are_loaded_again(
    server: PrivateServer, tmp_path: Path
) -> None:
    """The flush comes between the load and the call that needs it, twice: the caller does not notice."""
    flushes = 2

    def meddle(command: list[bytes]) -> bool:
        nonlocal flushes
        if command[0] == b"EVALSHA" and command[1] == load_all()["claim"].sha.encode() and flushes:
            flushes -= 1
            with redis.Redis(unix_socket_path=str(server.socket)) as raw:
                raw.script_flush()
        return False

    async with proxy(server.socket, tmp_path) as between:
        between.strikes = meddle
        async with opened(between.url) as (scheduler, runner):
            await scheduler.select(ONE)
            assert (flushes, runner.counters.reloaded) == (0, 2)


async def test_callers_that_leave_break_nobody(fresh_server: PrivateServer) -> None:
    """Half of the callers give up while the server is frozen; the other half get their claims, and all are counted."""
    async with opened(fresh_server.url) as (scheduler, runner):
        calls = runner.counters.calls
        with paused(fresh_server):
            tasks = [asyncio.create_task(scheduler.select(ONE)) for _ in range(20)]
            await wait_until(lambda: runner.counters.calls > calls)
            for task in tasks[::2]:
                task.cancel()
        left = await asyncio.gather(*tasks[::2], return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in left)
        stayed = await asyncio.gather(*tasks[1::2])
        ids = {one.selections[0].claim_id for one in stayed}
        held = {claim.claim_id for claim in (await scheduler.claims.list()).items}
        assert len(ids) == 10
        assert ids <= held
        assert (await scheduler.audit()).problems == ()
        await scheduler.select(ONE)


@pytest.mark.parametrize("lag_s", [0.0, 0.5], ids=["at-once", "with-a-poll-under-way"])
async def test_closing_ends_what_waits(fresh_server: PrivateServer, lag_s: float) -> None:
    """A scheduler that closes while its calls wait for a frozen server ends promptly, and so does every call.

    Calls that were sent report an unknown outcome. A refusal waits for the next poll if a poll is in progress, and
    otherwise for one that begins at once; neither poll gets a reply here.
    """
    calls: list[asyncio.Task[object]] = []
    async with opened(fresh_server.url) as (scheduler, runner):
        before = runner.counters.calls
        fresh_server.pause()
        calls += [asyncio.ensure_future(scheduler.select(ONE)) for _ in range(5)]
        await wait_until(lambda: runner.counters.calls > before)
        updater = updater_of(scheduler)
        await wait_until(lambda: (updater.lag_s() or 0.0) >= lag_s, what="a poll has begun that is not answered")
        calls.append(asyncio.ensure_future(scheduler.select(Request({"VCPU": 1000}))))
        await wait_until(lambda: updater._reading or bool(updater._waiting), what="the refusal waits for a poll")
        closing = asyncio.timeout(PROMPT_S)
        await closing.__aenter__()
    await closing.__aexit__(None, None, None)
    async with asyncio.timeout(PROMPT_S):
        answers = await asyncio.gather(*calls, return_exceptions=True)
    fresh_server.resume()
    assert all(isinstance(one, Unavailable) for one in answers), answers
    assert any(isinstance(one, OutcomeUnknown) and one.facts.claim_ids for one in answers)
