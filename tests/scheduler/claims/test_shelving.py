"""Shelving: the claim's amounts are freed, its request is kept, and it can be claimed again."""

import asyncio

import pytest

from redsched.errors import ClaimState, NoValidHost, StaleToken
from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from tests.scheduler.working import BY_HAND, at_work

TWO = Request({"VCPU": 2}, claim_ids=("mine",), project="web")


async def test_a_claim_is_shelved_and_comes_back(clean_store: str) -> None:
    """Its amounts are free meanwhile; it may be unshelved on another host, under the same id."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        assert (await work.scheduler.claims.shelve("mine", claim.token)).state is ClaimStatus.ENDING
        with pytest.raises(ClaimState, match="ending by shelving"):
            await work.scheduler.claims.unshelve("mine")
        await work.settle()
        shelved = await work.scheduler.claims.get("mine")
        assert (shelved.state, shelved.end_reason, await work.held()) == (ClaimStatus.ENDED, EndReason.SHELVED, {})
        await work.scheduler.select(Request({"VCPU": 3}, hosts=frozenset({"h0"})))
        back, fresh = await work.scheduler.migrations.unshelve("mine")
        assert (back.host, back.claim_id, back.slots, back.project, fresh) == ("h1", "mine", {"VCPU": 2}, "web", True)
        again, fresh = await work.scheduler.migrations.unshelve("mine")
        assert (again.token, fresh) == (back.token, False)
        await work.settle()
        now = await work.scheduler.claims.get("mine")
        assert (now.token, now.state) == (back.token, ClaimStatus.ACTIVE)
        assert (await work.scheduler.claims.unshelve("mine")).token == back.token
        await work.is_sound()


@pytest.mark.parametrize("verb", ["release", "shelve"])
async def test_the_ids_of_a_claim_that_is_ending_cannot_be_used(clean_store: str, verb: str) -> None:
    """Its work still runs, and is about to be stopped: it is no answer to a repeated selection."""
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await getattr(work.scheduler.claims, verb)("mine", claim.token)
        with pytest.raises(ClaimState, match="mine has ended or is ending: use new ids") as refused:
            await work.scheduler.select(TWO)
        assert refused.value.facts.claims == {"mine": ClaimStatus.ENDING}


async def test_what_finds_no_place_stays_shelved(clean_store: str) -> None:
    """It stays shelved when no host fits, and when its new host fails it."""
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        other = (await work.scheduler.select(Request({"VCPU": 4}))).selections[0]
        with pytest.raises(NoValidHost):
            await work.scheduler.claims.unshelve("mine")
        await work.scheduler.claims.release(other.claim_id or "")
        back = await work.scheduler.claims.unshelve("mine")
        await work.store.claims.fail(back.host, back.claim_id, back.token, by_host=True)
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.SHELVED
        again, fresh = await work.scheduler.migrations.unshelve("mine")
        assert (again.token != back.token, fresh) == (True, True)
        assert (await work.scheduler.claims.fail("mine", again.token, ())).end_reason is EndReason.SHELVED, (
            "also where no other may"
        )


async def test_what_was_active_after_it_was_unshelved_can_fail(clean_store: str) -> None:
    """Its work ran again and crashed, and no other host has capacity: the claim has failed, and is not shelved."""
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        await work.scheduler.claims.unshelve("mine")
        await work.work()
        back = await work.scheduler.claims.get("mine")
        await work.store.claims.fail(back.host, back.claim_id, back.token, by_host=True)
        cell = work.scheduler.cells.named("c1")
        with pytest.raises(NoValidHost):
            await work.scheduler.migrations.place_again(cell, await work.scheduler.claims.get("mine"))
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.FAILED


async def test_a_shelved_claim_can_be_released(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.scheduler.claims.shelve("mine", found.token or "")
        assert (await work.scheduler.claims.shelve("mine", found.token or "")).end_reason is EndReason.SHELVED
        assert await work.scheduler.claims.release("mine")
        with pytest.raises(ClaimState):
            await work.scheduler.claims.unshelve("mine")
        await work.settle()
        await work.is_sound()


@pytest.mark.parametrize("is_claimed", [True, False])
async def test_what_is_released_before_its_new_place_is_active_is_not_shelved_again(
    clean_store: str, is_claimed: bool
) -> None:
    """A release by the claim's id gives up the shelved claim too."""
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        back = await work.scheduler.claims.unshelve("mine")
        if not is_claimed:
            await work.store.claims.accept(back.host, back.claim_id, back.token, 60)
        assert await work.scheduler.claims.release("mine") is is_claimed
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED
        with pytest.raises(ClaimState):
            await work.scheduler.claims.unshelve("mine")
        await work.is_sound()


async def test_a_release_with_a_stale_token_leaves_what_is_unshelved(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        back = await work.scheduler.claims.unshelve("mine")
        with pytest.raises(StaleToken):
            await work.scheduler.claims.release("mine", claim.token)
        await work.settle()
        now = await work.scheduler.claims.get("mine")
        assert (now.token, now.state) == (back.token, ClaimStatus.ACTIVE)


async def test_a_release_with_a_stale_token_leaves_what_is_shelved(clean_store: str) -> None:
    """The release was sent before the claim was resized, and arrives late."""
    async with at_work(clean_store, 4) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        grown = await work.scheduler.claims.resize("mine", found.token or "", {"VCPU": 3})
        await work.scheduler.claims.shelve("mine", grown.token)
        with pytest.raises(StaleToken):
            await work.scheduler.claims.release("mine", found.token or "")
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.SHELVED
        assert await work.scheduler.claims.release("mine", grown.token)
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED


async def test_what_is_released_while_its_host_still_stops_it_is_not_shelved(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        assert not await work.scheduler.claims.release("mine")
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED
        with pytest.raises(ClaimState):
            await work.scheduler.claims.unshelve("mine")
        await work.is_sound()


async def test_what_is_shelved_while_it_is_moved_is_shelved_and_can_be_released(clean_store: str) -> None:
    """The target of the move is released; the id stands for the shelved claim."""
    async with at_work(clean_store, 4, 4, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        shelved = await work.scheduler.claims.shelve("mine", claim.token)
        assert (shelved.claim_id, shelved.state, shelved.end_reason) == ("mine", ClaimStatus.ENDING, EndReason.SHELVED)
        assert not await work.scheduler.claims.release("mine")
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED
        assert (list(await work.store.claims.shelved_ids()), await work.held()) == ([], {})
        await work.is_sound()


async def test_what_was_moved_before_it_was_shelved_is_found_by_its_id_and_nothing_is_wrong(clean_store: str) -> None:
    """All of its placements have ended."""
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        await work.settle()
        await work.scheduler.claims.shelve("mine", (await work.scheduler.claims.get("mine")).token)
        await work.settle()
        assert (await work.scheduler.audit()).problems == ()
        assert (await work.scheduler.migrations.unshelve("mine"))[1]
        await work.settle()
        await work.is_sound()


async def test_what_has_been_moved_and_is_being_shelved_is_not_taken_for_unshelved(clean_store: str) -> None:
    """Its host has not stopped the work yet."""
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        await work.settle()
        now = await work.scheduler.claims.get("mine")
        await work.scheduler.claims.shelve("mine", now.token)
        with pytest.raises(ClaimState, match="ending by shelving"):
            await work.scheduler.claims.unshelve("mine")


async def test_two_who_unshelve_at_once_claim_once(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.scheduler.claims.shelve("mine", found.token or "")
        both = await asyncio.gather(*(one.claims.unshelve("mine") for one in (work.scheduler, other) * 3))
        assert len({one.token for one in both}) == 1
        assert sum(len(ids) for ids in (await work.held()).values()) == 1


async def test_only_what_is_shelved_comes_back(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        await work.active(TWO)
        with pytest.raises(ClaimState, match="is active"):
            await work.scheduler.claims.unshelve("mine")
