"""Which cells a scheduler mirrors: its choice, adopted cells, replicas on demand, and who writes summaries."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pydantic import ValidationError

from redsched.errors import InvalidRequest, NoValidHost, StoreUnavailable
from redsched.scheduler import Scheduler
from redsched.scheduler.mirroring import mirrors
from redsched.settings import Settings
from redsched.store.cell import CellStore
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.mirroring.mirrored import (
    BOTH,
    cell_of,
    has_replica,
    loads,
    place,
    settings_of,
    summarize,
)
from tests.support.builders.cells import new_epoch
from tests.support.waiting import wait_until

FOUR = ("a", "b", "c", "d")


@pytest.fixture
async def four(clean_store: str) -> AsyncIterator[Scheduler]:
    """A scheduler that mirrors cells a, b, c and d, whose hosts a1 to d1 have 1, 2, 3 and 4 VCPU."""
    async with Scheduler.connect(clean_store, settings_of(FOUR, "")) as opened:
        await opened.init()
        await report_all(opened, [report_of(f"{cell}1", cell=cell, VCPU=n) for n, cell in enumerate(FOUR, 1)])
        await summarize(opened)
        yield opened


def mirrored(scheduler: Scheduler) -> list[str]:
    return [cell.name for cell in scheduler._cells if cell.is_mirrored]


def test_the_setting_names_cells_or_their_number() -> None:
    assert settings_of(FOUR, "").mirrored == FOUR
    assert settings_of(FOUR, "b, d").mirrored == ("b", "d")
    assert settings_of(FOUR, "2").mirrored == 2
    assert (settings_of(FOUR, "0").mirrored, settings_of(FOUR, "9").mirrored) == (4, 4)
    with pytest.raises(ValidationError, match="mirror_cells names 'e', which is none of cells: a, b, c, d"):
        settings_of(FOUR, "a,e")


async def test_schedulers_choose_different_cells(clean_store: str) -> None:
    """Each takes cells that no other scheduler mirrors, as long as there are any."""
    async with AsyncExitStack() as stack:
        chosen = [
            mirrored(await stack.enter_async_context(Scheduler.connect(clean_store, settings_of(FOUR, "2"))))
            for _ in range(2)
        ]
        assert sorted(chosen[0] + chosen[1]) == [*FOUR]
        third = await stack.enter_async_context(Scheduler.connect(clean_store, settings_of(FOUR, "3")))
        assert len(mirrored(third)) == 3


async def test_only_the_latest_replicas_are_kept(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a", loaded=2)) as one:
        for host in ("b1", "c1"):
            await place(one, 1, hosts=frozenset({host}))
        assert has_replica(one) == ["a", "b", "c"]
        await place(one, 1, hosts=frozenset({"b1"}))
        await place(one, 1, hosts=frozenset({"d1"}))
        assert has_replica(one) == ["a", "b", "d"]
        assert loads(one) == 3


async def test_a_replica_in_use_is_not_dropped(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        async with one._replicas.using(cell_of(one, "b").updater):
            await place(one, 1, hosts=frozenset({"c1"}))
            assert has_replica(one) == ["a", "b", "c"]
        await one._replicas.drop_idle()
        assert has_replica(one) == ["a", "c"]


async def test_verbs_keep_the_replica_that_they_decide_with(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        await cell_of(one, "b").read_at_head(lambda: None)
        await one._replicas.drop_idle()
        await place(one, 1, hosts=frozenset({"c1"}))
        assert "b" in has_replica(one)


async def test_a_replica_that_a_read_has_started_is_dropped_as_others_are(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        await cell_of(one, "b").updater.catch_up()
        await one._mirrors.watch()
        await place(one, 1, hosts=frozenset({"c1"}))
        assert has_replica(one) == ["a", "c"]


async def test_a_reader_that_waits_for_a_dropped_replica_starts_none_after_the_end(
    four: Scheduler, clean_store: str
) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        updater = cell_of(one, "b").updater
        await updater.catch_up()
        dropping = asyncio.create_task(updater.drop())
        await asyncio.sleep(0)
        reading = asyncio.create_task(updater.catch_up())
        await asyncio.sleep(0)
        await updater.stop()
        with pytest.raises(StoreUnavailable, match="closed"):
            await reading
        await dropping
        assert not updater.is_started


async def test_a_replica_that_was_dropped_is_loaded_again(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        b = cell_of(one, "b")
        await place(one, 1, hosts=frozenset({"b1"}))
        await b.updater.drop()
        assert (len(b.updater.columns), b.is_here, b.updater.epoch) == (0, False, (await b.store.tick()).epoch)
        await place(one, 1, hosts=frozenset({"b1"}))
        with pytest.raises(NoValidHost):
            await place(one, 1, hosts=frozenset({"b1"}))
        assert await four.claims.list(cell="b") == await one.claims.list(cell="b")


async def test_a_scheduler_that_mirrors_some_cells_follows_no_changes(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        with pytest.raises(InvalidRequest, match="REDSCHED_MIRROR_CELLS"):
            one.changes()
        assert (await one.readiness()).ready
        assert one.stats().hosts == 1


# Summaries


async def written_by(scheduler: Scheduler, cell: str) -> int:
    """Write the cell's summary if this scheduler would; return how many calls of the script that took."""
    store, calls = cell_of(scheduler, cell).store, list[Any]()
    really = store.summary.write

    async def write(summary: Any) -> Any:
        calls.append(summary)
        return await really(summary)

    store.summary.write = write  # type: ignore[method-assign]
    try:
        await scheduler._tasks[cell].summaries.write()
    finally:
        store.summary.write = really  # type: ignore[method-assign]
    return len(calls)


async def test_one_scheduler_writes_and_another_one_when_it_is_gone(four: Scheduler, clean_store: str) -> None:
    writer = four._tasks["a"].summaries
    await wait_until(writer.take_over, what="the lease")
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        assert await written_by(one, "a") == 0
        await writer.stop()
        assert await written_by(one, "a") == 1
        assert await written_by(one, "a") == 0  # nothing has changed
        await four.hosts.report(report_of("a2", cell="a", VCPU=4))
        await cell_of(one, "a").updater.catch_up()
        one._tasks["a"].summaries._again_at_s = 0.0
        assert await written_by(one, "a") == 1
        _, summary = await cell_of(one, "a").store.summary.read()
        assert summary is not None
        assert (summary.hosts, summary.seq) == (2, cell_of(one, "a").updater.seq)


async def test_a_scheduler_of_one_cell_writes_no_summary(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings()):
        started = {task.get_name() for task in asyncio.all_tasks()}
    assert not [name for name in started if name.startswith(("redsched-summary", "redsched-watch"))]


async def test_summaries_that_are_too_old_say_nothing(
    four: Scheduler, clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        b = cell_of(one, "b")
        await one._mirrors.watch()
        assert b.summary is not None
        assert b.summary.rooms["default", "VCPU"].largest == 2
        monkeypatch.setattr(mirrors, "MAX_AGE_MS", -1)
        await one._mirrors.watch()
        assert b.summary is None


async def test_the_clock_of_a_cell_that_is_not_mirrored_is_followed(four: Scheduler, clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        epoch = await new_epoch(cell_of(four, "b").store)
        await one._mirrors.watch()
        assert cell_of(one, "b").updater.epoch == epoch
        assert not (await one.hosts.get("b1")).attested


async def test_releases_are_replayed_in_a_cell_that_is_not_mirrored(four: Scheduler, clean_store: str) -> None:
    """The store may have lost them with its former epoch, whoever mirrors the cell."""
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        await place(four, 1, hosts=frozenset({"b1"}), claim_ids=("mine",))
        assert await one.claims.release("mine")
        b = cell_of(four, "b").store
        await new_epoch(b)
        await one._mirrors.watch()
        (closed,) = cell_of(one, "b").released._closed.values()
        assert closed.epoch == (await b.tick()).epoch


# Adopted cells


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adopt without waiting, and look at once whether another scheduler mirrors the cell."""
    monkeypatch.setattr(mirrors, "ADOPT_AFTER_S", 0.0)
    monkeypatch.setattr(mirrors, "ADOPTED_FOR_S", 0.0)
    monkeypatch.setattr(mirrors, "PAUSE_S", 0.0)


def tasks_of(cell: str) -> set[str]:
    names = {task.get_name() for task in asyncio.all_tasks()}
    return {name for name in names if name.endswith(f"-{cell}") and not name.startswith("redsched-updater")}


@pytest.mark.usefixtures("at_once")
async def test_a_cell_that_nobody_mirrors_is_adopted_by_one(clean_store: str) -> None:
    async with (
        Scheduler.connect(clean_store, settings_of(BOTH, "a")) as one,
        Scheduler.connect(clean_store, settings_of(BOTH, "a")) as other,
    ):
        await one.init()
        await report_all(one, [report_of("b1", cell="b", VCPU=4)])
        for _ in range(2):
            await one._mirrors.watch()
            await other._mirrors.watch()

        async def adopted() -> bool:
            return sorted((len(mirrored(one)), len(mirrored(other)))) == [1, 2]

        await wait_until(adopted, what="the adoption")
        assert {"redsched-sweeper-b", "redsched-summary-b", "redsched-record-b"} <= tasks_of("b")
        holder = one if len(mirrored(one)) == 2 else other
        assert await written_by(holder, "b") + await written_by(holder, "b") <= 1
        assert await place(holder, 4) == "b1"
        assert loads(holder) == 0


@pytest.mark.usefixtures("at_once")
async def test_an_adopted_cell_is_given_up_for_a_scheduler_that_mirrors_it(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, settings_of(BOTH, "a")) as one:
        await one.init()

        async def adopted() -> bool:
            await one._mirrors.watch()
            return mirrored(one) == ["a", "b"]

        await wait_until(adopted, what="the adoption")
        await one._mirrors.watch()  # pauses, and finds nobody
        await one._mirrors.watch()
        assert mirrored(one) == ["a", "b"]
        async with Scheduler.connect(clean_store, settings_of(BOTH, "b")) as other:

            async def given_up() -> bool:
                await other._tasks["b"].summaries.take_over()
                await one._mirrors.watch()
                return mirrored(one) == ["a"]

            await wait_until(given_up, what="the end of the adoption")
            assert await one.readiness()
            await one._replicas.drop_idle()
            assert (
                len(
                    [name for name in (task.get_name() for task in asyncio.all_tasks()) if name == "redsched-sweeper-b"]
                )
                == 1
            )


async def test_a_cell_with_a_mirror_is_not_adopted(four: Scheduler, clean_store: str, at_once: None) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        for _ in range(3):
            await one._mirrors.watch()
        assert mirrored(one) == ["a"]
        # Also if its summary is missing: the scheduler that has the lease is loading it.
        await wait_until(four._tasks["b"].summaries.take_over, what="the lease")
        await stop_before_writing(four, "b")
        await one._mirrors.watch()
        assert mirrored(one) == ["a"]


async def stop_before_writing(scheduler: Scheduler, cell: str) -> None:
    """Delete a summary, while its writer keeps the lease."""
    store: CellStore = cell_of(scheduler, cell).store
    await store.summary._cell.reader.delete(store.keys.summary)


async def test_a_cell_that_cannot_be_reached_is_unknown(
    four: Scheduler, clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Scheduler.connect(clean_store, settings_of(FOUR, "a")) as one:
        b, c = cell_of(one, "b"), cell_of(one, "c")

        async def fails() -> Sequence[object]:
            raise StoreUnavailable("no reply")

        monkeypatch.setattr(b.store.summary, "read", fails)
        await one._mirrors.watch()
        assert b.summary is None
        assert c.summary is not None
