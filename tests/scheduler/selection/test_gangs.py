"""A gang whose members are not all active yet ends as a whole when one member ends, unless its owner released it."""

import pytest

from redsched.errors import ClaimState
from redsched.model import ClaimStatus, Request
from tests.scheduler.working import at_work

TWO_PLACES = Request({"VCPU": 2}, count=2, claim_ids=("one", "two"))


async def test_the_failure_of_one_ends_all(clean_store: str) -> None:
    """A host that runs another member is asked to stop it, and nothing remains to be reconciled."""
    async with at_work(clean_store, 2, 2) as work:
        placed = {one.host: one for one in (await work.scheduler.select(TWO_PLACES)).selections}
        await work.work([0])
        failing = placed["h1"]
        await work.store.claims.fail("h1", failing.claim_id or "", failing.token or "", by_host=True)
        await work.settle()
        assert await work.held() == {}
        assert (await work.scheduler.claims.get(placed["h0"].claim_id or "")).state is ClaimStatus.ENDED
        await work.is_sound()


async def test_what_fails_gets_no_alternate_while_the_others_are_waited_for(clean_store: str) -> None:
    """A failed member is not placed without the others: the whole gang is released. A move is refused too."""
    async with at_work(clean_store, 2, 2, 2) as work:
        placed = {one.host: one for one in (await work.scheduler.select(TWO_PLACES)).selections}
        first, other = placed.values()
        await work.work([int(first.host[1:])])
        with pytest.raises(ClaimState, match="belongs to a gang that is not active yet"):
            await work.scheduler.claims.move(other.claim_id or "", other.token or "")
        with pytest.raises(ClaimState, match=r"has failed and is released; .* belongs to a gang"):
            await work.scheduler.claims.fail(other.claim_id or "", other.token or "")
        await work.settle()
        assert await work.held() == {}
        await work.is_sound()


async def test_the_removal_of_a_host_ends_all(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2) as work:
        await work.scheduler.select(TWO_PLACES)
        await work.store.hosts.forget("h1", force=True)
        await work.settle()
        assert await work.held() == {}


async def test_its_owner_may_let_one_go(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2) as work:
        await work.scheduler.select(TWO_PLACES)
        await work.scheduler.claims.release("one")
        await work.settle()
        assert (await work.scheduler.claims.get("two")).state is ClaimStatus.ACTIVE
        await work.is_sound()


async def test_once_all_are_active_each_stands_alone(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2) as work:
        placed = (await work.scheduler.select(TWO_PLACES)).selections
        await work.work()
        first = placed[0]
        await work.store.claims.fail(first.host, first.claim_id or "", first.token or "", by_host=True)
        await work.settle()
        assert (await work.scheduler.claims.get("two")).state is ClaimStatus.ACTIVE
