"""After a failure the next host that still fits takes the work; it is never two hosts' and never nobody's."""

import asyncio
from typing import Any

import pytest

from redsched.errors import ClaimState, NoValidHost, StaleToken
from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from redsched.store.codec.results import ScriptResult
from tests.scheduler.working import BY_HAND, at_work
from tests.support.cells import raw_client

TWO = Request({"VCPU": 2}, claim_ids=("mine",), alternates=2)


async def test_the_next_alternate_takes_it(clean_store: str) -> None:
    """In the order given, what does not fit any more is passed over, and it keeps its id."""
    async with at_work(clean_store, 6, 4, 3) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        assert (found.host, found.alternates) == ("h0", ("h1", "h2"))
        await work.scheduler.select(Request({"VCPU": 3}, hosts=frozenset({"h1"})))
        now = await work.scheduler.migrations.fail("mine", found.token or "", found.alternates)
        assert (now.host, now.id, now.state) == ("h2", "mine", ClaimStatus.CLAIMED)
        assert "h0" not in await work.held()
        await work.settle()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE
        await work.is_sound()


async def test_without_alternates_it_is_decided_again(clean_store: str) -> None:
    """Not on the host that failed it, nor on the first one, when the second fails too."""
    async with at_work(clean_store, 6, 5, 4) as work:
        token = (await work.scheduler.select(TWO)).selections[0].token or ""
        for host in ("h1", "h2"):
            now = await work.scheduler.migrations.fail("mine", token)
            assert now.host == host
            token = now.token
        with pytest.raises(NoValidHost) as refused:
            await work.scheduler.migrations.fail("mine", token)
        assert refused.value.facts["claim_id"] == now.id
        assert await work.held() == {}
        assert (await work.scheduler.claims.get("mine")).end_reason is EndReason.FAILED


async def test_what_its_host_failed_finds_another_place(clean_store: str) -> None:
    """Mostly it is the host that knows first."""
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        await work.store.claims.fail("h0", "mine", found.token or "", by_host=True)
        assert (await work.scheduler.migrations.fail("mine", found.token or "")).host == "h1"


async def test_work_that_runs_is_asked_back(clean_store: str) -> None:
    """Its next placement is there at once, and the old host stops it."""
    async with at_work(clean_store, 6, 5) as work:
        claim = await work.active(TWO)
        now = await work.scheduler.migrations.fail("mine", claim.token)
        states = {one.host: one.state for one in now.placements}
        assert (now.host, states) == ("h1", {"h1": ClaimStatus.CLAIMED, "h0": ClaimStatus.ENDING})
        await work.settle()
        assert await work.held() == {"h1": ["mine"]}


async def test_what_is_being_moved_continues_where_it_is_moved_to(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        claim = await work.active(TWO)
        target, _ = await work.scheduler.migrations.move("mine", claim.token)
        assert (await work.scheduler.migrations.fail("mine", claim.token)).token == target.token
        await work.settle()
        assert await work.held() == {"h1": ["mine"]}


async def test_none_wanted_only_ends_it(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        ended = await work.scheduler.migrations.fail("mine", found.token or "", ())
        assert (ended.id, ended.state, ended.end_reason) == ("mine", ClaimStatus.ENDED, EndReason.FAILED)
        assert await work.held() == {}


async def test_sent_again_it_is_the_first_outcome(clean_store: str) -> None:
    """From anywhere, at once and later; the token of a placing before that is stale."""
    async with at_work(clean_store, 6, 5, 4) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        token = (await work.scheduler.select(TWO)).selections[0].token or ""
        both = (work.scheduler, other) * 3
        found = await asyncio.gather(*(one.migrations.fail("mine", token) for one in both))
        assert len({one.token for one in found}) == 1
        await work.settle()
        assert (await other.migrations.fail("mine", token)).token == found[0].token
        assert sum(len(ids) for ids in (await work.held()).values()) == 1
        with pytest.raises(StaleToken):
            await other.migrations.fail("mine", "1-a.1")


async def test_without_its_request_it_ends_and_says_so(clean_store: str) -> None:
    """A store that was wiped knows none."""
    async with at_work(clean_store, 6, 5) as work:
        found = (await work.scheduler.select(TWO)).selections[0]
        async with raw_client(clean_store) as raw:
            await raw.delete(work.store.keys.request(TWO.digest()))
        with pytest.raises(
            ClaimState, match="has failed and is released; the store does not have the request of claim mine"
        ):
            await work.scheduler.migrations.fail("mine", found.token or "")
        assert await work.held() == {}


async def test_a_scheduler_that_dies_before_it_places_the_failed_one_again(clean_store: str) -> None:
    """The claim is pending; any sweeper gives it its next placement."""
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
    """The work still runs where it was, which is the answer; what has begun at the target is asked to stop."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target, _ = await work.scheduler.migrations.move("mine", claim.token, hosts=("h1",))
        if is_started:
            await work.store.claims.accept("h1", "mine", target.token, 60)
        now = await work.scheduler.migrations.fail("mine", target.token, alternates)
        assert (now.state, now.host, now.token) == (ClaimStatus.ACTIVE, "h0", claim.token)
        assert {one.host: one.state for one in now.placements if one.host != "h0"} == (
            {"h1": ClaimStatus.ENDING} if is_started else {}
        )
        await work.settle()
        assert await work.held() == {"h0": ["mine"]}
        await work.is_sound()


async def test_a_target_that_fails_is_not_placed_on_other_hosts(clean_store: str) -> None:
    """Refused before anything has changed: what is meant is another move."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target, _ = await work.scheduler.migrations.move("mine", claim.token, hosts=("h1",))
        with pytest.raises(ClaimState, match=r"it stays active on h0: .* move it again to one of h2"):
            await work.scheduler.migrations.fail("mine", target.token, ("h2",))
        assert await work.held() == {"h0": ["mine"], "h1": ["mine"]}


async def test_a_target_that_fails_when_its_source_has_gone_ends_the_claim(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source ends after the claim was read: what is asked for decides, and nothing stays pending for ever."""
    async with at_work(clean_store, 6, 5, 4) as work:
        claim = await work.active(TWO)
        target, _ = await work.scheduler.migrations.move("mine", claim.token, hosts=("h1",))
        fail = work.store.claims.fail

        async def source_first(*arguments: Any, **named: Any) -> ScriptResult:
            monkeypatch.setattr(work.store.claims, "fail", fail)
            await work.store.claims.fail("h0", "mine", claim.token, by_host=True)
            return await fail(*arguments, **named)

        monkeypatch.setattr(work.store.claims, "fail", source_first)
        now = await work.scheduler.migrations.fail("mine", target.token, ())
        assert (now.state, now.end_reason) == (ClaimStatus.ENDED, EndReason.FAILED)
        await work.settle()
        assert await work.held() == {}
        await work.is_sound()
