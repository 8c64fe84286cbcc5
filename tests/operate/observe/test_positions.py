"""Positions in the stream of changes: they belong to an epoch, and there is one for each cell."""

import asyncio

import pytest

from redsched.api.change_stream import event_of
from redsched.errors import InvalidRequest, NotFound
from redsched.model import HostStatus
from redsched.model.records.changes import Change, Reset
from redsched.operate.observe.change_log import ChangeLog
from redsched.scheduler import Scheduler
from tests.scheduler.conftest import report_all, report_of
from tests.support.builders.cells import raw_client
from tests.support.waiting import patience_s, wait_until

WAIT_S = 20.0
Events = list[tuple[str, str, str]]
"""The kind, data and id of each event."""


async def change(scheduler: Scheduler, host: str) -> None:
    """Make one change of a host."""
    is_disabled = (await scheduler.hosts.get(host)).status is HostStatus.DISABLED
    await (scheduler.hosts.enable if is_disabled else scheduler.hosts.disable)(host)
    await scheduler.cells.refresh()


async def read(log: ChangeLog, count: int, last_id: str = "") -> Events:
    """Return the next events of a stream that resumes after an id."""
    found: Events = []
    async with log.reader(last_id) as reader:
        while len(found) < count:
            events = (await reader.next(WAIT_S)).decode()
            assert events, f"nothing came after {found}"
            for one in events.removesuffix("\n\n").split("\n\n"):
                kind, data, event_id = (line.partition(": ")[2] for line in one.split("\n"))
                found.append((kind, data, event_id))
    return found


async def changed(scheduler: Scheduler, log: ChangeLog, hosts: str, last_id: str = "") -> Events:
    """Return the events that a reader gets while hosts are changed, one for each."""
    reading = asyncio.create_task(read(log, len(hosts.split()), last_id))
    await wait_until(lambda: bool(log._readers), what="the reader has begun")
    for host in hosts.split():
        await change(scheduler, host)
    return await reading


async def wiped(scheduler: Scheduler, url: str, changes: int) -> None:
    """Wipe the store, and let the new epoch count further than the one before."""
    cell = next(iter(scheduler.cells))
    before = cell.updater.seq
    async with raw_client(url) as raw:
        await raw.flushall()
    await wait_until(lambda: cell.updater.seq < before, what="the replica has noticed")
    await report_all(scheduler, [report_of("h1", VCPU=8)])
    while cell.updater.seq <= before + changes:
        await change(scheduler, "h1")


@pytest.fixture
def log(scheduler: Scheduler) -> ChangeLog:
    return scheduler.change_log(event_of)


@pytest.fixture
def log_of_two(two_cells: Scheduler) -> ChangeLog:
    return two_cells.change_log(event_of)


async def test_an_id_of_another_history_is_a_reset(scheduler: Scheduler, log: ChangeLog, clean_store: str) -> None:
    """The new epoch has reached the number of the id: it is that of another change."""
    [(_, _, last)] = await changed(scheduler, log, "h1")
    await wiped(scheduler, clean_store, changes=3)
    (kind, data, again), *_ = await read(log, 1, last)
    assert (kind, data) == ("reset", '{"cell":"c1"}')
    [(kind, _, _)] = await changed(scheduler, log, "h1", again)
    assert kind == "change"


async def test_in_the_library_too(scheduler: Scheduler, clean_store: str) -> None:
    before = scheduler.changes()
    waiting = asyncio.ensure_future(anext(before))
    await asyncio.sleep(0)
    await change(scheduler, "h1")
    last = (await waiting).id
    await before.aclose()  # type: ignore[attr-defined] # it is a generator
    await wiped(scheduler, clean_store, changes=3)
    async with asyncio.timeout(patience_s(WAIT_S)):
        after = scheduler.changes(last)
        assert isinstance(await anext(after), Reset)
        await after.aclose()  # type: ignore[attr-defined]


async def test_an_id_has_a_position_in_each_cell(two_cells: Scheduler, log_of_two: ChangeLog) -> None:
    """What happened in the other cell meanwhile comes too, also if the last event was of this one."""
    found = await changed(two_cells, log_of_two, "a1 b1")
    assert [one[0] for one in found] == ["change", "change"]
    await change(two_cells, "a1")
    await change(two_cells, "b1")
    later = await read(log_of_two, 2, found[-1][2])
    assert [(kind, '"cell":"a"' in data) for kind, data, _ in later] == [("change", True), ("change", False)]
    between = await read(log_of_two, 3, found[0][2])
    assert [kind for kind, _, _ in between] == ["change"] * 3
    assert {data for _, data, _ in between} == {data for _, data, _ in (found[1], *later)}


async def test_every_id_of_the_library_resumes_in_each_cell(two_cells: Scheduler) -> None:
    followed = two_cells.changes()
    found: list[Change | Reset] = []
    for host in ("a1", "b1", "a1", "b2"):
        waiting = asyncio.ensure_future(anext(followed))
        await asyncio.sleep(0)
        await change(two_cells, host)
        found.append(await waiting)
    await followed.aclose()  # type: ignore[attr-defined]
    for number, one in enumerate(found[:-1], 1):
        async with asyncio.timeout(patience_s(WAIT_S)):
            after = two_cells.changes(one.id)
            rest = [await anext(after) for _ in found[number:]]
            await after.aclose()  # type: ignore[attr-defined]
        assert sorted(rest, key=_place) == sorted(found[number:], key=_place)


def _place(one: Change | Reset) -> tuple[str, int]:
    return one.cell, one.seq


async def test_cells_that_an_id_does_not_name_are_reset(two_cells: Scheduler, log_of_two: ChangeLog) -> None:
    """Until that was sent, no id names them: a reader that stops between the two gets it again."""
    [(_, _, last)] = await changed(two_cells, log_of_two, "b1")
    of_b = next(one for one in last.split(",") if one.startswith("b:"))
    [(kind, data, event_id)] = await read(log_of_two, 1, of_b)
    assert (kind, data, set(event_id.split(",")) >= {of_b}) == ("reset", '{"cell":"a"}', True)


async def test_an_id_of_a_former_release_is_a_reset_of_all_cells(two_cells: Scheduler, log_of_two: ChangeLog) -> None:
    """It has no epoch, so nobody knows to which history it belongs."""
    seq = two_cells.cells.named("b").updater.seq
    found = await read(log_of_two, 2, f"b:{seq}")
    assert [(kind, data) for kind, data, _ in found] == [("reset", '{"cell":"a"}'), ("reset", '{"cell":"b"}')]
    assert [one.partition(":")[0] for one in found[0][2].split(",")] == ["a"]
    await changed(two_cells, log_of_two, "a1 b1", found[1][2])


@pytest.mark.parametrize("bad", ["a", "a:x", "a:1-b", "a:1-b:1,", "a:1-b:1,a:1-b:2", "a:1,b:1", "a:1-b:1 ,b:1-b:1"])
async def test_what_is_no_id_is_refused(two_cells: Scheduler, log_of_two: ChangeLog, bad: str) -> None:
    for follow in (two_cells.changes, log_of_two.reader):
        with pytest.raises(InvalidRequest, match="Last-Event-ID"):
            follow(bad)
        with pytest.raises(NotFound, match="c9"):
            follow("a:1-b:1,c9:1-b:1")
