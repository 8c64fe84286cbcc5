"""Waiting for capacity: a queued request is placed when some is freed, tried once, and refused at its timeout."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest

from redsched.errors import NoValidHost
from redsched.model import ReasonCount, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cells
from redsched.scheduler.results import Effort
from redsched.scheduler.selection.wait_queue import WaitQueue
from redsched.store.codec.replies import ClaimCall, ClaimReply
from tests.scheduler.conftest import report_of
from tests.support.waiting import patience_s, wait_until

ALL_OF_H1 = Request({"VCPU": 8}, queue_timeout_s=60)


def waiting(scheduler: Scheduler) -> int:
    return len(scheduler._selector._wait_queue._waiters)


async def start(scheduler: Scheduler, *requests: Request) -> "list[asyncio.Task[str]]":
    """Start requests that do not fit now, and return their tasks when all of them are queued."""

    async def select(request: Request) -> str:
        return (await scheduler.select(request)).selections[0].claim_id or ""

    tasks = [asyncio.create_task(select(request)) for request in requests]
    await wait_until(lambda: waiting(scheduler) == len(tasks), what="all wait")
    return tasks


async def test_a_request_waits_for_room(scheduler: Scheduler, efforts: list[Effort]) -> None:
    """Released capacity is claimed for it; only its final outcome is counted."""
    first = (await scheduler.select(ALL_OF_H1)).selections[0].claim_id or ""
    [task] = await start(scheduler, ALL_OF_H1)
    await scheduler.claims.release(first)
    async with asyncio.timeout(patience_s(30)):
        assert (await scheduler.claims.get(await task)).host == "h1"
    assert waiting(scheduler) == 0
    assert [one.outcome for one in efforts] == ["claimed", "claimed"]


async def test_the_refusal_comes_when_the_time_is_up(scheduler: Scheduler) -> None:
    """It gives the reasons that an immediate refusal would give."""
    with pytest.raises(NoValidHost) as refused:
        await scheduler.select(Request({"VCPU": 9}, queue_timeout_s=1))
    assert refused.value.facts.reasons == (ReasonCount("VCPU", 3),)
    assert waiting(scheduler) == 0


@pytest.mark.parametrize("what", ["report", "enable"])
async def test_any_news_may_be_room(scheduler: Scheduler, what: str) -> None:
    """Released claims are not the only source: a host may be added or enabled again."""
    await scheduler.hosts.disable("h1")
    [task] = await start(scheduler, ALL_OF_H1)
    if what == "report":
        await scheduler.hosts.report(report_of("h9", VCPU=8))
    else:
        await scheduler.hosts.enable("h1")
    async with asyncio.timeout(patience_s(30)):
        assert (await scheduler.claims.get(await task)).host == ("h9" if what == "report" else "h1")


async def test_one_place_that_comes_free_is_tried_for_once(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twenty queued requests the first is placed, and no other one calls the store."""
    first = (await scheduler.select(ALL_OF_H1)).selections[0].claim_id or ""
    tasks = await start(
        scheduler, *(Request({"VCPU": 8}, queue_timeout_s=60, consumer=f"c{number}") for number in range(20))
    )
    store, calls = scheduler.cells.named("c1").store, []
    claim = store.claims.place

    async def counted(call: ClaimCall) -> ClaimReply:
        calls.append(call.carried["consumer"])
        return await claim(call)

    monkeypatch.setattr(store.claims, "place", counted)
    await scheduler.claims.release(first)
    async with asyncio.timeout(patience_s(30)):
        got = await tasks[0]
    await scheduler.hosts.drain("h3")
    await scheduler.cells.catch_up()
    assert calls == ["c0"]
    assert not any(task.done() for task in tasks[1:])
    await scheduler.claims.release(got)
    async with asyncio.timeout(patience_s(30)):
        await tasks[1]
    for task in tasks[2:]:
        task.cancel()
    await asyncio.wait(tasks[2:])
    assert (calls, waiting(scheduler)) == (["c0", "c1"], 0)


class Feed:
    """Stands for the updater of a cell whose columns never change by themselves."""

    epoch, seq = "1790000000000-a", 0

    async def moved(self) -> bool:
        return await asyncio.Event().wait()


async def test_room_that_appears_during_a_walk_goes_to_the_first() -> None:
    """The third request is the first to see the room, because the others were looked at before."""
    feed, room, got = Feed(), 0, list[int]()
    queue = WaitQueue(cast(Cells, [SimpleNamespace(updater=feed)]))
    walking = asyncio.Event()

    def may_fit(number: int) -> bool:
        nonlocal room
        if number == 2 and feed.seq == 0:
            room, feed.seq = 1, 1
        return room > 0

    async def attempt(number: int) -> int:
        nonlocal room
        room -= 1
        got.append(number)
        walking.set()
        return number

    waits = [
        queue.place(partial(attempt, number), partial(may_fit, number), 60, NoValidHost("no room"))
        for number in range(4)
    ]
    tasks = [asyncio.ensure_future(one) for one in waits]
    async with asyncio.timeout(patience_s(30)):
        await walking.wait()
    assert got == [0]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await queue.stop()


async def test_who_goes_away_leaves_the_line(scheduler: Scheduler) -> None:
    await scheduler.select(ALL_OF_H1)
    [task] = await start(scheduler, ALL_OF_H1)
    task.cancel()
    await asyncio.wait([task])
    assert waiting(scheduler) == 0
