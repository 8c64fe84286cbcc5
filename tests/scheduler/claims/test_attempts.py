"""A claim that fails before it is active is placed again, first on its alternates, until its attempts are used up."""

import asyncio
import re
from dataclasses import replace

import pytest

from redsched.aio import end
from redsched.errors import ClaimState, NotConfirmed, NoValidHost, QuotaExceeded
from redsched.model import Claim, ClaimStatus, EndReason, OnExit, Quota, Request
from redsched.model.records.problems import FailedAttempt
from redsched.model.records.selections import Selections
from redsched.scheduler import Scheduler
from redsched.store.codec.claim_codec import counted_by
from redsched.store.commands.texts import KEPT_MS
from tests.scheduler.conftest import report_of
from tests.scheduler.working import BY_HAND, QUICK, Work, at_work
from tests.support.builders.cells import make_due, new_epoch, raw_client
from tests.support.fleets.hosts import PlainHost, speak_all
from tests.support.waiting import patience_s, wait_until

MINE = Request({"VCPU": 2}, claim_ids=("mine",))
WAITS = replace(MINE, until="active", confirm_timeout_s=600)
PENDING, CLAIMED, ACTIVE, ENDED = ClaimStatus.PENDING, ClaimStatus.CLAIMED, ClaimStatus.ACTIVE, ClaimStatus.ENDED


async def mine(work: Work) -> Claim:
    return await work.scheduler.claims.get("mine")


async def fails(work: Work, claim: Claim, reason: str = "") -> None:
    """Have the claim's host report that it could not start the work."""
    await work.store.claims.fail(claim.host, claim.claim_id, claim.token, by_host=True, reason=reason)


async def fails_until(work: Work, state: ClaimStatus) -> Claim:
    """Fail the claim on each host it is placed on until it is in this state; return the claim."""

    async def is_so() -> bool:
        claim = await mine(work)
        if claim.state is CLAIMED:
            await fails(work, claim)
        await work.sweep()
        return claim.state is state

    await wait_until(is_so, timeout=30, what=f"it is {state}")
    return await mine(work)


async def on_host(work: Work, host: str) -> Claim:
    """Wait until the claim is placed on this host, and return it."""

    async def is_there() -> bool:
        return "mine" in await work.store.hosts.claim_ids(host)

    await wait_until(is_there, timeout=30, what=f"{host} holds it")
    return await mine(work)


async def asked_for(work: Work, request: Request = WAITS) -> tuple["asyncio.Task[Selections]", Claim]:
    """Start a selection that waits for its hosts; return its task and its claim."""
    task = asyncio.create_task(work.scheduler.select(request))
    claim = await on_host(work, "h0")
    words = work.scheduler.tasks["c1"].confirmations
    await wait_until(lambda: "mine" in words._waits, what="it waits")
    return task, claim


async def test_its_alternate_takes_it_and_then_any_host(clean_store: str) -> None:
    """A better host that joined later is considered only when no alternate is left."""
    async with at_work(clean_store, 6, 4) as work:
        [found] = (await work.scheduler.select(replace(MINE, alternates=1))).selections
        assert (found.host, found.alternates) == ("h0", ("h1",))
        better = PlainHost(work.store, "h2", 50, lease_s=3600)
        await better.speak()
        await fails(work, await mine(work))
        assert (await mine(work)).state is PENDING
        await work.sweep()
        second = await mine(work)
        assert (second.host, second.state, second.attempts, second.tried) == ("h1", CLAIMED, 2, frozenset({"h0"}))
        await fails(work, second)

        async def is_placed() -> bool:
            await work.sweep()
            return (await mine(work)).state is CLAIMED

        await wait_until(is_placed, what="it is placed a third time")
        assert ((await mine(work)).host, (await mine(work)).attempts) == ("h2", 3)
        await work.is_sound()


async def test_an_alternate_that_is_full_by_then_is_passed_over(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5, 4) as work:
        [found] = (await work.scheduler.select(replace(MINE, alternates=2))).selections
        assert found.alternates == ("h1", "h2")
        await work.scheduler.select(Request({"VCPU": 5}, hosts=frozenset({"h1"})))
        await fails(work, await mine(work))
        await work.sweep()
        assert (await mine(work)).host == "h2"


async def test_alternates_are_answered_again(clean_store: str) -> None:
    """Another scheduler answers the same ids with the same alternates, except one that the claim has since moved to."""
    asked = replace(MINE, alternates=2)
    async with at_work(clean_store, 6, 5, 4) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        first = await work.scheduler.select(asked)
        again = await other.select(asked)
        assert again.selections == first.selections
        assert again.selections[0].alternates == (await mine(work)).alternates == ("h1", "h2")
        await fails(work, await mine(work))
        await work.sweep()
        [now] = (await other.select(asked)).selections
        assert (now.host, now.alternates) == ("h1", ("h2",))


async def test_those_of_a_call_for_several_places_are_hosts_that_none_of_them_got(clean_store: str) -> None:
    async with at_work(clean_store, 2, 2, 2, 2) as work:
        asked = Request({"VCPU": 2}, count=2, claim_ids=("a", "b"), alternates=1)
        first = await work.scheduler.select(asked)
        again = await work.scheduler.select(asked)
        [alternate] = first.selections[0].alternates
        assert alternate not in {one.host for one in first.selections}
        assert [one.alternates for one in again.selections] == [(alternate,)] * 2


async def test_a_claim_without_alternates_keeps_none(clean_store: str) -> None:
    async with at_work(clean_store, 6, 4) as work:
        await work.scheduler.select(MINE)
        assert not [name for name in (await mine(work)).raw if name.startswith("alternate")]
        assert not await work.store.texts.get("alternates:mine")


async def test_alternates_have_a_key_of_their_own(clean_store: str) -> None:
    """One long value would turn the compact hash of a claim into a hash table of twice its size."""
    async with at_work(clean_store, *[2] * 20) as work, raw_client(clean_store) as raw:
        found = (await work.scheduler.select(replace(MINE, alternates=19))).selections[0]
        now = await mine(work)
        assert now.alternates == found.alternates
        assert await raw.get(work.store.keys.alternates("mine")) == " ".join(found.alternates)
        assert now.raw["alternates"] == "19"
        assert await raw.object("encoding", work.store.keys.claim("mine")) == "listpack"


async def test_alternates_are_kept_as_long_as_their_claim_lives(clean_store: str) -> None:
    """An audit with repairs extends their time to live, as it does that of requests, unless the claim has ended."""
    async with at_work(clean_store, 6, 4) as work, raw_client(clean_store) as raw:
        key = work.store.keys.alternates("mine")
        await work.scheduler.select(replace(MINE, alternates=1))
        assert 0 < await raw.pttl(key) <= KEPT_MS["alternates"]
        await raw.pexpire(key, 60_000)
        await work.scheduler.repair()
        assert await raw.pttl(key) > 60_000
        await work.scheduler.claims.release("mine")
        await raw.pexpire(key, 60_000)
        await work.scheduler.repair()
        assert await raw.pttl(key) <= 60_000


async def test_a_lost_list_of_alternates_is_an_empty_one(clean_store: str) -> None:
    """The claim's next place is decided anew."""
    async with at_work(clean_store, 6, 5, 4) as work, raw_client(clean_store) as raw:
        found = (await work.scheduler.select(replace(MINE, alternates=1))).selections[0]
        await raw.delete(work.store.keys.alternates("mine"))
        assert (await mine(work)).alternates == ()
        assert (await work.scheduler.claims.fail("mine", found.token or "")).host == "h1"


async def test_a_claim_does_not_have_the_alternates_of_an_earlier_one(clean_store: str) -> None:
    """The list of an ended claim may outlive it by a day, and ids may be used again once they are forgotten."""
    async with at_work(clean_store, 6, 5, 4) as work, raw_client(clean_store) as raw:
        await work.scheduler.select(replace(MINE, alternates=2))
        await work.scheduler.claims.release("mine")
        await raw.delete(work.store.keys.claim("mine"))
        await work.scheduler.select(MINE)
        assert await raw.exists(work.store.keys.alternates("mine"))
        assert (await mine(work)).alternates == ()


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_it_fails_when_its_attempts_are_used_up(clean_store: str, most: int) -> None:
    """The claim ends although another host is free; with `max_attempts: 1` the first failure ends it."""
    async with at_work(clean_store, 6, 5, 4, 3) as work:
        await work.scheduler.select(replace(MINE, max_attempts=most))
        ended = await fails_until(work, ENDED)
        assert (ended.end_reason, ended.host, len(ended.tried)) == (EndReason.FAILED, f"h{most - 1}", most - 1)
        assert await work.held() == {}


async def test_its_reason_is_that_of_the_last_failure(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(replace(MINE, max_attempts=2))
        await fails(work, await mine(work), "exit code 1")
        await work.sweep()
        await fails(work, await mine(work), "exit code 2")
        ended = await mine(work)
        assert ended.reason is not None
        assert (ended.state, ended.reason.host, ended.reason.text) == (ENDED, "h1", "exit code 2")


@pytest.mark.parametrize("by_force", [False, True])
async def test_an_ending_claim_shows_why_it_could_not_be_stopped(clean_store: str, by_force: bool) -> None:
    """It is shown after the end as well if an operator freed the amounts, and not if the host has stopped the work."""
    async with at_work(clean_store, 6) as work:
        await work.scheduler.select(MINE)
        await work.settle()
        running = await mine(work)
        await work.scheduler.claims.release("mine")
        await work.store.claims.stop_failed(running.host, "mine", running.token, "target is busy")
        ending = await mine(work)
        assert ending.reason is not None
        assert (ending.state, ending.reason.text) == (ClaimStatus.ENDING, "it could not be stopped: target is busy")
        if by_force:
            await work.scheduler.claims.release("mine", force=True)
        else:
            await work.store.claims.gone(running.host, "mine", running.token, EndReason.RELEASED, {})
        ended = await mine(work)
        assert (ended.state, ended.reason) == (ENDED, ending.reason if by_force else None)


async def test_an_ended_claim_shows_its_attempts_and_what_was_asked_for(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5, 4) as work:
        await work.scheduler.select(replace(MINE, max_attempts=3, on_exit=OnExit.REPLACE))
        before = await mine(work)
        ended = await fails_until(work, ENDED)
        assert (ended.attempts, ended.max_attempts, ended.on_exit) == (3, 3, OnExit.REPLACE)
        assert ended.claimed_at_ms == before.claimed_at_ms is not None


async def test_a_claim_that_is_unshelved_has_all_its_attempts(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(MINE)
        await fails(work, await mine(work))
        await work.sweep()
        second = await mine(work)
        assert second.attempts == 2
        await work.scheduler.claims.shelve("mine", second.token)
        back = await work.scheduler.claims.unshelve("mine")
        assert back.attempts == 1


async def test_a_failure_that_a_claim_has_outlived_is_not_why_it_ended(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(MINE)
        await fails(work, await mine(work), "exit code 1")
        await work.settle()
        running = await mine(work)
        assert running.reason is not None
        assert (running.state, running.reason.host) == (ACTIVE, "h0")
        await work.scheduler.claims.release("mine", force=True)
        assert (await mine(work)).reason is None


async def test_it_fails_where_no_host_is_left(clean_store: str) -> None:
    """It ends before its attempts are used up, since a host that failed it is not tried again."""
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(replace(MINE, max_attempts=50))
        ended = await fails_until(work, ENDED)
        assert (ended.end_reason, ended.tried) == (EndReason.FAILED, frozenset({"h0", "h1"}))


async def expired(work: Work, url: str) -> Claim:
    """End the claim's lease on h0, sweep until the store has noticed, and return the claim."""
    async with raw_client(url) as raw:
        await make_due(raw, work.store, "mine")

    async def is_over() -> bool:
        await work.sweep()
        claim = await mine(work)
        return claim.state not in (CLAIMED, ClaimStatus.STARTING) or claim.host != "h0"

    await wait_until(is_over, what="its lease has run out")
    await work.sweep()
    return await mine(work)


async def test_what_no_agent_accepts_in_time_goes_to_the_next_host(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(MINE)
        now = await expired(work, clean_store)
        assert (now.host, now.state, now.attempts, now.tried) == ("h1", CLAIMED, 2, frozenset({"h0"}))
        await work.work([1])
        assert await work.held() == {"h1": ["mine"]}


async def test_what_an_agent_has_accepted_is_not_placed_again_when_its_lease_runs_out(clean_store: str) -> None:
    """The work may have been started on that host."""
    async with at_work(clean_store, 6, 5) as work:
        [found] = (await work.scheduler.select(MINE)).selections
        await work.store.claims.accept("h0", "mine", found.token or "", 60)
        now = await expired(work, clean_store)
        assert (now.state, now.end_reason) == (ClaimStatus.ENDING, EndReason.EXPIRED)
        await work.settle()
        assert ((await mine(work)).state, await work.held()) == (ENDED, {})


async def test_on_a_host_without_an_agent_it_expires(clean_store: str) -> None:
    async with at_work(clean_store) as work:
        for name in ("h0", "h1"):
            await work.scheduler.hosts.report(report_of(name, VCPU=4))
        await work.scheduler.select(replace(MINE, alternates=1))
        ended = await expired(work, clean_store)
        assert (ended.state, ended.end_reason, ended.attempts) == (ENDED, EndReason.EXPIRED, 1)


async def test_attempts_count_from_when_it_was_active(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5, 4, 3) as work:
        await work.scheduler.select(replace(MINE, max_attempts=2, on_exit=OnExit.REPLACE))
        await fails(work, await mine(work))
        await work.sweep()
        await work.work()
        active = await mine(work)
        assert (active.state, active.attempts, active.tried) == (ACTIVE, 1, frozenset())
        await fails(work, active)
        assert (await mine(work)).state is PENDING


async def test_work_that_crashes_again_and_again_waits_longer_each_time(clean_store: str) -> None:
    """The delay grows 1 s, 2 s, 4 s ... 60 s, and restarts at 1 s once the work has run for ten minutes."""
    async with at_work(clean_store, 6, 5) as work, raw_client(clean_store) as raw:
        await work.scheduler.select(replace(MINE, on_exit=OnExit.REPLACE))

        async def crash() -> int:
            """Let the work start and crash, and place it again; return the delay in seconds before a sweep would."""
            await work.work()
            active = await mine(work)
            assert active.state is ACTIVE
            await fails(work, active)
            clock = await work.store.tick()
            due_ms = await work.store.due.reconcile_at_ms("mine")
            assert due_ms is not None
            await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), await mine(work))
            return -(-(due_ms - clock.now_ms) // 1000)

        assert [await crash() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
        await work.work()
        key = work.store.keys.claim("mine")
        await raw.hincrby(key, "active_at_ms", -600_000)
        assert [await crash() for _ in range(2)] == [1, 2]


async def test_what_is_released_while_it_is_pending_is_not_placed_again(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(MINE)
        await fails(work, await mine(work))
        assert await work.scheduler.claims.release("mine")
        await work.settle()
        now = await mine(work)
        assert (now.state, now.end_reason, await work.held()) == (ENDED, EndReason.RELEASED, {})


async def test_two_schedulers_place_it_once(clean_store: str) -> None:
    """Neither scheduler fails the claim for lack of the capacity that the other one has just claimed for it."""
    async with at_work(clean_store, 2, 2) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        await work.scheduler.select(MINE)
        await fails(work, await mine(work))
        pending = await mine(work)
        both = (work.scheduler, other) * 3
        again = (one.migrations.place_again(one.cells.named("c1"), pending) for one in both)
        found = await asyncio.gather(*again)
        assert {(one.host, one.state) for one in found} == {("h1", CLAIMED)}
        assert len({one.token for one in found}) == 1
        await work.settle()
        assert ((await mine(work)).state, await work.held()) == (ACTIVE, {"h1": ["mine"]})


async def test_a_gang_ends_with_its_first_failure(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4, 4) as work:
        gang = Request({"VCPU": 3}, count=2, claim_ids=("mine", "other"), alternates=1)
        await work.scheduler.select(gang)
        await fails(work, await mine(work))
        await work.settle()
        states = [(await work.scheduler.claims.get(one)).state for one in gang.claim_ids]
        assert (states, await work.held()) == ([ENDED, ENDED], {})


async def test_a_new_epoch_places_it_when_all_hosts_have_attested(clean_store: str) -> None:
    """Until then the claim stays pending, because its host may restore it."""
    async with at_work(clean_store, 6, 5) as work:
        await work.scheduler.select(replace(MINE, alternates=1))
        await fails(work, await mine(work))
        await new_epoch(work.store)
        await work.sweep()
        assert (await mine(work)).state is PENDING
        await speak_all(work.hosts)
        await work.settle()
        now = await mine(work)
        assert (now.state, now.host) == (ACTIVE, "h1")


async def test_its_host_brings_alternates_and_attempts_back(clean_store: str) -> None:
    """The host restores them into a store that has lost the claim."""
    async with at_work(clean_store, 6, 5) as work, raw_client(clean_store) as raw:
        await work.active(replace(MINE, alternates=1, max_attempts=7))
        await raw.delete(work.store.keys.claim("mine"))
        await new_epoch(work.store)
        await speak_all(work.hosts)
        now = await mine(work)
        assert (now.state, now.max_attempts, now.alternates) == (ACTIVE, 7, ("h1",))


async def test_until_active_waits_through_two_failures(clean_store: str) -> None:
    """The reply names the host that runs the work; no sweep runs, so the call itself has the claim placed again."""
    async with at_work(clean_store, 6, 5, 4) as work:
        task, claim = await asked_for(work, replace(WAITS, alternates=2))
        await fails(work, claim)
        await fails(work, await on_host(work, "h1"))
        last = await on_host(work, "h2")
        assert last.attempts == 3
        await work.work([2])
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
        assert (found.host, found.token, found.state, found.alternates) == ("h2", last.token, ACTIVE, ("h1",))
        assert found.slots == {"VCPU": 2}


async def test_until_active_ends_where_no_host_is_left(clean_store: str) -> None:
    """The call returns long before its timeout, although no host reports that none is left."""
    async with at_work(clean_store, 6) as work:
        task, claim = await asked_for(work)
        await fails(work, claim, "exit code 1")
        async with asyncio.timeout(patience_s(20)):
            with pytest.raises(NotConfirmed, match=r"failed on h0 \(exit code 1\)"):
                await task


async def test_when_its_time_is_up_nothing_is_placed_again(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5, settings=QUICK) as work:
        with pytest.raises(NotConfirmed, match="not confirmed by h0 within 1 s"):
            await work.scheduler.select(replace(WAITS, confirm_timeout_s=1))
        await work.settle()
        assert ((await mine(work)).state, await work.held()) == (ENDED, {})


async def test_when_its_caller_has_gone_between_attempts_nothing_is_placed_again(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(clean_store, 6, 5) as work:
        monkeypatch.setattr(work.scheduler.tasks["c1"].confirmations, "_on_pending", lambda _: None)
        task, claim = await asked_for(work)
        await fails(work, claim)
        pending = await mine(work)
        await end(task)
        await work.scheduler._selector._until_active.stop()
        assert ((await mine(work)).state, (await mine(work)).end_reason) == (ENDED, EndReason.RELEASED)
        # A scheduler that still tries to place the claim is refused.
        with pytest.raises(ClaimState):
            await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), pending)
        await work.store.claims.reconcile(["mine"], counted_by(pending))
        await work.settle()
        assert await work.held() == {}


SERVICE = replace(MINE, on_exit=OnExit.REPLACE)


async def test_a_service_that_crashes_on_the_only_host_comes_up_there_again(clean_store: str) -> None:
    async with at_work(clean_store, 6) as work:
        await fails(work, await work.active(SERVICE))

        async def runs() -> bool:
            await work.sweep()
            await work.work()
            return (await mine(work)).state is ACTIVE

        await wait_until(runs, timeout=30, what="it runs again")
        assert (await mine(work)).restarts == 1


async def test_a_service_that_crashes_goes_to_another_host_first(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        await fails(work, await work.active(SERVICE))
        await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), await mine(work))
        assert (await mine(work)).host == "h1"


async def test_a_service_that_finds_no_room_waits_for_it_and_says_so(clean_store: str) -> None:
    """Another claim has taken the capacity that the service had."""
    async with at_work(clean_store, 2) as work:
        await fails(work, await work.active(SERVICE), "it has crashed")
        [other] = (await work.scheduler.select(Request({"VCPU": 2}))).selections
        cell = work.scheduler.cells.named("c1")
        with pytest.raises(NoValidHost, match="claim mine is pending, and a place is looked for again"):
            await work.scheduler.migrations.place_again(cell, await mine(work))
        now = await mine(work)
        assert now.state is PENDING
        assert now.next_attempt_at_ms == await work.store.due.reconcile_at_ms("mine")
        assert now.reason is not None
        assert now.reason.text.startswith("there is no place for it now: none of 1 hosts can take 2 VCPU")
        await work.scheduler.claims.release(other.claim_id or "")

        async def runs() -> bool:
            await work.sweep()
            await work.work()
            return (await mine(work)).state is ACTIVE

        await wait_until(runs, timeout=30, what="it runs again")


async def test_a_service_over_its_quota_waits(clean_store: str) -> None:
    async with at_work(clean_store, 6) as work:
        await work.scheduler.quotas.put(Quota("web", {"VCPU": 3}))
        await fails(work, await work.active(replace(SERVICE, project="web")))
        await work.scheduler.select(Request({"VCPU": 2}, project="web"))
        with pytest.raises(QuotaExceeded):
            await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), await mine(work))
        assert (await mine(work)).state is PENDING


async def test_a_service_that_never_came_up_ends_where_no_host_is_left(clean_store: str) -> None:
    """Its caller is still waiting, and learns of the failure."""
    async with at_work(clean_store, 6) as work:
        await work.scheduler.select(SERVICE)
        ended = await fails_until(work, ENDED)
        assert ended.end_reason is EndReason.FAILED


async def test_until_active_waits_for_an_alternate_where_a_host_is_silent(clean_store: str) -> None:
    """Without `confirm_timeout_s` the call outlasts the lease, after which the claim is placed on another host."""
    async with at_work(clean_store, 6, 5, settings=QUICK) as work, raw_client(clean_store) as raw:
        task = asyncio.create_task(work.scheduler.select(replace(MINE, until="active", alternates=1)))
        await on_host(work, "h0")
        await make_due(raw, work.store, "mine")
        await on_host(work, "h1")
        await work.work([1])
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
        assert (found.host, found.state) == ("h1", ACTIVE)


async def test_until_active_learns_that_all_hosts_were_silent(clean_store: str) -> None:
    """Each placement has a lease of its own, and the error lists each host."""
    async with at_work(clean_store, 6, 5, settings=QUICK) as work:
        asked = replace(MINE, until="active", lease_s=1, alternates=1, max_attempts=2)
        with pytest.raises(NotConfirmed) as refused:
            await work.scheduler.select(asked)
        attempts = refused.value.facts.failed_attempts
        assert [(one.claim_id, one.host, one.kind) for one in attempts] == [
            ("mine", "h0", "expired"),
            ("mine", "h1", "expired"),
        ]
        assert all(one.reason.startswith("its lease ") for one in attempts)
        told = r"claim mine: expired on h0 \(its lease .*\); expired on h1 \(its lease .*\); everything .*"
        assert re.fullmatch(told, refused.value.detail)


async def test_until_active_lists_each_failure(clean_store: str) -> None:
    """Each has the store's timestamp and the full reason; the summary joins a reason's lines into one."""
    async with at_work(clean_store, 6, 5, 4) as work:
        task, claim = await asked_for(work, replace(WAITS, max_attempts=2))
        before = await work.store.tick()
        await fails(work, claim, "exit code 1\n  no image")
        await fails(work, await on_host(work, "h1"), "exit code 2\n")
        async with asyncio.timeout(patience_s(20)):
            with pytest.raises(NotConfirmed) as refused:
                await task
        told = "failed on h0 (exit code 1; no image); failed on h1 (exit code 2)"
        after = await work.store.tick()
        first, second = refused.value.facts.failed_attempts
        assert before.now_ms <= first.at_ms <= second.at_ms <= after.now_ms
        assert first == FailedAttempt("mine", "h0", first.at_ms, "failed", "exit code 1\n  no image")
        assert second == FailedAttempt("mine", "h1", second.at_ms, "failed", "exit code 2\n")
        assert refused.value.detail == f"claim mine: {told}; everything that was claimed is released"
        assert await work.held() == {}


async def test_what_was_not_active_in_time_says_so_and_not_that_it_was_released(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        with pytest.raises(NotConfirmed, match="not confirmed by h0 within 1 s"):
            await work.scheduler.select(replace(WAITS, confirm_timeout_s=1))
        now = await mine(work)
        assert now.reason is not None
        assert (now.state, now.end_reason) == (ENDED, EndReason.FAILED)
        assert now.reason.text == (
            "released, because not everything that was claimed was active in time: "
            "claim mine: not confirmed by h0 within 1 s"
        )


async def test_what_was_released_for_a_caller_who_went_away_says_so(clean_store: str) -> None:
    async with at_work(clean_store, 6, 5) as work:
        task, _ = await asked_for(work)
        await end(task)
        await work.scheduler._selector._until_active.stop()
        now = await mine(work)
        assert now.reason is not None
        assert (now.end_reason, now.reason.text) == (EndReason.RELEASED, "its caller went away before it was active")
