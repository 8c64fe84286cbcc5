"""Decisions that take too long are made in a fork: claimed like others, true refusals, bounded, and ended in time."""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redsched import origin
from redsched.errors import NoValidHost, PlannerBusy, TooHard, Unavailable
from redsched.model import GangMember, HostReport, Inventory, Pool, ReasonCount, Request
from redsched.origin import Origin
from redsched.scheduler import Scheduler
from redsched.scheduler.decide_apart import limits, planner
from redsched.scheduler.decide_apart.planner import Forked, Planner
from redsched.settings import Settings
from tests.scheduler.conftest import report_all
from tests.support.waiting import wait_until

GANG = Request(members=tuple(GangMember(f"m{n}", Request({"VCPU": 1 + n % 3})) for n in range(20)))


@pytest.fixture(autouse=True)
def all_is_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no decision on more than one place end on the event loop."""
    monkeypatch.setattr(limits, "STRETCH_S", 0.0)


@pytest.fixture
async def apart(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler with a planner, over ten hosts of 8 VCPU."""
    async with Scheduler.connect(clean_store, Settings(plan_limit_s=30.0), plan_apart=True) as opened:
        await opened.init()
        pools = {f"p{n}": Pool(inventories={"CUSTOM_A": Inventory(1000)}) for n in range(2)}
        await report_all(
            opened,
            [HostReport(f"h{n}", {"VCPU": Inventory(8)}, pools=pools, lease_s=3600) for n in range(10)],
        )
        yield opened


def planner_of(scheduler: Scheduler) -> Planner:
    found = scheduler._limits.planner
    assert found is not None
    return found


def as_fork(work: Any) -> Any:
    """Return a function that forks at once."""

    async def fork(start: Any) -> Forked:
        forked: Forked = start()
        return forked

    return fork


async def run(one: Planner, job: Any, project: str = "") -> Any:
    return await one.run(job, project, as_fork(job), lambda _found: False)


async def test_what_a_fork_proposes_is_claimed(apart: Scheduler) -> None:
    """And nothing of the decision is left in the columns of the scheduler."""
    found = await apart.select(GANG)
    assert len(found.selections) == 20
    assert len({one.claim_id for one in found.selections}) == 20
    [cell] = apart.cells
    await apart.cells.catch_up()
    assert cell.updater.columns.tentative == 0
    assert int(cell.updater.columns.claimed["VCPU"].sum()) == sum(1 + n % 3 for n in range(20))
    assert planner_of(apart).pids == []


async def test_a_refusal_has_its_reasons(apart: Scheduler) -> None:
    with pytest.raises(NoValidHost) as refused:
        await apart.select(Request({"VCPU": 5}, count=11))
    assert refused.value.facts.reasons == (ReasonCount("count", 10),)


async def test_room_that_was_just_released_is_seen(apart: Scheduler) -> None:
    full = await apart.select(Request({"VCPU": 8}, count=10))
    await apart.claims.release(full.selections[0].claim_id or "")
    assert len((await apart.select(Request({"VCPU": 4}, count=2))).selections) == 2


async def test_short_work_uses_what_is_kept_for_requests_that_wait_longer(apart: Scheduler) -> None:
    """A fork has no clock of its own."""
    [cell] = apart.cells
    for n in range(10):
        await cell.store.reservations.put(f"h{n}", "other", {"VCPU": 8}, 3_600_000, 3_600_000, 10)
    with pytest.raises(NoValidHost):
        await apart.select(Request({"VCPU": 8}, count=10))
    found = await apart.select(Request({"VCPU": 8}, count=10, max_runtime_s=60))
    assert len(found.selections) == 10


async def test_explanations_are_made_apart_too(apart: Scheduler) -> None:
    found = await apart.explain(GANG, "h3")
    assert (found.hosts, [one.host for one in found.checks]) == (10, ["h3"])


async def test_what_takes_longer_is_too_hard(apart: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what made it hard. Ids that have an outcome keep it."""
    monkeypatch.setattr(planner_of(apart), "_limit_s", 0.0)
    with pytest.raises(TooHard, match=r"20 places on 10 hosts: .*; ask for fewer members") as refused:
        await apart.select(GANG)
    assert refused.value.facts.places == 20
    assert refused.value.facts.hosts == 10


async def test_without_a_planner_the_limit_is_the_same(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOTAL_S", 0.0)
    async with Scheduler.connect(clean_store, Settings(plan_limit_s=0.0)) as scheduler:
        await scheduler.init()
        await report_all_small(scheduler)
        with pytest.raises(TooHard):
            await scheduler.select(GANG)
    async with Scheduler.connect(clean_store, Settings()) as scheduler:
        assert len((await scheduler.select(GANG)).selections) == 20


async def report_all_small(scheduler: Scheduler) -> None:
    for n in range(10):
        await scheduler.hosts.report(HostReport(f"h{n}", {"VCPU": Inventory(8)}, lease_s=3600))


async def test_a_fork_that_dies_fails_its_job_alone() -> None:
    one = Planner(5.0)
    with pytest.raises(Unavailable, match="has ended"):
        await run(one, lambda _limit_s: os._exit(3))
    assert await run(one, lambda limit_s: ("done", limit_s)) == ("done", planner.QUICK_S)
    assert one.pids == []


async def test_a_defect_in_a_job_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def job(_: float) -> None:
        raise KeyError("no such column")

    with pytest.raises(Unavailable):
        await run(Planner(2.0), job)
    assert "KeyError: 'no such column'" in capfd.readouterr().err


async def test_a_result_that_nobody_waits_for_is_dropped_quietly(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped, reading = tmp_path / "dropped", asyncio.Event()
    connect = asyncio.get_running_loop().connect_read_pipe

    async def connected(*arguments: Any) -> Any:
        pipe = await connect(*arguments)
        reading.set()
        return pipe

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_read_pipe", connected)

    def job(_: float) -> None:
        while not dropped.exists():
            time.sleep(0.01)

    forked = Forked(job, 2.0)
    waiting = asyncio.create_task(forked.result())
    await reading.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0)  # its pipe is closed
    dropped.touch()
    await asyncio.to_thread(os.waitpid, forked.pid, 0)
    assert capfd.readouterr().err == ""


async def test_a_system_without_room_for_a_fork_refuses_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Unavailable, match="no process could be started"):
        await run(Planner(2.0), lambda _: None)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_what_needs_more_gets_all_of_the_limit() -> None:
    """First all get a second; the result of that says whether it was enough."""
    one = Planner(5.0)
    found = await one.run(lambda limit_s: limit_s, "", as_fork(None), lambda found: found < 5)
    assert found == 5.0


async def test_a_caller_with_many_projects_has_half_of_the_places() -> None:
    one, half = Planner(5.0), planner.MAX_WAITING // 2
    entered = origin.enter(Origin("greedy"))
    tasks = [asyncio.create_task(run(one, _for_ever, f"p{number}")) for number in range(half)]
    await wait_until(lambda: one._jobs.total() == half, what="all have come")
    with pytest.raises(PlannerBusy):
        await run(one, _for_ever, "another")
    origin.leave(entered)
    entered = origin.enter(Origin("modest"))
    tasks.append(asyncio.create_task(run(one, _for_ever, "another")))
    await wait_until(lambda: one._jobs.total() == half + 1, what="that of another caller has come")
    origin.leave(entered)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (one.pids, one._jobs) == ([], {})


async def test_few_may_wait() -> None:
    """And a project has half of the places."""
    one, half = Planner(5.0), planner.MAX_WAITING // 2
    tasks = [asyncio.create_task(run(one, _for_ever, project)) for project in ("a", "b") for _ in range(half)]
    await wait_until(lambda: one._jobs.total() == len(tasks), what="all have come")
    with pytest.raises(PlannerBusy):
        await run(one, _for_ever, "c")
    tasks[-1].cancel()
    await asyncio.wait(tasks[-1:])
    with pytest.raises(PlannerBusy):
        await run(one, _for_ever, "a")
    assert len(one.pids) <= 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (one.pids, one._jobs.total()) == ([], 0)


def _for_ever(_limit_s: float) -> None:
    while True:
        os.getpid()


async def test_stopping_ends_a_fork() -> None:
    one = Planner(5.0)
    task = asyncio.create_task(run(one, _for_ever))
    await wait_until(lambda: bool(one.pids), what="it has forked")
    [pid] = one.pids
    await one.stop()
    with pytest.raises(Unavailable):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
