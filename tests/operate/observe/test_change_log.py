"""One log of changes for many readers: each change is rendered once, and each reader gets all of them, in order."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from redsched import aio
from redsched.errors import InvalidRequest, NotFound
from redsched.model import Request
from redsched.model.records.changes import Change, Reset
from redsched.operate.observe import change_log
from redsched.operate.observe.change_log import ChangeLog, ChangeReader
from redsched.scheduler import Scheduler
from redsched.store.codec.replies import Change as Entry
from tests.support.waiting import wait_until

READERS = 300
WAIT_S = 20.0


class Rendered:
    """Renders a change as its seq, and notes each call."""

    def __init__(self, size: int = 0) -> None:
        self.calls: list[Change | Reset] = []
        self._size = size

    def __call__(self, one: Change | Reset) -> bytes:
        self.calls.append(one)
        return (f"reset:{one.seq}" if isinstance(one, Reset) else str(one.seq)).encode().rjust(self._size) + b" "


async def claim(scheduler: Scheduler) -> None:
    """Claim and release: at least two changes."""
    (found,) = (await scheduler.select(Request({"VCPU": 1}))).selections
    await scheduler.claims.release(found.claim_id or "")


@pytest.fixture
def rendered() -> Rendered:
    return Rendered()


@pytest.fixture
async def log(scheduler: Scheduler, rendered: Rendered) -> AsyncIterator[ChangeLog]:
    found = scheduler.change_log(rendered)
    yield found
    assert found._task is None, "a reader is left"


async def read_to(reader: ChangeReader, seq: int) -> list[str]:
    """Return all events up to the one of this seq."""
    found: list[str] = []
    while not found or found[-1] != str(seq):
        events = await reader.next(WAIT_S)
        assert events, f"nothing came after {found[-3:]}"
        found += events.decode().split()
    return found


async def test_each_change_is_rendered_once_for_300_readers(
    scheduler: Scheduler, log: ChangeLog, rendered: Rendered
) -> None:
    cell = scheduler.cells.named("c1")
    start = cell.updater.seq
    readers = [log.reader() for _ in range(READERS)]

    async def read(reader: ChangeReader) -> list[str]:
        found: list[str] = []
        async with reader:
            while not found or int(found[-1]) < start + 20:
                found += (await reader.next(WAIT_S)).decode().split()
        return found

    reading = [asyncio.create_task(read(reader)) for reader in readers]
    while cell.updater.seq < start + 20:
        await claim(scheduler)
    for one in await asyncio.gather(*reading):
        assert one == [str(start + 1 + number) for number in range(len(one))]
    changes = [one.seq for one in rendered.calls if one.seq > start]
    assert changes == list(range(start + 1, start + 1 + len(changes)))


async def test_no_wake_up_is_lost(scheduler: Scheduler, log: ChangeLog) -> None:
    """A change that is published between a reader's look and its wait ends the wait."""
    cell = scheduler.cells.named("c1")
    async with log.reader() as reader:
        take = reader._take

        async def look_then_change() -> bytes:
            events = await take()
            if not events:
                seq = cell.updater.seq
                await claim(scheduler)
                await wait_until(lambda: log._logs[0]._next > seq + 1, what="the change is rendered")
                await wait_until(reader._woken.is_set, what="the reader is woken")
            return events

        reader._take = look_then_change  # type: ignore[method-assign]
        began = aio.now_s()
        assert await reader.next(WAIT_S)
        assert aio.now_s() - began < WAIT_S


async def test_a_reader_resumes_after_an_id(scheduler: Scheduler, log: ChangeLog) -> None:
    """Also if what follows was applied before the log had any reader."""
    cell = scheduler.cells.named("c1")
    start = cell.updater.seq
    await claim(scheduler)
    await cell.updater.catch_up()
    async with log.reader(f"c1:{cell.updater.epoch}:{start}") as reader:
        seq = cell.updater.seq
        assert await read_to(reader, seq) == [str(one) for one in range(start + 1, seq + 1)]


async def test_an_id_that_cannot_be_one_is_refused(log: ChangeLog) -> None:
    with pytest.raises(NotFound, match="c9"):
        log.reader("c9:1")
    with pytest.raises(InvalidRequest, match="Last-Event-ID"):
        log.reader("c1")


async def test_an_id_that_the_feed_does_not_have_is_a_reset(scheduler: Scheduler, log: ChangeLog) -> None:
    updater = scheduler.cells.named("c1").updater
    async with log.reader(f"c1:{updater.epoch}:9000000000000000") as reader:
        assert await reader.next(WAIT_S) == f"reset:{updater.seq} ".encode()


async def test_a_reader_too_far_behind_gets_a_reset_and_then_new_changes(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is bounded, whoever reads slowly."""
    monkeypatch.setattr(change_log, "MAX_BYTES", 1000)
    cell, log = scheduler.cells.named("c1"), scheduler.change_log(Rendered(size=100))
    start = cell.updater.seq
    async with log.reader() as slow, log.reader() as quick:
        while cell.updater.seq < start + 12:
            await claim(scheduler)
            await quick.next(WAIT_S)
        await cell.updater.catch_up()
        await wait_until(lambda: log._logs[0]._next > cell.updater.seq, what="all is rendered")
        assert log._logs[0]._bytes <= 1000
        reset = (await slow.next(WAIT_S)).decode().split()
        assert reset == [f"reset:{cell.updater.seq}"]
        seq = cell.updater.seq
        await claim(scheduler)
        assert (await read_to(slow, seq + 2)) == [str(seq + 1), str(seq + 2)]


async def test_a_snapshot_is_a_reset(scheduler: Scheduler, log: ChangeLog) -> None:
    """The changes before it were not all delivered, and a new epoch counts anew."""
    cell = scheduler.cells.named("c1")
    async with log.reader() as reader:
        await cell.store.raise_epoch(cell.updater.epoch)
        found = b""
        while b"reset" not in found:
            found = await reader.next(WAIT_S)
            assert found, "no reset came"


async def test_a_reader_may_be_shown_only_some_changes(scheduler: Scheduler, log: ChangeLog) -> None:
    """What a reader may not see does not keep it from what follows."""
    cell = scheduler.cells.named("c1")
    seen: list[Change] = []

    async def others(changes: Sequence[Change]) -> list[Change | None]:
        seen.extend(changes)
        return [None if one.op == "claimed" else one for one in changes]

    async with log.reader(show=others) as reader:
        await claim(scheduler)
        await cell.updater.catch_up()
        found = await read_to(reader, cell.updater.seq)
    assert found == [str(one.seq) for one in seen if one.op != "claimed"]
    assert {one.op for one in seen} > {"claimed"}


async def test_a_long_backlog_comes_in_slices(scheduler: Scheduler) -> None:
    """A reader that filters everything out of one slice goes on with the next. Nothing is rendered twice."""
    cell = scheduler.cells.named("c1")
    start, rendered = cell.updater.seq, Rendered(size=10_000)
    for number in range(1, 41):
        cell.updater.recent.append(Entry(f"0-{number}", start + number, "host", "h1", number, "status", 0, {}))
    cell.updater._replica.seq = start + 40
    log = scheduler.change_log(rendered)

    async def last(changes: Sequence[Change]) -> list[Change | None]:
        return [one if one.seq == start + 40 else None for one in changes]

    async with (
        log.reader(f"c1:{cell.updater.epoch}:{start}") as whole,
        log.reader(f"c1:{cell.updater.epoch}:{start}", last) as filtered,
    ):
        await wait_until(lambda: log._logs[0]._next == start + 41, what="all is rendered")
        events = await whole.next(WAIT_S)
        assert change_log.SLICE_BYTES <= len(events) < change_log.SLICE_BYTES + 10_001
        assert await filtered.next(WAIT_S) == str(start + 40).encode().rjust(10_000) + b" "
        await read_to(whole, start + 40)
    # Once for all readers, and once more for the one that sees only some.
    assert len([one for one in rendered.calls if one.seq > start]) == 41


async def test_readers_are_woken_a_few_at_a_time(scheduler: Scheduler, log: ChangeLog) -> None:
    """Between two turns of the loop at most WAKE_AT_ONCE readers get to work."""
    woken: list[int] = []
    loop = asyncio.get_running_loop()
    turns = [0]

    def turn() -> None:
        turns[0] += 1
        loop.call_soon(turn) if len(woken) < READERS else None

    readers = [log.reader() for _ in range(READERS)]
    for reader in readers:
        reader.wake = lambda: woken.append(turns[0])  # type: ignore[method-assign]
    log._readers = dict.fromkeys(readers)
    turn()
    await log._wake_readers()
    assert len(woken) == READERS
    assert max(woken.count(one) for one in set(woken)) <= 2 * change_log.WAKE_AT_ONCE
