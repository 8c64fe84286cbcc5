"""Where a reader of the event log goes on: in every cell, and only in the log that it has read."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from redsched.errors import InvalidRequest
from redsched.model.records.events import Event
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.scheduler.conftest import report_all, report_of
from tests.support.builders.cells import raw_client
from tests.support.waiting import patience_s

WAIT_S = 20.0


@pytest.fixture
async def two(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over cells a and b that records nothing by itself."""
    settings = Settings(cells=("a", "b"), events_keep_s=0, check_s=0)
    async with Scheduler.connect(clean_store, settings) as opened:
        await opened.init()
        await report_all(opened, [report_of("a1", cell="a", VCPU=8), report_of("b1", cell="b", VCPU=8)])
        yield opened


async def record(url: str, cell: str, *entries: str) -> None:
    """Append events to the log of a cell, each with this entry's number."""
    async with raw_client(url) as raw:
        for entry in entries:
            fields = {"at_ms": entry.partition("-")[0], "seq": "1", "kind": "claimed", "claim": f"{cell}-{entry}"}
            await raw.xadd(f"rs:{{{cell}}}:events", fields, id=entry)


async def lose(url: str, cell: str) -> None:
    """Lose the log of a cell, as a wiped store, or a replica that never had it."""
    async with raw_client(url) as raw:
        await raw.delete(f"rs:{{{cell}}}:events")


def seen(events: list[Event]) -> list[str]:
    """Return which events there are: `a reset`, or the claim."""
    return [one.facts.get("claim", f"{one.cell} {one.kind}") for one in events]


async def listed(scheduler: Scheduler, after: str, limit: int = 100) -> list[Event]:
    """Return the events of all pages."""
    found: list[Event] = []
    following: str | None = after
    while following is not None:
        page = await scheduler.events.list(limit, following)
        found += page.items
        following = page.next
    return found


async def followed(scheduler: Scheduler, after: str, count: int) -> list[Event]:
    """Return the first events that are followed."""
    found: list[Event] = []
    async with asyncio.timeout(patience_s(WAIT_S)):
        async for one in scheduler.events.follow(0.01, after):
            found.append(one)
            if len(found) == count:
                break
    return found


async def test_a_log_that_lost_the_event_is_a_reset(two: Scheduler, clean_store: str) -> None:
    """The store's clock went back: the events of the new log have smaller ids than the one that was read last."""
    await record(clean_store, "a", "1000-0", "2000-0")
    last = (await listed(two, ""))[-1].id
    await lose(clean_store, "a")
    await record(clean_store, "a", "1500-0")
    assert seen(await listed(two, last)) == ["a reset", "a-1500-0"]
    assert seen(await followed(two, last, 2)) == ["a reset", "a-1500-0"]


async def test_a_log_that_is_lost_while_it_is_followed_is_a_reset(two: Scheduler, clean_store: str) -> None:
    await record(clean_store, "a", "1000-0", "2000-0")
    following = two.events.follow(0.01, "a:1000-0,b:0-0")
    async with asyncio.timeout(patience_s(WAIT_S)):
        found = [await anext(following)]
        await lose(clean_store, "a")
        await record(clean_store, "a", "3000-0")
        found += [await anext(following), await anext(following)]
    assert seen(found) == ["a-2000-0", "a reset", "a-3000-0"]


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_every_id_resumes_in_every_cell(two: Scheduler, clean_store: str, limit: int) -> None:
    await record(clean_store, "a", "1000-0", "3000-0")
    await record(clean_store, "b", "2000-0", "4000-0")
    every = ["a-1000-0", "a-3000-0", "b-2000-0", "b-4000-0"]
    found = await listed(two, "", limit)
    assert seen(found) == every
    await record(clean_store, "a", "5000-0")
    for number, one in enumerate(found, 1):
        rest = sorted([*every[number:], "a-5000-0"])
        assert sorted(seen(await listed(two, one.id, limit))) == rest
        assert sorted(seen(await followed(two, one.id, len(rest)))) == rest


async def test_the_newest_events_resume_where_they_end(two: Scheduler, clean_store: str) -> None:
    await record(clean_store, "a", "1000-0")
    await record(clean_store, "b", "2000-0")
    last = list(await two.events.newest())[-1].id
    await record(clean_store, "a", "3000-0")
    assert seen(await listed(two, last)) == ["a-3000-0"]


async def test_a_cell_that_the_id_does_not_name_is_a_reset(two: Scheduler, clean_store: str) -> None:
    """Ids of former releases named one cell: the events of the others were left out."""
    await record(clean_store, "a", "1000-0")
    await record(clean_store, "b", "2000-0", "4000-0")
    assert seen(await listed(two, "b:2000-0")) == ["a reset", "a-1000-0", "b-4000-0"]
    assert seen(await listed(two, "b:2000-0", limit=1)) == ["a reset", "a-1000-0", "b-4000-0"]
    assert seen(await followed(two, "b:2000-0", 3)) == ["a reset", "a-1000-0", "b-4000-0"]


@pytest.mark.parametrize("bad", ["a:1-0,", "a:1-0,a:2-0", "a:1-0,b", ",a:1-0"])
async def test_what_is_no_id_is_refused(two: Scheduler, bad: str) -> None:
    with pytest.raises(InvalidRequest, match="not an event's id"):
        await two.events.list(1, bad)
