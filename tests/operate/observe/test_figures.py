"""The figures of a scheduler that metrics show: costs of selections, delays, leases that expired, audits, the store."""

from typing import Any

import pytest

from redsched.cache.feed import Gap
from redsched.cache.replica import CellReplica
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import NoValidHost
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.scheduler.background.delays import Delays, FeedLag
from redsched.scheduler.results import Effort, Finding
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Change
from tests.scheduler.working import at_work
from tests.support.builders.cells import claim_on, make_due, raw_client
from tests.support.waiting import wait_until


def of(scheduler: Scheduler) -> tuple[CellStore, ReplicaUpdater]:
    cell = scheduler.cells.named("c1")
    return cell.store, cell.updater


async def test_an_effort_has_each_call_of_the_claim_script(scheduler: Scheduler, efforts: list[Effort]) -> None:
    await scheduler.select(Request({"VCPU": 1}))
    [effort] = efforts
    [call] = effort.claims
    assert (call.candidates, call.conflicted, effort.reason) == (1, False, "")
    assert 0 < call.seconds < effort.seconds


async def test_a_candidate_that_was_taken_meanwhile_is_a_conflict(scheduler: Scheduler, efforts: list[Effort]) -> None:
    """The replica shows h1 as free although it is full, as if another scheduler's claim were not in the feed yet."""
    _, updater = of(scheduler)
    await scheduler.select(Request({"VCPU": 8}, hosts=frozenset(("h1",))))
    row = updater.columns.row("h1")
    assert row is not None
    updater.columns.claimed.set("VCPU", row, 0)
    updater.columns.claims[row] = 0
    updater.columns.dirty.mark(row)
    found = await scheduler.select(Request({"VCPU": 1}, hosts=frozenset(("h1", "h2"))))
    assert found.selections[0].host == "h2"
    [call] = efforts[-1].claims
    assert (call.candidates, call.conflicted) == (2, True)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Request({"VCPU": 9}), "VCPU"),
        (Request({"CUSTOM_OF_NOBODY": 1}), "unknown-class"),
        (Request({"VCPU": 1}, required=frozenset({"CUSTOM_OF_NOBODY"})), "required"),
    ],
)
async def test_a_refusal_has_the_reason_that_rules_out_most_hosts(
    scheduler: Scheduler, efforts: list[Effort], request_: Request, reason: str
) -> None:
    """Names that only requests have are left out: they would make ever more labels."""
    with pytest.raises(NoValidHost):
        await scheduler.select(request_)
    assert [effort.reason for effort in efforts] == [reason]


async def test_expired_leases_are_counted_by_who_ends_them(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work, raw_client(clean_store) as raw:
        await claim_on(work.store, "a", "h0")
        await make_due(raw, work.store, "a")
        past_ms = (await work.store.tick()).now_ms - 1000
        await raw.hset(work.store.keys.host("h1"), "alive_until_ms", past_ms)
        await raw.zadd(work.store.keys.hosts, {"h1": past_ms})
        await work.sweep()
        for _ in range(2):  # the second sweep finds nothing left to do
            stats = work.scheduler.stats()
            assert (stats.claims_expired, stats.hosts_down) == (1, 1)
            await work.sweep()


async def test_audits_are_counted_with_what_they_find(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work, raw_client(clean_store) as raw:
        await raw.hset(work.store.keys.host("h0"), "claimed.VCPU", "3")
        maintenance = work.scheduler.tasks["c1"].maintenance
        await maintenance.check()
        await maintenance.check()
        stats = work.scheduler.stats()
    assert stats.audits == {("c1", "cell"): 2, ("c1", "ids"): 2, ("c1", "replica"): 0}
    # The store's sum, and the replica that had its value before the repair.
    assert stats.findings == {Finding(2, repaired=True): 1, Finding(10, repaired=True): 1}


async def test_delays_are_those_of_the_first_of_each_index(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4, 4) as work, raw_client(clean_store) as raw:
        store, updater = of(work.scheduler)
        keys = store.keys
        delays, now_ms = Delays(store, updater), (await store.tick()).now_ms
        await raw.zadd(keys.hosts, {"h0": now_ms - 1, "h1": now_ms + 30_000, "h2": now_ms + 50_000})
        await raw.hset(keys.host("h1"), "lease_ms", 100_000)
        await raw.zadd(keys.deadlines, {"a": now_ms - 7000, "b": now_ms})
        await raw.zadd(keys.reconcile, {"a": now_ms + 60_000})
        await updater.catch_up()
        await delays.read()
        assert 70 <= delays.agent_s <= 80
        assert delays.agent_part == pytest.approx(delays.agent_s / 100)
        assert 7 <= delays.expiry_s <= 17
        assert delays.reconcile_s == 0


async def test_nothing_is_late_in_an_empty_cell(clean_store: str) -> None:
    async with at_work(clean_store) as work:
        store, updater = of(work.scheduler)
        delays = Delays(store, updater)
        await delays.read()
        assert (delays.agent_s, delays.agent_part, delays.expiry_s, delays.reconcile_s) == (0, 0, 0, 0)


async def test_the_lag_of_the_feed_is_the_age_of_a_batchs_oldest_change(scheduler: Scheduler) -> None:
    _, updater = of(scheduler)
    seen = list[float]()
    now_ms = updater.now_ms()
    batch = [Change(f"{now_ms - age}-0", 1, "host", "h1", 1, "up", 0) for age in (9000, 10)]
    FeedLag(updater, seen.append).on_changes(batch)
    assert 9 <= seen[0] <= 19
    scheduler.on_feed_lag(seen.append)
    await scheduler.select(Request({"VCPU": 1}))
    await wait_until(lambda: len(seen) > 1, what="the change is applied")


async def test_each_look_at_the_store_is_timed(scheduler: Scheduler) -> None:
    assert scheduler.stats().store_s is None
    assert (await scheduler.readiness()).ready
    stats = scheduler.stats()
    assert (stats.store_s or 0) > 0
    assert stats.store_memory_bytes > 100_000
    assert stats.store_memory_limit_bytes == 0


async def test_the_fullest_primary_counts(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits, that is the one with the largest part of its limit in use."""

    async def infos(*_: object) -> dict[str, dict[str, object]]:
        sizes = {"a": (900, 10_000), "b": (500, 1000), "c": (9000, 0)}
        return {name: {"used_memory": used, "maxmemory": limit} for name, (used, limit) in sizes.items()}

    monkeypatch.setattr("redsched.store.store.infos", infos)
    memory = await scheduler._store.memory()
    assert (memory.policy, memory.used_bytes, memory.limit_bytes) == ("noeviction", 500, 1000)


async def test_gaps_are_counted_apart_from_other_snapshots(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, updater = of(scheduler)
    updater.force_snapshot()
    await updater.catch_up()
    before = scheduler.stats()
    assert (before.gaps, before.snapshots) == (0, 2)
    advance, missing = CellReplica.advance, [True]

    async def advance_after_a_gap(self: CellReplica, *given: Any) -> Any:
        if missing:
            missing.clear()
            raise Gap("the next entries are gone")
        return await advance(self, *given)

    monkeypatch.setattr(CellReplica, "advance", advance_after_a_gap)
    await updater.catch_up()
    stats = scheduler.stats()
    assert (stats.gaps, stats.snapshots) == (1, 3)
