"""A clock of the store that is set, or that of a replica that takes over, ends nothing before its time."""

from dataclasses import replace

import pytest

from redsched.model import AtDeadline, ClaimStatus, Request
from redsched.store.codec.replies import FencingBegun
from redsched.store.commands.fencing import FencingLimits
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import raw_client
from tests.support.store_clock import HOUR_MS, StoreTime

AHEAD_MS = 9 * HOUR_MS
SLACK_MS = 600_000
"""The time between two writes, before and after a jump, counts as part of the jump."""
MINE = Request({"VCPU": 2}, claim_ids=("mine",), max_runtime_s=3600)


async def jump(work: Work, store_time: StoreTime, ahead_ms: int) -> None:
    """Set the store's clock, sweep before the hosts have attested to the new epoch, let them attest, and sweep."""
    before = (await work.store.tick()).epoch
    store_time.set_ahead(ahead_ms)
    await work.sweep()
    assert (await work.store.tick()).epoch != before
    for host in work.hosts:
        await host.speak()
    for _ in range(2):
        await work.sweep()
        await work.work()


async def test_a_drain_stops_nothing_before_its_time(store_time: StoreTime, clean_store: str) -> None:
    """Its deadline is as far away after the jump as before."""
    async with at_work(clean_store, 9, 4) as work:
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.drain("h0", True, 3600, AtDeadline.STOP)
        for ahead_ms in (AHEAD_MS, 0):
            await jump(work, store_time, ahead_ms)
            assert (await work.scheduler.claims.get("large")).state is ClaimStatus.ACTIVE
            assert (await work.scheduler.hosts.get("h0")).draining == "move"
        left_ms = ((await work.scheduler.hosts.get("h0")).drain_deadline_ms or 0) - (await work.store.tick()).now_ms
        assert 0 < left_ms <= HOUR_MS + SLACK_MS
        store_time.set_ahead(HOUR_MS)
        await work.store.tick()
        await jump(work, store_time, -HOUR_MS)
        assert (await work.scheduler.hosts.get("h0")).draining == "move"


async def test_a_drain_that_begins_after_a_jump_stops_in_time(store_time: StoreTime, clean_store: str) -> None:
    async with at_work(clean_store, 9, 4) as work:
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await jump(work, store_time, AHEAD_MS)
        await work.scheduler.hosts.drain("h0", True, 3600, AtDeadline.STOP)
        left_ms = ((await work.scheduler.hosts.get("h0")).drain_deadline_ms or 0) - (await work.store.tick()).now_ms
        assert 0 < left_ms <= HOUR_MS + SLACK_MS


@pytest.mark.parametrize("ahead_ms", [AHEAD_MS, -AHEAD_MS])
async def test_a_pending_claim_is_placed_again(store_time: StoreTime, clean_store: str, ahead_ms: int) -> None:
    """It has as much time left as before."""
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        await work.store.claims.fail("h0", "mine", claim.token, by_host=True, retry=True)
        await jump(work, store_time, ahead_ms)
        await work.settle()
        again = await work.scheduler.claims.get("mine")
        assert again.state is ClaimStatus.ACTIVE
        left_ms = (again.runtime_deadline_ms or 0) - (await work.store.tick()).now_ms
        assert 0 < left_ms <= HOUR_MS + SLACK_MS


async def test_a_claim_on_a_drained_host_moves(store_time: StoreTime, clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        await work.active(MINE)
        await jump(work, store_time, AHEAD_MS)
        await work.scheduler.hosts.drain("h0", move=True)
        await work.settle()
        moved = await work.scheduler.claims.get("mine")
        assert (moved.state, moved.host) == (ClaimStatus.ACTIVE, "h1")


async def test_a_move_with_a_deadline_goes_on(store_time: StoreTime, clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(replace(MINE, max_runtime_s=0))
        await work.scheduler.claims.move("mine", claim.token, live=True)
        store_time.set_ahead(AHEAD_MS)
        for host in work.hosts:
            await host.speak()
        await work.sweep()
        found = await work.scheduler.claims.get("mine")
        assert found.target is not None
        assert found.target.host == "h1"


async def test_a_host_that_died_while_the_clock_was_ahead_is_soon_down(store_time: StoreTime, clean_store: str) -> None:
    """Its lease is of the clock that was ahead. It gets a whole one from now on."""
    async with at_work(clean_store, 4, 4) as work:
        await jump(work, store_time, AHEAD_MS)
        store_time.set_ahead(0)
        await work.hosts[1].speak()
        await work.sweep()
        now_ms = (await work.store.tick()).now_ms
        [h0, h1] = [one.fields for one in await work.store.hosts.read(["h0", "h1"])]
        for host in (h0, h1):
            assert now_ms < int(host["alive_until_ms"]) <= now_ms + HOUR_MS
        assert await work.store.hosts.lapsed(now_ms + HOUR_MS + 1, 2**50, 0, 10) == []


async def test_a_retry_does_not_wait_for_a_clock_that_was_ahead(store_time: StoreTime, clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        await work.store.claims.fail("h0", "mine", claim.token, by_host=True, retry=True)
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.PENDING
        store_time.set_ahead(AHEAD_MS)
        ahead_ms = (await work.store.tick()).now_ms
        async with raw_client(clean_store) as raw:
            await raw.zadd(work.store.keys.reconcile, {"mine": ahead_ms})
        await jump(work, store_time, 0)
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE


async def test_dead_hosts_are_fenced_also_after_a_clock_that_was_ahead(store_time: StoreTime, clean_store: str) -> None:
    """The time of being down counts from the beginning of the epoch, by the clock that it has."""
    limits = FencingLimits(after_ms=60_000, most=1, percent=0, within_ms=60_000)
    async with at_work(clean_store, 4, 4, 4) as work:
        await work.active(MINE)
        await jump(work, store_time, AHEAD_MS)
        await jump(work, store_time, 0)
        async with raw_client(clean_store) as raw:
            await raw.hset(work.store.keys.host("h0"), "alive_until_ms", 1)
            await raw.zadd(work.store.keys.hosts, {"h0": 1})
            assert await work.store.fencing.begin("h0", limits) is None
            began_ms = int(await raw.hget(work.store.keys.meta, "began_ms"))
            await raw.hset(work.store.keys.meta, "began_ms", began_ms - 60_000)
        assert isinstance(await work.store.fencing.begin("h0", limits), FencingBegun)


async def test_the_deadline_of_an_imported_claim_is_a_time_of_the_present_clock(
    store_time: StoreTime, clean_store: str
) -> None:
    """An archive is of a cell whose clock has jumped otherwise."""
    async with at_work(clean_store, 4) as work, raw_client(clean_store) as raw:
        await work.active(MINE)
        exported = await raw.hgetall(work.store.keys.claim("mine")) | {"clock_shift_ms": "1000"}
        await raw.delete(work.store.keys.claim("mine"))
        await work.store.raise_epoch((await work.store.tick()).epoch)
        store_time.set_ahead(AHEAD_MS)
        await work.store.tick()
        await work.store.repair.restore({"mine": exported})
        found = await raw.hgetall(work.store.keys.claim("mine"))
        shift_ms = await raw.hget(work.store.keys.meta, "clock_shift_ms")
        assert found["runtime_deadline_ms"] == exported["runtime_deadline_ms"]
        assert found["clock_shift_ms"] == shift_ms
