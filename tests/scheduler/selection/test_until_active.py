"""until=active: the reply shows what the hosts have confirmed, and what they do not confirm is released."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redsched.agent.run import run
from redsched.aio import end
from redsched.errors import NotConfirmed, NotDurable, OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.model import Claim, ClaimStatus, HostReport, Inventory, OnExit, Request
from redsched.model.records.problems import NOT_CONFIRMED, FailedAttempt
from redsched.model.records.selections import Selections
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, JournaledClaim, ScriptResult
from redsched.store.commands.claims import ClaimCommands
from tests.scheduler.working import BY_HAND, Work, at_work
from tests.support.builders.cells import new_epoch, raw_client
from tests.support.fleets.hosts import PlainHost, fleet, speak_all
from tests.support.waiting import patience_s, wait_until

ACTIVE = Request({"VCPU": 2}, until="active", confirm_timeout_s=600)
"""It waits longer than any test, because the claims are read once more when the time is over."""


@asynccontextmanager
async def scheduler_with(url: str, *vcpus: int) -> AsyncIterator[tuple[Scheduler, CellStore, list[PlainHost]]]:
    """Yield a scheduler, its cell's store, and hosts h0, h1 ... whose agents act only on demand."""
    async with Scheduler.connect(url, Settings(pick_from=1)) as opened:
        await opened.init()
        store = opened.cells.named("c1").store
        hosts = await fleet(store, vcpus)
        await opened.explain(Request({"VCPU": 1}))
        yield opened, store, hosts


async def one_claim(store: CellStore, host: str) -> Claim:
    """Wait until a host has one claim, and return it."""

    async def is_there() -> bool:
        return len(await store.hosts.claim_ids(host)) == 1

    await wait_until(is_there, what=f"{host} holds a claim")
    return next(iter((await store.claims.read(await store.hosts.claim_ids(host))).values()))


async def waits(scheduler: Scheduler, claims: int = 1) -> None:
    """Wait until callers wait for this many claims."""
    await wait_until(lambda: len(scheduler.tasks["c1"].confirmations._waits) == claims, what="it waits")


def not_confirmed(hosts: Mapping[str, str]) -> tuple[FailedAttempt, ...]:
    """Return what a wait for these hosts, by claim, returns at its timeout."""
    return tuple(FailedAttempt(claim_id, host, 1, NOT_CONFIRMED, "within 1 s") for claim_id, host in hosts.items())


async def waited_for(work: Work, asked: Request) -> tuple["asyncio.Task[Selections]", Claim]:
    """Start a selection that waits for h0 to confirm; return its task and its claim."""
    task = asyncio.create_task(work.scheduler.select(asked))
    claim = await one_claim(work.store, "h0")
    await waits(work.scheduler)
    return task, claim


async def free(store: CellStore, host: str) -> bool:
    return not await store.hosts.claim_ids(host)


async def test_the_answer_comes_when_the_host_has_confirmed(clean_store: str) -> None:
    """It does not come earlier, and it shows the state; a retry with the id gets the same reply."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, [host]):
        asked = Request({"VCPU": 2}, until="active", confirm_timeout_s=600, claim_ids=("mine",))
        task = asyncio.create_task(scheduler.select(asked))
        await one_claim(store, "h0")
        await waits(scheduler)
        assert not task.done()
        await host.work()
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
            again = await scheduler.select(asked)
        assert (found.state, found.expires_at_ms) == (ClaimStatus.ACTIVE, None)
        assert (again.fresh, again.selections[0].state) == (False, ClaimStatus.ACTIVE)
        assert scheduler.tasks["c1"].confirmations._waits == {}


async def test_a_real_agent_confirms(clean_store: str, tmp_path: Path) -> None:
    """The agent runs a hook."""
    hook = tmp_path / "hook.sh"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    settings = Settings(pick_from=1, hook=str(hook), poll_s=0.01, collect_s=0.1)
    async with Scheduler.connect(clean_store, settings) as scheduler:
        await scheduler.init()
        ready = asyncio.Event()
        report = HostReport("h1", {"VCPU": Inventory(4)}, lease_s=60)
        agent = asyncio.create_task(run(settings, clean_store, [report], tmp_path / "journal.sqlite", ready))
        try:
            async with asyncio.timeout(patience_s(60)):
                await ready.wait()
                [found] = (await scheduler.select(ACTIVE)).selections
                assert (found.host, found.state) == ("h1", ClaimStatus.ACTIVE)
                assert (await scheduler.claims.get(found.claim_id or "")).state is ClaimStatus.ACTIVE
                hook.write_text('#!/bin/sh\n[ "$1" = stop ]\n')
                with pytest.raises(NotConfirmed, match="failed on h1"):
                    await scheduler.select(ACTIVE)
        finally:
            await end(agent)


async def test_what_no_host_confirms_is_undone(clean_store: str) -> None:
    """The error, 504 in REST, has the ids of the claims, which have ended; their amounts are free."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, _):
        with pytest.raises(NotConfirmed, match="not confirmed by h0 within 1 s") as refused:
            await scheduler.select(Request({"VCPU": 4}, until="active", confirm_timeout_s=1))
        [claim_id] = refused.value.facts.claim_ids
        assert (await scheduler.claims.get(claim_id)).state is ClaimStatus.ENDED
        assert await free(store, "h0")


@pytest.mark.parametrize("error", [OutcomeUnknown, NotDurable, StoreUnavailable])
@pytest.mark.parametrize("is_done", [False, True])
async def test_an_undo_without_a_reply_is_repeated(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, error: type[RedschedError], is_done: bool
) -> None:
    """Whether or not the store has executed it; otherwise the caller would not learn the ids of its claims."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, _):
        release, errors = store.claims.release, [error("release was sent to the store and no reply came")]

        async def unanswered(*of: Any, **more: Any) -> ScriptResult:
            if is_done or not errors:
                answer = await release(*of, **more)
            if errors:
                raise errors.pop()
            return answer

        async def too_late(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            return not_confirmed(hosts)

        monkeypatch.setattr(store.claims, "release", unanswered)
        monkeypatch.setattr(scheduler.tasks["c1"].confirmations, "wait", too_late)
        with pytest.raises(NotConfirmed) as refused:
            await scheduler.select(ACTIVE)
        assert not errors
        [claim_id] = refused.value.facts.claim_ids
        assert (await scheduler.claims.get(claim_id)).state is ClaimStatus.ENDED
        assert await free(store, "h0")


@pytest.fixture
def second_undo_fails(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the undo of the second claim that is released fail for longer than it is retried. Returns what was asked."""
    asked, release = list[str](), ClaimCommands.release

    async def refused(self: ClaimCommands, host: str, claim_id: str, *more: Any, **named: Any) -> ScriptResult:
        if claim_id not in asked:
            asked.append(claim_id)
        if asked.index(claim_id) == 1:
            raise StoreUnavailable("the primary is gone")
        return await release(self, host, claim_id, *more, **named)

    monkeypatch.setattr(ClaimCommands, "release", refused)
    monkeypatch.setattr("redsched.scheduler.selection.wait_active.UNDONE_WITHIN_S", 0.5)
    return asked


async def test_a_gang_that_could_not_be_undone_is_named_whole_and_its_undo_is_not_repeated(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, second_undo_fails: list[str]
) -> None:
    """Its caller may send the ids again, and be answered with what the store had lost and its host has restored."""
    asked = replace(ACTIVE, count=3, claim_ids=("a", "b", "c"))
    async with at_work(clean_store, 6) as work:

        async def too_late(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            return not_confirmed(hosts)

        monkeypatch.setattr(work.scheduler.tasks["c1"].confirmations, "wait", too_late)
        with pytest.raises(OutcomeUnknown, match="claim b was not confirmed") as unknown:
            await work.scheduler.select(asked)
        assert unknown.value.facts.claim_ids == ("a", "b", "c")
        assert second_undo_fails == ["a", "b"]
        assert len(work.scheduler.cells.named("c1").released) == 0


async def test_the_undo_of_one_claim_that_fails_does_not_keep_the_others_of_who_went_away(
    clean_store: str, second_undo_fails: list[str]
) -> None:
    async with at_work(clean_store, 6) as work:
        task = asyncio.create_task(work.scheduler.select(replace(ACTIVE, count=3, claim_ids=("a", "b", "c"))))
        await waits(work.scheduler, 3)
        await end(task)
        await work.scheduler._selector._until_active.stop()
        assert second_undo_fails == ["a", "b", "c"]
        assert await work.held() == {"h0": ["b"]}


async def test_a_host_that_fails_it_is_not_waited_for(clean_store: str) -> None:
    """A failure ends the wait as a confirmation does."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, _):
        task = asyncio.create_task(scheduler.select(ACTIVE))
        claim = await one_claim(store, "h0")
        await store.claims.fail("h0", claim.claim_id, claim.token, by_host=True)
        async with asyncio.timeout(patience_s(20)):
            with pytest.raises(NotConfirmed, match="failed on h0"):
                await task


async def test_of_a_gang_all_are_confirmed_or_none_is_kept(clean_store: str) -> None:
    """A host that runs another member already is asked to stop it."""
    async with scheduler_with(clean_store, 2, 2) as (scheduler, store, [first, second]):
        gang = Request({"VCPU": 2}, count=2, until="active", confirm_timeout_s=600)
        task = asyncio.create_task(scheduler.select(gang))
        failing = await one_claim(store, "h1")
        await first.work()
        await store.claims.fail("h1", failing.claim_id, failing.token, by_host=True)
        async with asyncio.timeout(patience_s(20)):
            with pytest.raises(NotConfirmed):
                await task
        await wait_until(lambda: _stopped(first, store), what="h0 has stopped it")
        task = asyncio.create_task(scheduler.select(gang))
        await one_claim(store, "h1")
        await first.work()
        await second.work()
        async with asyncio.timeout(patience_s(20)):
            assert {one.state for one in (await task).selections} == {ClaimStatus.ACTIVE}


async def _stopped(host: PlainHost, store: CellStore) -> bool:
    await host.work()
    return await free(store, host.name)


async def test_a_word_at_the_last_moment_counts(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undoing is atomic: a claim that has become active by then is kept, and returned."""
    async with scheduler_with(clean_store, 4) as (scheduler, _, [host]):

        async def late(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            await host.work()
            return not_confirmed(hosts)

        monkeypatch.setattr(scheduler.tasks["c1"].confirmations, "wait", late)
        [found] = (await scheduler.select(ACTIVE)).selections
        assert (await scheduler.claims.get(found.claim_id or "")).state is ClaimStatus.ACTIVE


@pytest.mark.parametrize("is_active", [False, True])
async def test_a_caller_who_goes_away_is_undone(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, is_active: bool
) -> None:
    """Otherwise nothing would release the claim."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, _):

        async def never_confirmed(*_: object) -> tuple[FailedAttempt, ...]:
            await asyncio.Event().wait()
            return ()

        monkeypatch.setattr(scheduler.tasks["c1"].confirmations, "wait", never_confirmed)
        task = asyncio.create_task(scheduler.select(ACTIVE))
        claim = await one_claim(store, "h0")
        if is_active:
            # The host has confirmed, and the caller goes away before it gets the reply.
            await store.claims.confirm("h0", claim.claim_id, claim.token)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await wait_until(lambda: _given_back(store, claim.claim_id), what="it is given back")


async def _given_back(store: CellStore, claim_id: str) -> bool:
    claim = (await store.claims.read([claim_id]))[claim_id]
    return claim.state in (ClaimStatus.ENDING, ClaimStatus.ENDED)


@pytest.mark.parametrize("ids", [(), ("mine",)])
async def test_a_caller_who_goes_away_is_undone_where_his_claim_has_found_another_place(
    clean_store: str, ids: tuple[str, ...]
) -> None:
    async with at_work(clean_store, 4, 4) as work:
        task, claim = await waited_for(work, replace(ACTIVE, claim_ids=ids))
        assert (await work.scheduler.claims.fail(claim.claim_id, claim.token)).host == "h1"
        await end(task)
        await work.scheduler._selector._until_active.stop()
        await work.settle()
        assert await work.held() == {}


async def test_what_has_found_another_place_is_left_to_who_asked_for_it_since(clean_store: str) -> None:
    """A second call with the same id has been answered with the new placement."""
    asked = replace(ACTIVE, claim_ids=("mine",))
    async with at_work(clean_store, 4, 4) as work:
        first, claim = await waited_for(work, asked)
        target = await work.scheduler.claims.fail(claim.claim_id, claim.token)
        call_id = (await work.store.audit.claim_hashes(["mine"]))["mine"]["call_id"]
        second = asyncio.create_task(work.scheduler.select(asked))

        async def is_told() -> bool:
            return (await work.store.audit.claim_hashes(["mine"]))["mine"]["call_id"] != call_id

        await wait_until(is_told, what="the second one is told")
        await end(first)
        await work.scheduler._selector._until_active.stop()
        await work.settle()
        async with asyncio.timeout(patience_s(30)):
            [found] = (await second).selections
        assert (found.claim_id, found.host) == ("mine", "h1")
        assert (target.host, await work.held()) == ("h1", {"h1": ["mine"]})


async def test_a_caller_who_goes_away_while_it_is_claimed_is_undone(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call to the store was under way: the claim is undone when the reply arrives."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, _):
        claim, sent, go = store.claims.place, asyncio.Event(), asyncio.Event()

        async def slow(call: object) -> object:
            answer = await claim(call)  # type: ignore[arg-type]
            sent.set()
            await go.wait()
            return answer

        monkeypatch.setattr(store.claims, "place", slow)
        task = asyncio.create_task(scheduler.select(ACTIVE))
        await sent.wait()
        task.cancel()
        await asyncio.wait([task])
        assert not await free(store, "h0")
        go.set()
        await wait_until(lambda: free(store, "h0"), what="it is given back")


async def test_what_is_moved_meanwhile_is_waited_for_where_it_goes(clean_store: str) -> None:
    """The reply names the new host; a retry gets the same reply."""
    asked = replace(ACTIVE, claim_ids=("mine",))
    async with at_work(clean_store, 4, 4) as work:
        task, claim = await waited_for(work, asked)
        target = await work.scheduler.claims.move("mine", claim.token)
        await work.work([1])
        await work.sweep()
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
            [again] = (await work.scheduler.select(asked)).selections
        assert found == again
        assert (found.claim_id, found.host, found.token) == ("mine", "h1", target.token)
        assert await work.held() == {"h1": [target.claim_id]}


async def test_what_is_evacuated_meanwhile_is_waited_for(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        task, _ = await waited_for(work, ACTIVE)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        work.hosts.pop(0)
        await work.settle()
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
        assert (found.host, found.state) == ("h1", ClaimStatus.ACTIVE)
        assert len((await work.held())["h1"]) == 1


@pytest.mark.parametrize("is_active", [False, True])
async def test_what_has_moved_by_the_time_that_it_is_undone_is_undone_there_or_answered(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, is_active: bool
) -> None:
    """The error promises that nothing stays claimed, so no placement may be left."""
    async with at_work(clean_store, 4, 4) as work:
        moves: list[str] = []
        release = work.store.claims.release

        async def too_late(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            return not_confirmed(hosts)

        async def moved_first(host: str, claim_id: str, *more: Any, **named: Any) -> ScriptResult:
            if not moves:
                moves.append(claim_id)
                await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
                target = await work.scheduler.claims.move(claim_id, (await work.scheduler.claims.get("mine")).token)
                await work.store.claims.accept("h1", target.claim_id, target.token, 60)
                if is_active:
                    await work.store.claims.confirm("h1", target.claim_id, target.token)
                    await work.sweep()
            return await release(host, claim_id, *more, **named)

        monkeypatch.setattr(work.scheduler.tasks["c1"].confirmations, "wait", too_late)
        monkeypatch.setattr(work.store.claims, "release", moved_first)
        asking = work.scheduler.select(replace(ACTIVE, claim_ids=("mine",)))
        if is_active:
            assert (await asking).selections[0].host == "h1"
            assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE
            return
        with pytest.raises(NotConfirmed):
            await asking
        work.hosts.pop(0)
        await work.settle()
        assert await work.store.hosts.claim_ids_of(["h0", "h1"]) == [set(), set()]


async def test_what_could_not_be_confirmed_and_is_not_known_any_more_is_not_brought_back(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store loses the claim during the wait, and the call fails: when its host restores the claim, it ends."""
    async with at_work(clean_store, 4) as work, raw_client(clean_store) as raw:
        held = list[JournaledClaim]()

        async def lost(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            await work.work()
            held.extend(work.hosts[0].held.values())
            await raw.flushall()
            return not_confirmed(hosts)

        monkeypatch.setattr(work.scheduler.tasks["c1"].confirmations, "wait", lost)
        with pytest.raises(NotConfirmed):
            await work.scheduler.select(replace(ACTIVE, claim_ids=("mine",)))
        assert [one.id for one in held] == ["mine"]
        await work.sweep()
        await work.hosts[0].speak()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ENDING


async def test_what_is_sent_again_after_the_store_has_lost_it_is_kept(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call fails. The second one, with the same id, makes a later claim, which no repeated undo ends."""
    asked = replace(ACTIVE, claim_ids=("mine",))
    async with at_work(clean_store, 4) as work, raw_client(clean_store) as raw:

        async def lost(hosts: Mapping[str, str], *_: float) -> tuple[FailedAttempt, ...]:
            await raw.flushall()
            await work.store.init()
            await work.hosts[0].speak()
            return not_confirmed(hosts)

        with monkeypatch.context() as losing:
            losing.setattr(work.scheduler.tasks["c1"].confirmations, "wait", lost)
            with pytest.raises(NotConfirmed):
                await work.scheduler.select(asked)
        task, _ = await waited_for(work, asked)
        await work.work()
        async with asyncio.timeout(patience_s(30)):
            [found] = (await task).selections
        for _ in range(2):
            await work.sweep()
            await new_epoch(work.store)
            await work.hosts[0].speak()
        await work.sweep()
        assert (await work.scheduler.claims.get("mine")).state is ClaimStatus.ACTIVE
        assert await work.held() == {found.host: ["mine"]}


async def test_what_a_caller_who_went_away_has_sent_again_is_left_to_him(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call with the same ids has returned it as active before the first one could be undone."""
    asked = replace(ACTIVE, claim_ids=("mine",))
    async with at_work(clean_store, 4) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        claim, sent, go = work.store.claims.place, asyncio.Event(), asyncio.Event()

        async def slow(call: ClaimCall) -> ClaimReply:
            answer = await claim(call)
            sent.set()
            await go.wait()
            return answer

        monkeypatch.setattr(work.store.claims, "place", slow)
        first = asyncio.create_task(work.scheduler.select(asked))
        await sent.wait()
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(other.select(asked))
        await waits(other)
        await work.work()
        async with asyncio.timeout(patience_s(30)):
            assert (await second).selections[0].state is ClaimStatus.ACTIVE
        go.set()
        await work.scheduler._selector._until_active.stop()
        assert (await other.claims.get("mine")).state is ClaimStatus.ACTIVE


async def test_a_word_that_no_feed_tells_is_found(clean_store: str) -> None:
    """The feed is lost before it is read; the snapshot does not contain claims, so they are read."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, [host]):
        task = asyncio.create_task(scheduler.select(ACTIVE))
        await one_claim(store, "h0")
        await waits(scheduler)
        async with raw_client(clean_store) as raw:
            pipe = raw.pipeline()
            updater = scheduler.cells.named("c1").updater
            snapshots = updater.stats.snapshots
            await host.work()
            await pipe.delete(store.keys.changes).execute()
            await new_epoch(store)
        async with asyncio.timeout(patience_s(30)):
            assert (await task).selections[0].state is ClaimStatus.ACTIVE
        assert updater.stats.snapshots >= snapshots


async def test_a_word_that_an_attestation_brings_is_found(clean_store: str) -> None:
    """The store has lost the confirmation; the host attests that the work runs."""
    async with scheduler_with(clean_store, 4) as (scheduler, store, [host]):
        task = asyncio.create_task(scheduler.select(ACTIVE))
        claim = await one_claim(store, "h0")
        await waits(scheduler)
        [entry] = await store.hosts.inbox("h0")
        await store.claims.accept("h0", claim.claim_id, claim.token, 60, entry.entry_id)
        epoch, updater = await new_epoch(store), scheduler.cells.named("c1").updater
        words = scheduler.tasks["c1"].confirmations
        await wait_until(lambda: updater.epoch == epoch and not words._to_reread, what="the snapshot told nothing")
        await wait_until(lambda: words._reading is None or words._reading.done(), what="nor did the claim")
        host.held[claim.claim_id] = host.holding(claim)
        await speak_all([host])
        async with asyncio.timeout(patience_s(30)):
            assert (await task).selections[0].state is ClaimStatus.ACTIVE


async def test_nothing_is_kept_of_those_who_waited_for_one_id_on_two_hosts(clean_store: str) -> None:
    """This happens when the store lost the first claim by the id, and a retry was placed elsewhere."""
    async with scheduler_with(clean_store, 4, 4) as (scheduler, _, _):
        words = scheduler.tasks["c1"].confirmations
        async with asyncio.timeout(patience_s(30)):
            first, second = await asyncio.gather(
                words.wait({"mine": "h0"}, patience_s(30)), words.wait({"mine": "h1"}, patience_s(30))
            )
        assert [str(one) for one in (*first, *second)] == ["no longer known", "no longer known"]
        assert (words._waits, words._on) == ({}, {})


async def test_many_who_wait_cost_the_store_little(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each claim is read once; after that the feed suffices."""
    async with scheduler_with(clean_store, 200) as (scheduler, store, [host]):
        reads: list[int] = []
        read_claims = store.claims.read

        async def counted(ids: Sequence[str]) -> Mapping[str, Claim]:
            reads.append(len(list(ids)))
            return await read_claims(ids)

        monkeypatch.setattr(store.claims, "read", counted)
        one = Request({"VCPU": 1}, until="active", confirm_timeout_s=600)
        tasks = [asyncio.create_task(scheduler.select(one)) for _ in range(100)]
        await waits(scheduler, 100)
        await wait_until(lambda: sum(reads) == 100, what="all were read once")
        monkeypatch.undo()
        await host.work()
        async with asyncio.timeout(patience_s(60)):
            found = await asyncio.gather(*tasks)
        assert {one.selections[0].state for one in found} == {ClaimStatus.ACTIVE}
        assert sum(reads) == 100
        assert (await store.claims.release("h0", "nix")).outcome is Outcome.UNKNOWN


async def test_work_that_ended_and_is_kept_does_not_end_the_wait_for_others(clean_store: str) -> None:
    """The claim stays active, so the gang can still become complete."""
    async with scheduler_with(clean_store, 2, 2) as (scheduler, store, [first, second]):
        gang = Request({"VCPU": 2}, count=2, until="active", confirm_timeout_s=600, on_exit=OnExit.KEEP)
        task = asyncio.create_task(scheduler.select(gang))
        await one_claim(store, "h1")
        await first.work()
        kept = await one_claim(store, "h0")
        assert kept.on_exit is OnExit.KEEP
        [waiting] = scheduler.tasks["c1"].confirmations._waits[kept.claim_id]
        await store.claims.work_ended("h0", kept.claim_id, kept.token, "no process 7 is left")
        await scheduler.cells.catch_up()
        assert not waiting.done.is_set()
        await second.work()
        async with asyncio.timeout(patience_s(20)):
            assert {one.state for one in (await task).selections} == {ClaimStatus.ACTIVE}
