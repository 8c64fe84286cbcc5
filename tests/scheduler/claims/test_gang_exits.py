"""What becomes of the other members of an active gang when one ends by itself: `gang_on_exit`."""

from dataclasses import replace

import pytest

from redsched.errors import ClaimState, NoValidHost
from redsched.model import (
    Claim,
    ClaimStatus,
    EndReason,
    FromWhy,
    GangMember,
    GangOnExit,
    OnExit,
    Relation,
    RelationType,
    Request,
)
from redsched.scheduler import Scheduler
from redsched.scheduler.claims.replacements import ReplacementSpec
from redsched.store.codec.claim_codec import counted_by
from tests.scheduler.working import BY_HAND, QUICK, Work, at_work, empty
from tests.support.builders.cells import raw_client
from tests.support.waiting import wait_until

IDS = ("a", "b", "c")
RANKS = Request({"VCPU": 2}, count=3, claim_ids=IDS)
RELEASE = replace(RANKS, gang_on_exit=GangOnExit.RELEASE)
REPLACE = replace(RANKS, on_exit=OnExit.REPLACE, gang_on_exit=GangOnExit.REPLACE)
ACTIVE, ENDED, PENDING = ClaimStatus.ACTIVE, ClaimStatus.ENDED, ClaimStatus.PENDING


async def start(work: Work, request: Request) -> dict[str, Claim]:
    """Select a gang, start its work, and return its claims."""
    await work.scheduler.select(request)
    await work.work()
    found = await claims(work)
    assert {one.state for one in found.values()} == {ACTIVE}
    return found


async def claims(work: Work) -> dict[str, Claim]:
    return {one: await work.scheduler.claims.get(one) for one in IDS}


async def ends(work: Work, claim: Claim, end_reason: EndReason = EndReason.WORK_ENDED) -> None:
    """Have the host report that the work of a claim has ended, and that the claim ends with it."""
    await work.store.claims.gone(claim.host, claim.claim_id, claim.token, end_reason, {}, reason="no process 7 is left")


async def fails(work: Work, claim: Claim) -> None:
    """Have the host report that the work of a claim has failed, and that it is to be placed again."""
    await work.store.claims.fail(claim.host, claim.claim_id, claim.token, by_host=True, reason="no process 7 is left")


async def states(work: Work) -> dict[str, str]:
    return {one.claim_id: f"{one.state} {one.end_reason or ''}".strip() for one in (await claims(work)).values()}


async def runs_again(work: Work) -> dict[str, Claim]:
    """Sweep and work until all members are active; return them."""

    async def is_so() -> bool:
        await work.sweep()
        await work.work()
        return {one.state for one in (await claims(work)).values()} == {ACTIVE}

    await wait_until(is_so, timeout=30, what="the gang runs again")
    return await claims(work)


async def test_the_others_go_on_by_default(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2) as work:
        await ends(work, (await start(work, RANKS))["a"])
        await work.settle()
        assert await states(work) == {"a": "ended work-ended", "b": "active", "c": "active"}


async def test_the_others_are_released_with_the_reason(clean_store: str) -> None:
    """Their hosts are asked to stop the work, and nothing is left in the end."""
    async with at_work(clean_store, 2, 2, 2) as work:
        found = await start(work, RELEASE)
        await ends(work, found["a"])
        await work.sweep()
        assert await states(work) == {"a": "ended work-ended", "b": "ending released", "c": "ending released"}
        reason = (await claims(work))["b"].reason
        assert reason is not None
        assert reason.text == "claim a of its gang ended on h0 (work-ended): no process 7 is left"
        await work.settle()
        assert set((await states(work)).values()) == {"ended work-ended", "ended released"}
        assert await work.held() == {}
        await work.is_sound()


async def test_one_place_is_no_gang(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2) as work:
        one = replace(REPLACE, count=1, claim_ids=("a",))
        claim = await work.active(one)
        assert (claim.gang_on_exit, claim.gang_members) == (GangOnExit.KEEP, {})
        await fails(work, claim)
        cell = work.scheduler.cells.named("c1")
        await work.scheduler.migrations.place_again(cell, await work.scheduler.claims.get("a"))
        assert (await work.scheduler.claims.get("a")).host == "h1"


@pytest.mark.parametrize("request_", [RELEASE, REPLACE], ids=["release", "replace"])
async def test_a_member_that_its_owner_releases_ends_alone(clean_store: str, request_: Request) -> None:
    async with at_work(clean_store, 2, 2, 2) as work:
        await start(work, request_)
        await work.scheduler.claims.release("a")
        await work.settle()
        assert await states(work) == {"a": "ended released", "b": "active", "c": "active"}
        await work.is_sound()


async def test_another_scheduler_finishes_what_one_has_begun(clean_store: str) -> None:
    """The end and what is to follow are written together: nothing depends on the scheduler that sees the end."""
    async with at_work(clean_store, 2, 2, 2) as work, raw_client(clean_store) as raw:
        await ends(work, (await start(work, RELEASE))["a"])
        ended = (await claims(work))["a"]
        assert (ended.gang_exit, await raw.pttl(work.store.keys.claim("a"))) == (GangOnExit.RELEASE, -1)
        [b] = (await work.store.claims.read(["b"])).values()
        await work.store.claims.release(b.host, "b", objects=counted_by(b))  # and here the first one dies
        async with Scheduler.connect(clean_store, BY_HAND) as other:
            await Work(other, work.store, work.hosts).settle()
        assert await states(work) == {"a": "ended work-ended", "b": "ended released", "c": "ended released"}
        assert (await claims(work))["a"].gang_exit is None
        assert await raw.pttl(work.store.keys.claim("a")) > 0
        await work.is_sound()


async def test_the_audit_finds_an_end_that_nobody_would_follow(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2) as work, raw_client(clean_store) as raw:
        await ends(work, (await start(work, RELEASE))["a"])
        await raw.zrem(work.store.keys.reconcile, "a")
        assert [one.thing for one in (await work.scheduler.audit()).problems] == ["reconcile a", "a"]
        await work.scheduler.repair()
        await work.settle()
        assert await work.held() == {}


async def test_all_members_are_stopped_and_placed_again(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await fails(work, before["b"])
        after = await runs_again(work)
        assert all(after[one].token != before[one].token for one in IDS)
        assert sorted(one.host for one in after.values()) == ["h0", "h1", "h2"]
        assert {one.gang_exit for one in after.values()} == {None}
        assert {one.restarts for one in after.values()} == {1}
        came = {name: (one.placements[0].from_host, one.placements[0].from_why) for name, one in after.items()}
        assert came == {name: (one.host, FromWhy.GANG) for name, one in before.items()}
        await work.is_sound()


async def test_nothing_starts_before_every_member_is_gone(clean_store: str) -> None:
    """There is room beside the work that still runs, and a member must not run twice."""
    async with at_work(clean_store, 9, 9, 9) as work:
        spread = (RelationType.APART, ("rank",))
        request = Request(
            members=(GangMember("rank", Request({"VCPU": 2}, count=3)),),
            relations=(Relation(*spread),),
            claim_ids=IDS,
            on_exit=OnExit.REPLACE,
            gang_on_exit=GangOnExit.REPLACE,
        )
        found = await start(work, request)
        await fails(work, found["a"])
        await due(work, "a")
        for number in range(3):
            await work.sweep()
            assert set((await states(work)).values()) == {"pending failed"}
            host = found[IDS[number]].host
            await work.work([int(host[1:])])
        after = await runs_again(work)
        assert len({one.host for one in after.values()}) == 3
        await work.is_sound()


async def due(work: Work, claim_id: str) -> None:
    """Wait until the pause before the next attempt has passed."""

    async def is_so() -> bool:
        at_ms = await work.store.due.reconcile_at_ms(claim_id)
        return at_ms is not None and at_ms <= (await work.store.tick()).now_ms

    await wait_until(is_so, timeout=30, what="the claim is due")


async def test_the_gang_waits_until_there_is_room_for_all_of_it(clean_store: str) -> None:
    """Another claim takes the room of the member that failed: the others do not start without it."""
    async with at_work(clean_store, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await fails(work, before["b"])
        [other] = (await work.scheduler.select(Request({"VCPU": 2}))).selections
        await due(work, "b")
        cell = work.scheduler.cells.named("c1")
        await work.scheduler.migrations.place_again(cell, (await claims(work))["b"])
        await work.work()
        with pytest.raises(NoValidHost, match="gang of a, b, c is placed again as a whole, 3 members: "):
            await work.scheduler.migrations.place_again(cell, (await claims(work))["b"])
        now = await claims(work)
        assert {one.state for one in now.values()} == {PENDING}
        assert all("there is no place for it now: " in one.reason.text for one in now.values() if one.reason)
        await work.scheduler.claims.release(other.claim_id or "")
        await runs_again(work)
        await work.is_sound()


async def test_another_scheduler_finishes_a_restart_that_one_has_begun(clean_store: str) -> None:
    """The first one dies when it has stopped one of the others, which waits for the rest like the one that failed."""
    async with at_work(clean_store, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await fails(work, before["a"])
        b = before["b"]
        await work.store.claims.requeue_with_gang(b.host, "b", b.token, "a has ended", counted_by(b))
        assert await states(work) == {"a": "pending failed", "b": "pending failed", "c": "active"}
        async with Scheduler.connect(clean_store, BY_HAND) as other:
            after = await runs_again(Work(other, work.store, work.hosts))
        assert all(after[one].token != before[one].token for one in IDS)
        await work.is_sound()


async def test_a_member_whose_gang_starts_again_is_not_placed_alone(clean_store: str) -> None:
    """The script refuses it: a scheduler of an earlier moment does not know of the restart."""
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await fails(work, before["a"])
        cell, claim = work.scheduler.cells.named("c1"), (await claims(work))["a"]
        alone = ReplacementSpec(EndReason.FAILED)
        with pytest.raises(ClaimState, match="belongs to a gang"):
            await work.scheduler.migrations._replacements.place(cell, claim, alone)
        await runs_again(work)


async def test_two_schedulers_place_a_gang_again_once(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2, 2, 2, 2, settings=QUICK) as work, Scheduler.connect(clean_store, QUICK):
        before = await start(work, REPLACE)
        await fails(work, before["a"])
        await runs_again(work)
        await work.settle()
        held = await work.held()
        assert sorted(one for ids in held.values() for one in ids) == list(IDS)
        assert {one.attempts for one in (await claims(work)).values()} == {1}
        await work.is_sound()


async def test_a_gang_that_fails_again_while_it_starts_is_placed_again_as_a_whole(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2) as work:
        await fails(work, (await start(work, REPLACE))["b"])
        await until_placed(work)
        await fails(work, (await claims(work))["a"])
        after = await runs_again(work)
        assert sorted(one.host for one in after.values()) == ["h0", "h1", "h2"]
        await work.is_sound()


async def test_the_gang_ends_with_a_member_whose_attempts_are_used_up(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2) as work:
        await fails(work, (await start(work, replace(REPLACE, max_attempts=1)))["b"])
        await until_placed(work)
        await fails(work, (await claims(work))["a"])
        await work.settle()
        assert await states(work) == {"a": "ended failed", "b": "ended released", "c": "ended released"}
        assert await work.held() == {}
        await work.is_sound()


async def test_a_member_whose_work_is_done_leaves_the_others_alone(clean_store: str) -> None:
    """The others are about to end too: with `replace`, only failures start the gang again."""
    async with at_work(clean_store, 2, 2, 2) as work:
        await ends(work, (await start(work, REPLACE))["a"])
        await work.settle()
        assert await states(work) == {"a": "ended work-ended", "b": "active", "c": "active"}


async def test_a_later_claim_with_the_id_of_a_member_that_has_ended_goes_on(clean_store: str) -> None:
    """It may be anybody's: ids are free again once an ended claim is forgotten."""
    async with at_work(clean_store, 2, 2, 2) as work, raw_client(clean_store) as raw:
        found = await start(work, REPLACE)
        await ends(work, found["a"])
        await work.settle()
        assert await raw.delete(work.store.keys.claim("a")) == 1
        other = await work.active(Request({"VCPU": 2}, claim_ids=("a",), project="other"))
        await fails(work, found["b"])
        await runs_again(work)
        now = await claims(work)
        assert (now["a"].token, now["a"].project) == (other.token, "other")
        assert now["b"].token != found["b"].token
        assert now["c"].token != found["c"].token
        await work.is_sound()


async def test_a_caller_that_reports_a_failure_gets_the_member_as_pending(clean_store: str) -> None:
    """It is not placed alone, whatever alternates the caller names."""
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        claim = await work.scheduler.claims.fail("a", before["a"].token, alternates=["h3"])
        assert claim.state is PENDING
        after = await runs_again(work)
        assert all(after[one].token != before[one].token for one in IDS)


async def test_evacuation_places_the_whole_gang_again(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await work.scheduler.hosts.write_off("h1", evacuate=True, force=True)
        after = await runs_again(work)
        assert sorted(one.host for one in after.values()) == ["h0", "h2", "h3"]
        assert all(after[one].token != before[one].token for one in IDS)
        assert {one.restarts for one in after.values()} == {1}
        why = {before[name].host: one.placements[0].from_why for name, one in after.items()}
        assert why == {"h0": FromWhy.GANG, "h1": FromWhy.WRITTEN_OFF, "h2": FromWhy.GANG}
        await work.is_sound()


async def test_evacuation_ends_a_gang_that_ends_with_its_members(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        await start(work, RELEASE)
        await work.scheduler.hosts.write_off("h1", evacuate=True, force=True)
        await work.settle()
        assert await states(work) == {"a": "ended released", "b": "ended failed", "c": "ended released"}
        await work.is_sound()


async def test_a_drained_host_moves_a_member_alone(clean_store: str) -> None:
    """Its work runs until it has moved, so nothing has ended."""
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        before = await start(work, REPLACE)
        await work.scheduler.hosts.drain("h1", move=True)
        await empty(work, "h1")
        after = await claims(work)
        assert [one for one in IDS if after[one].token != before[one].token] == ["b"]


async def until_placed(work: Work) -> None:
    """Sweep, and let hosts stop work, until all members have been placed again and none has started."""

    async def is_so() -> bool:
        found = (await claims(work)).values()
        if {one.state for one in found} == {ClaimStatus.CLAIMED}:
            return True
        if any(one.placements for one in found):
            await work.work()
        await work.sweep()
        return False

    await wait_until(is_so, timeout=30, what="the gang is placed again")
