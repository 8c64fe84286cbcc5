"""Moving a claim: the source keeps its amounts until the target is active, and is then released."""

import asyncio

import pytest

from redsched.errors import ClaimState, NotFound, NoValidHost, StaleToken
from redsched.model import Claim, ClaimStatus, EndReason, GangMember, GroupPolicy, Relation, RelationType, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims import claims as claim_service
from redsched.scheduler.claims.by_id import find_claims
from tests.scheduler.working import BY_HAND, QUICK, at_work
from tests.support.builders.cells import raw_client
from tests.support.builders.counted_claims import group
from tests.support.fleets.hosts import speak_all
from tests.support.waiting import patience_s, wait_until

TWO = Request({"VCPU": 2}, claim_ids=("mine",), project="web", consumer="job")


async def test_a_claim_moves(clean_store: str) -> None:
    """Both placements hold their amounts until the target is active; then the claim's host is the target."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token)
        assert (target.claim_id, target.host, target.slots) == ("mine", "h1", {"VCPU": 2})
        assert (target.project, target.consumer) == ("web", "job")
        assert (await work.scheduler.claims.get("mine")).host == "h0"
        assert await work.held() == {"h0": ["mine"], "h1": ["mine"]}
        await work.settle()
        now = await work.scheduler.claims.get("mine")
        assert (now.host, now.state, now.token) == ("h1", ClaimStatus.ACTIVE, target.token)
        assert await work.held() == {"h1": ["mine"]}
        assert work.hosts[0].held == {}
        await work.is_sound()


async def test_a_claim_that_nobody_has_accepted_moves(clean_store: str) -> None:
    """A source that no agent has accepted is freed as soon as the target is active."""
    async with at_work(clean_store, 4, 3) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.scheduler.claims.move("mine", found.token or "")
        await work.work([1])
        await work.sweep()
        assert list(await work.held()) == ["h1"]


async def test_a_move_sent_again_is_the_same_move(clean_store: str) -> None:
    """A retry returns the same target during the move and after it; one with another token is refused."""
    async with at_work(clean_store, 4, 3, 2) as work:
        claim = await work.active(TWO)
        first = await work.scheduler.claims.move("mine", claim.token)
        again = await work.scheduler.claims.move("mine", claim.token, hosts=["h2"])
        assert again.token == first.token
        with pytest.raises(StaleToken):
            await work.scheduler.claims.move("mine", "1-a.1")
        await work.settle()
        later = await work.scheduler.claims.move("mine", claim.token)
        assert (later.token, later.state) == (first.token, ClaimStatus.ACTIVE)
        assert len(await work.held()) == 1


async def test_the_request_sent_again_finds_it_where_it_is_now(clean_store: str) -> None:
    """The id has one outcome, and the reply shows where the claim has moved."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token)
        await work.settle()
        again = await work.scheduler.select(TWO)
        [found] = again.selections
        assert (again.fresh, found.claim_id, found.host, found.token) == (False, "mine", "h1", target.token)


async def test_movers_at_once_move_once(clean_store: str) -> None:
    """Two schedulers move the claim several times at once: it gets one target."""
    async with at_work(clean_store, 4, 3, 3) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        claim = await work.active(TWO)
        movers = [one.claims.move("mine", claim.token) for one in (work.scheduler, other) * 4]
        found = await asyncio.gather(*movers)
        assert len({target.token for target in found}) == 1
        await work.settle()
        assert sum(len(ids) for ids in (await work.held()).values()) == 1
        await work.is_sound()


async def test_it_moves_again_and_keeps_its_id(clean_store: str) -> None:
    """The third move brings it back to its first host."""
    async with at_work(clean_store, 4, 3, 3) as work:
        claim = await work.active(TWO)
        for host in ("h1", "h2", "h0"):
            await work.scheduler.claims.move("mine", claim.token, hosts=[host])
            await work.settle()
            claim = await work.scheduler.claims.get("mine")
            assert (claim.host, claim.claim_id, claim.state) == (host, "mine", ClaimStatus.ACTIVE)
        assert await work.held() == {"h0": [claim.claim_id]}
        assert not await work.scheduler.claims.release("mine", claim.token)
        await work.settle()
        assert await work.held() == {}
        await work.is_sound()


async def test_it_is_found_as_soon_as_a_wiped_cell_has_settled(clean_store: str) -> None:
    """Its host has restored it under its id."""
    async with at_work(clean_store, 4, 3) as work, raw_client(clean_store) as raw:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        await work.settle()
        await raw.flushdb()
        await speak_all(work.hosts)
        await work.sweep()
        await raw.hset(work.store.keys.meta, "settle_at_ms", 1)
        found = await work.scheduler.claims.get("mine")
        assert (found.host, found.state) == ("h1", ClaimStatus.ACTIVE)
        assert not await work.scheduler.claims.release("mine")
        await work.settle()
        assert await work.held() == {}


async def test_another_attempt_that_a_wiped_cell_got_back_has_its_id(clean_store: str) -> None:
    """Its host restores only the retry; no record of the placement that failed before is left."""
    async with at_work(clean_store, 4, 3) as work, raw_client(clean_store) as raw:
        claim = await work.active(TWO)
        await work.scheduler.claims.fail("mine", claim.token)
        await work.settle()
        await raw.flushdb()
        await speak_all(work.hosts)
        await raw.hset(work.store.keys.meta, "settle_at_ms", 1)
        await work.settle()
        found = await work.scheduler.claims.get("mine")
        assert (found.host, found.state) == ("h1", ClaimStatus.ACTIVE)
        assert not await work.scheduler.claims.release("mine")
        await work.settle()
        assert (await work.held(), await work.scheduler.claims.release("mine")) == ({}, True)


async def test_another_scheduler_finishes_what_one_that_died_began(clean_store: str) -> None:
    """The first scheduler stops right after it has claimed the target."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        async with Scheduler.connect(clean_store, BY_HAND) as dying:
            await dying.claims.move("mine", claim.token)
        async with Scheduler.connect(clean_store, QUICK):

            async def moved() -> bool:
                await work.work()
                return list(await work.held()) == ["h1"]

            await wait_until(moved, what="the source is given back")
        assert (await work.scheduler.claims.get("mine")).host == "h1"


async def test_a_target_that_fails_leaves_the_source_as_it_was(clean_store: str) -> None:
    """The claim can then be moved again."""
    async with at_work(clean_store, 4, 3, 2) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token)
        await work.store.claims.fail(target.host, target.claim_id, target.token, by_host=True)
        await work.sweep()
        now = await work.scheduler.claims.get("mine")
        assert (now.host, now.state, now.target, now.token) == ("h0", ClaimStatus.ACTIVE, None, claim.token)
        second = await work.scheduler.claims.move("mine", claim.token, hosts=["h2"])
        assert (second.token != target.token, second.host) == (True, "h2")


async def test_a_live_move_that_takes_too_long_is_given_up(clean_store: str) -> None:
    """The target is released, and the source is unchanged."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token, live=True)
        [placement] = [one for one in target.placements if one.token == target.token]
        now_ms = (await work.store.tick()).now_ms
        assert placement.move_deadline_ms is not None
        assert now_ms + 240_000 < placement.move_deadline_ms <= now_ms + 300_000
        async with raw_client(clean_store) as raw:
            await raw.hset(work.store.keys.claim("mine"), f"placement.{placement.placed}.move_deadline_ms", "1")
            await raw.zadd(work.store.keys.deadlines, {"mine": 1})
        await work.sweep()
        await work.settle()
        assert await work.held() == {"h0": ["mine"]}
        assert (await work.scheduler.claims.get("mine")).target is None
        await work.is_sound()


async def test_a_released_claim_takes_its_target_with_it(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        await work.scheduler.claims.release("mine")
        await work.settle()
        assert await work.held() == {}
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED


async def test_it_goes_where_its_request_allows(clean_store: str) -> None:
    """A move obeys the server group and the hosts of the request, and the hosts named by the call."""
    async with at_work(clean_store, 6, 4, 4) as work:
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        one = await work.active(Request({"VCPU": 2}, server_group="web", claim_ids=("one",)))
        await work.scheduler.select(Request({"VCPU": 2}, server_group="web", claim_ids=("two",)))
        with pytest.raises(NoValidHost):
            await work.scheduler.claims.move("one", one.token, hosts=["h1"])
        target = await work.scheduler.claims.move("one", one.token)
        assert target.host == "h2"
        bound = await work.scheduler.select(Request({"VCPU": 1}, hosts=frozenset({"h0"}), claim_ids=("bound",)))
        with pytest.raises(NoValidHost, match="h0, and the claim is there or has failed there"):
            await work.scheduler.claims.move("bound", bound.selections[0].token or "")
        with pytest.raises(NoValidHost, match="the request names only h0, which excludes h1, h2"):
            await work.scheduler.claims.move("bound", bound.selections[0].token or "", hosts=["h1", "h2"])
        there = await work.scheduler.claims.move("bound", bound.selections[0].token or "", hosts=["h0"])
        assert there.host == "h0"


async def test_a_place_of_several_moves_alone(clean_store: str) -> None:
    """Once all of the request's places are active, one of them moves with its own amounts."""
    async with at_work(clean_store, 8, 8) as work:
        found = await work.scheduler.select(Request({"VCPU": 2}, count=3))
        first = found.selections[0]
        with pytest.raises(ClaimState, match="belongs to a gang that is not active yet"):
            await work.scheduler.claims.move(first.claim_id or "", first.token or "")
        await work.work()
        target = await work.scheduler.claims.move(first.claim_id or "", first.token or "")
        assert (target.host != first.host, target.slots) == (True, {"VCPU": 2})


@pytest.mark.parametrize("related", [True, False])
async def test_what_does_not_know_its_relatives_does_not_move(clean_store: str, related: bool) -> None:
    """The move could break relations that its claim has lost; a member without relations can be moved."""
    async with at_work(clean_store, 8, 8, 8) as work, raw_client(clean_store) as raw:
        members = (GangMember("db", Request({"VCPU": 2}, count=2)), GangMember("web", Request({"VCPU": 1})))
        relations = (Relation(RelationType.APART, ("db",)),)
        found = await work.scheduler.select(Request(members=members, relations=relations))
        await work.work()
        one = found.selections[0 if related else 2]
        assert one.claim_id is not None
        await raw.hdel(work.store.keys.claim(one.claim_id), "gang_members")
        if related:
            with pytest.raises(ClaimState, match="was related to other places"):
                await work.scheduler.claims.move(one.claim_id, one.token or "")
        else:
            target = await work.scheduler.claims.move(one.claim_id, one.token or "")
            assert target.slots == {"VCPU": 1}


async def test_it_waits_for_room(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2) as work:
        claim = await work.active(TWO)
        other = (await work.scheduler.select(Request({"VCPU": 2}))).selections[0]
        with pytest.raises(NoValidHost):
            await work.scheduler.claims.move("mine", claim.token)
        moving = asyncio.create_task(work.scheduler.claims.move("mine", claim.token, queue_timeout_s=60))
        await wait_until(lambda: len(work.scheduler._selector._wait_queue._waiters) == 1, what="it waits")
        await work.scheduler.claims.release(other.claim_id or "")
        async with asyncio.timeout(patience_s(30)):
            assert (await moving).host == "h1"


async def test_what_cannot_be_moved_says_so(clean_store: str) -> None:
    """Moves of an unknown claim, of one whose request is lost, and of an ended one are refused."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        with pytest.raises(NotFound):
            await work.scheduler.claims.move("none", claim.token)
        async with raw_client(clean_store) as raw:
            await raw.delete(work.store.keys.request(claim.digest))
        with pytest.raises(ClaimState, match="does not have the request of claim mine"):
            await work.scheduler.claims.move("mine", claim.token)
        await work.scheduler.claims.release("mine", force=True)
        with pytest.raises(ClaimState):
            await work.scheduler.claims.move("mine", claim.token)


async def test_a_release_that_meets_the_end_of_a_move_releases_what_it_has_become(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is read before its move ends and released after; a release with the source's token is refused."""
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.move("mine", claim.token)
        before = await find_claims(work.scheduler.cells, "mine")
        late = [before]

        async def once_late(cells: Cells, claim_id: str) -> list[tuple[Cell, Claim]]:
            return late.pop() if late else await find_claims(cells, claim_id)

        await work.settle()
        monkeypatch.setattr(claim_service, "find_claims", once_late)
        with pytest.raises(StaleToken):
            await work.scheduler.claims.release("mine", claim.token)
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE, "only that placing was meant"
        late.append(before)
        assert await work.scheduler.claims.release("mine") is False
        await work.settle()
        assert await work.held() == {}


async def test_a_move_sent_again_does_not_answer_a_target_that_is_ending(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4, 4) as work:
        claim = await work.active(Request({"VCPU": 1}, claim_ids=("mine",)))
        first = await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        await work.store.claims.accept("h1", "mine", first.token, 60)
        await work.store.claims.fail("h1", "mine", first.token, by_host=False)
        second = await work.scheduler.claims.move("mine", claim.token, hosts=("h2",))
        assert (second.host, second.state, second.token != first.token) == ("h2", ClaimStatus.CLAIMED, True)
