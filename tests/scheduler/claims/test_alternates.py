"""A claim that fails is placed on the next host that fits; it never runs on two hosts and is never lost."""

import asyncio
from dataclasses import replace

import pytest

from redsched.errors import ClaimState, NoValidHost, StaleToken
from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from tests.scheduler.working import BY_HAND, at_work
from tests.support.builders.cells import raw_client
from tests.support.interleaving import before_next

TWO = Request({"VCPU": 2}, claim_ids=("mine",), alternates=2)


async def test_the_next_alternate_takes_it(clean_store: str) -> None:
    """Alternates are tried in the order given; one that no longer fits is skipped, and the claim keeps its id."""
    async with at_work(clean_store, 6, 4, 3) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        assert (found.host, found.alternates) == ("h0", ("h1", "h2"))
        await work.scheduler.select(Request({"VCPU": 3}, hosts=frozenset({"h1"})))
        now = await work.scheduler.claims.fail("mine", found.token or "", found.alternates)
        assert (now.host, now.claim_id, now.state) == ("h2", "mine", ClaimStatus.CLAIMED)
        assert "h0" not in await work.held()
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE
        await work.is_sound()


async def test_an_alternate_that_has_left_the_zone_is_skipped(clean_store: str) -> None:
    """Alternates were found when the claim was made; what its request requires is tested again."""
    async with at_work(clean_store, 6, 5, 4) as work:
        found = (await work.scheduler.select(replace(TWO, zones=frozenset({"default"})))).selections[0]
        assert (found.host, found.alternates) == ("h0", ("h1", "h2"))
        work.hosts[1].report = replace(work.hosts[1].report, zone="az9")
        await work.hosts[1].speak()
        assert (await work.scheduler.claims.fail("mine", found.token or "", found.alternates)).host == "h2"


async def test_without_alternates_it_is_decided_again(clean_store: str) -> None:
    """The new decision excludes the host that failed, and after a second failure both hosts."""
    async with at_work(clean_store, 6, 5, 4) as work:
        token = (await work.scheduler.select(TWO)).selections[0].token or ""
        for host in ("h1", "h2"):
            now = await work.scheduler.claims.fail("mine", token)
            assert now.host == host
            token = now.token
        with pytest.raises(NoValidHost) as refused:
            await work.scheduler.claims.fail("mine", token)
        assert refused.value.facts.claim_id == now.claim_id
        assert await work.held() == {}
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.FAILED


async def test_what_its_host_failed_finds_another_place(clean_store: str) -> None:
    """Usually the host reports the failure before the caller does."""
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.store.claims.fail("h0", "mine", found.token or "", by_host=True)
        assert (await work.scheduler.claims.fail("mine", found.token or "")).host == "h1"


async def test_work_that_runs_is_asked_back(clean_store: str) -> None:
    """The claim gets its next placement at once, and the old host is asked to stop the work."""
    async with at_work(clean_store, 6, 5) as work:
        claim = await work.active(TWO)
        now = await work.scheduler.claims.fail("mine", claim.token)
        states = {one.host: one.state for one in now.placements}
        assert (now.host, states) == ("h1", {"h1": ClaimStatus.CLAIMED, "h0": ClaimStatus.ENDING})
        await work.settle()
        assert await work.held() == {"h1": ["mine"]}


async def test_what_is_being_moved_continues_where_it_is_moved_to(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token)
        assert (await work.scheduler.claims.fail("mine", claim.token)).token == target.token
        await work.settle()
        assert await work.held() == {"h1": ["mine"]}


async def test_none_wanted_only_ends_it(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        ended = await work.scheduler.claims.fail("mine", found.token or "", ())
        assert (ended.claim_id, ended.state, ended.end_reason) == ("mine", ClaimStatus.ENDED, EndReason.FAILED)
        assert await work.held() == {}


async def test_an_end_does_not_hit_what_another_scheduler_has_placed_meanwhile(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(clean_store, 6, 5) as work:
        token = (await work.scheduler.select(TWO)).selections[0].token or ""

        async def placed_again() -> None:
            await work.store.claims.fail("h0", "mine", token, by_host=True)
            claim = await work.scheduler.claims.get("mine")
            await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), claim)

        before_next(monkeypatch, work.store.claims, "release", placed_again)
        with pytest.raises(StaleToken):
            await work.scheduler.claims.fail("mine", token, ())
        assert await work.held() == {"h1": ["mine"]}


async def test_sent_again_it_is_the_first_outcome(clean_store: str) -> None:
    """Any scheduler repeats the first outcome, at once and later; the token of an earlier placement is stale."""
    async with at_work(clean_store, 6, 5, 4) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        token = (await work.scheduler.select(TWO)).selections[0].token or ""
        both = (work.scheduler, other) * 3
        found = await asyncio.gather(*(one.claims.fail("mine", token) for one in both))
        assert len({one.token for one in found}) == 1
        await work.settle()
        assert (await other.claims.fail("mine", token)).token == found[0].token
        assert sum(len(ids) for ids in (await work.held()).values()) == 1
        with pytest.raises(StaleToken):
            await other.claims.fail("mine", "1-a.1")


async def test_without_its_request_it_ends_and_says_so(clean_store: str) -> None:
    """A wiped store no longer has the request, so the claim cannot be placed again."""
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        async with raw_client(clean_store) as raw:
            await raw.delete(work.store.keys.request(TWO.digest()))
        with pytest.raises(
            ClaimState, match="has failed and is released; the store does not have the request of claim mine"
        ):
            await work.scheduler.claims.fail("mine", found.token or "")
        assert await work.held() == {}


async def test_a_scheduler_that_dies_before_it_places_the_failed_one_again(clean_store: str) -> None:
    """The claim stays pending, and any scheduler's sweep places it again."""
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.store.claims.fail("h0", "mine", found.token or "", by_host=False, retry=True)
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.PENDING
        assert await work.held() == {}
        await work.settle()
        now = await work.scheduler.claims.get("mine")
        assert (now.host, now.state) == ("h1", ClaimStatus.ACTIVE)


@pytest.mark.parametrize("alternates", [None, ()])
@pytest.mark.parametrize("is_started", [False, True])
async def test_a_target_that_fails_ends_alone(
    clean_store: str, alternates: tuple[str, ...] | None, is_started: bool
) -> None:
    """The reply shows the source, where the work still runs; a target that has started is asked to stop."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        if is_started:
            await work.store.claims.accept("h1", "mine", target.token, 60)
        now = await work.scheduler.claims.fail("mine", target.token, alternates)
        assert (now.state, now.host, now.token) == (ClaimStatus.ACTIVE, "h0", claim.token)
        assert {one.host: one.state for one in now.placements if one.host != "h0"} == (
            {"h1": ClaimStatus.ENDING} if is_started else {}
        )
        await work.settle()
        assert await work.held() == {"h0": ["mine"]}
        await work.is_sound()


@pytest.mark.parametrize("confirmed", ["before", "meanwhile"])
@pytest.mark.parametrize("alternates", [None, ()])
async def test_a_target_that_fails_once_it_runs_is_not_answered_with_its_source(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, alternates: tuple[str, ...] | None, confirmed: str
) -> None:
    """The move is complete, so the source no longer counts: the claim is placed on another host, or it ends."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        if confirmed == "before":
            await work.work([1])
        else:
            before_next(monkeypatch, work.store.claims, "fail", lambda: work.work([1]))
        now = await work.scheduler.claims.fail("mine", target.token, alternates)
        if alternates is not None:
            assert now.state is ClaimStatus.ENDING
        elif confirmed == "before":
            assert (now.host, now.state) == ("h2", ClaimStatus.CLAIMED)
        else:
            assert now.state is ClaimStatus.PENDING
        await work.settle()
        assert await work.held() == ({} if now.state is ClaimStatus.ENDING else {"h2": ["mine"]})
        await work.is_sound()


async def test_a_target_that_fails_is_not_placed_on_other_hosts(clean_store: str) -> None:
    """The call is refused before it changes anything: the caller has to move the claim again instead."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        with pytest.raises(ClaimState, match=r"it stays active on h0: .* move it again to one of h2"):
            await work.scheduler.claims.fail("mine", target.token, ("h2",))
        assert await work.held() == {"h0": ["mine"], "h1": ["mine"]}


async def test_a_target_that_fails_when_its_source_has_gone_ends_the_claim(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source ends after the claim was read: with no alternates wanted the claim ends, and is not left pending."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        before_next(
            monkeypatch,
            work.store.claims,
            "fail",
            lambda: work.store.claims.fail("h0", "mine", claim.token, by_host=True),
        )
        now = await work.scheduler.claims.fail("mine", target.token, ())
        assert (now.state, now.end_reason) == (ClaimStatus.ENDED, EndReason.FAILED)
        await work.settle()
        assert await work.held() == {}
        await work.is_sound()
