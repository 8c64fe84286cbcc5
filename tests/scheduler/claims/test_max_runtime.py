"""Claims that are past their `max_runtime_s` and that no agent stops: they end instead of being placed elsewhere."""

from dataclasses import replace

import pytest

from redsched.errors import ClaimState
from redsched.model import Claim, ClaimStatus, EndReason, OnExit, Request
from redsched.scheduler import Scheduler
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import raw_client

MINE = Request({"VCPU": 2}, claim_ids=("mine",), max_runtime_s=3600)
TIME_IS_UP = "its max_runtime_s of 3600 s has passed"


async def make_overdue(work: Work, url: str) -> None:
    """Set the deadline of the claim to the past."""
    async with raw_client(url) as raw:
        await raw.hset(work.store.keys.claim("mine"), "runtime_deadline_ms", "1")


async def mine(scheduler: Scheduler) -> Claim:
    return await scheduler.claims.get("mine")


@pytest.mark.parametrize("on_exit", [OnExit.RELEASE, OnExit.REPLACE])
async def test_a_pending_claim_ends(clean_store: str, on_exit: OnExit) -> None:
    """Another host has room for it."""
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(replace(MINE, on_exit=on_exit))
        await work.store.claims.fail("h0", "mine", claim.token, by_host=True, retry=True, reason="exit code 3")
        await make_overdue(work, clean_store)
        assert (await mine(work.scheduler)).state is ClaimStatus.PENDING
        await work.sweep()
        ended = await mine(work.scheduler)
        assert (ended.state, ended.end_reason) == (ClaimStatus.ENDED, EndReason.MAX_RUNTIME)
        assert await work.held() == {}
        await work.is_sound()


async def test_a_caller_who_places_it_again_is_told(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        await work.store.claims.fail("h0", "mine", claim.token, by_host=True, retry=True)
        await make_overdue(work, clean_store)
        with pytest.raises(ClaimState, match="before its max_runtime_s of 3600 s had passed"):
            await work.scheduler.claims.fail("mine", claim.token, ["h1"])
        assert (await mine(work.scheduler)).end_reason is EndReason.MAX_RUNTIME


async def test_on_a_dead_host_it_ends_when_the_host_is_evacuated(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        await work.active(MINE)
        await make_overdue(work, clean_store)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        await work.sweep()
        ended = await mine(work.scheduler)
        assert (ended.state, ended.end_reason, ended.host) == (ClaimStatus.ENDED, EndReason.MAX_RUNTIME, "h0")
        assert ended.reason is not None
        assert ended.reason.text == TIME_IS_UP
        await work.is_sound()


async def test_on_a_drained_host_it_ends_where_it_is(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        await work.active(MINE)
        await make_overdue(work, clean_store)
        await work.scheduler.hosts.drain("h0", move=True)
        await work.sweep()
        assert await work.held() == {"h0": ["mine"]}
        await work.settle()
        ended = await mine(work.scheduler)
        assert (ended.state, ended.end_reason, ended.host) == (ClaimStatus.ENDED, EndReason.MAX_RUNTIME, "h0")


async def test_before_its_time_is_up_it_moves(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        before = await work.active(MINE)
        await work.scheduler.hosts.drain("h0", move=True)
        await work.sweep()
        await work.settle()
        after = await mine(work.scheduler)
        assert (after.state, after.host) == (ClaimStatus.ACTIVE, "h1")
        assert after.runtime_deadline_ms == before.runtime_deadline_ms


async def test_unshelving_gives_it_its_time_again(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        await make_overdue(work, clean_store)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        await work.scheduler.claims.unshelve("mine")
        await work.settle()
        again = await mine(work.scheduler)
        assert again.state is ClaimStatus.ACTIVE
        assert (again.runtime_deadline_ms or 0) >= (claim.runtime_deadline_ms or 0)
