"""Releases that were answered and then lost by the store: the scheduler that answered repeats them."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

import pytest
import redis.asyncio as redis

from redsched.errors import NotFound, NoValidHost, OutcomeUnknown, StoreUnavailable
from redsched.model import Claim, ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, JournaledClaim
from redsched.store.commands.claims import ClaimCommands
from redsched.store.store import Store
from tests.scheduler.working import BY_HAND
from tests.support.builders.cells import active, claim_on, new_epoch, open_host, raw_client, report_of
from tests.support.builders.placements import arrive, held, held_claim, move_to, moved, settle, states
from tests.support.waiting import wait_until

QUICK = Settings(tick_s=0.05)


class Rollback:
    """The store's content at one moment, to be restored as by a failover to a replica that lagged."""

    def __init__(self, raw: redis.Redis, held: dict[str, bytes]) -> None:
        self._raw, self._held = raw, held

    @classmethod
    async def note(cls, raw: Any) -> "Rollback":
        return cls(raw, {key: await raw.dump(key) for key in await raw.keys("*")})

    async def play(self, cell: CellStore) -> str:
        """Restore that content, and return the new epoch that this starts."""
        async with self._raw.pipeline() as at_once:
            at_once.flushall()
            for key, value in self._held.items():
                at_once.restore(key, 0, value)
            await at_once.execute()
        clock = await cell.tick()
        return (await cell.raise_epoch(clock.epoch)).epoch


@pytest.fixture
async def binary(clean_store: str) -> Any:
    """Yield a client that returns bytes, as DUMP needs."""
    async with redis.Redis.from_url(clean_store, protocol=2) as client:
        yield client


@asynccontextmanager
async def opened(url: str, *hosts: str, settings: Settings = QUICK) -> AsyncIterator[tuple[Scheduler, CellStore]]:
    """Yield a scheduler and the store of its cell, with these hosts open."""
    async with Store.connect(url) as store, Scheduler.connect(url, settings) as scheduler:
        cell = store.cell("c1")
        await cell.init()
        for name in hosts:
            await open_host(cell, name)
        yield scheduler, cell


async def selected(scheduler: Scheduler) -> tuple[str, str]:
    """Select a host; return the claim's id and token."""
    found = (await scheduler.select(Request({"VCPU": 1}))).selections[0]
    return found.claim_id or "", found.token or ""


async def state_of(cell: CellStore, claim_id: str | None) -> ClaimStatus:
    """Return the state of a claim."""
    assert claim_id
    return (await cell.claims.read([claim_id]))[claim_id].state


async def test_a_release_that_a_rollback_took_back_is_repeated(clean_store: str, binary: Any) -> None:
    """It is repeated at once: the claim is `ending`, and is freed when its host has attested and stopped it."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        claim_id, _ = await selected(scheduler)
        before = await Rollback.note(binary)
        assert await scheduler.claims.release(claim_id)
        epoch = await before.play(cell)

        async def is_ending() -> bool:
            return await state_of(cell, claim_id) is ClaimStatus.ENDING

        await wait_until(is_ending, what="the release is repeated")
        await cell.hosts.attest("h1", epoch)
        (notification,) = await cell.hosts.inbox("h1")
        assert notification.op == "end"
        await cell.claims.gone("h1", claim_id, notification.token, EndReason.RELEASED, {})
        assert await state_of(cell, claim_id) is ClaimStatus.ENDED
        assert (await scheduler.audit()).problems == ()


async def test_a_release_is_repeated_once_in_an_epoch(clean_store: str) -> None:
    async with opened(clean_store, "h1", settings=BY_HAND) as (_, cell):
        await active(cell, "a")
        released = ReleaseLog(cell)
        released.note("a", await cell.claims.release("h1", "a"))
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        assert [await released.replay_releases(epoch) for _ in range(2)] == [1, 0]
        again = (await cell.raise_epoch(epoch)).epoch
        assert await released.replay_releases(again) == 1, "that epoch's answers can be lost with the next"


async def test_a_repeated_release_closes_at_its_first_token(clean_store: str, binary: Any) -> None:
    """A placement that was unshelved later stays, although the store lost the shelving and its host restored it."""
    async with opened(clean_store, "h1", settings=BY_HAND) as (_, cell):
        placed = await active(cell, "a")
        released = ReleaseLog(cell)
        before = await Rollback.note(binary)
        released.note("a", await cell.claims.shelve("h1", "a", placed.token), EndReason.SHELVED)
        await cell.claims.gone("h1", "a", placed.token, EndReason.SHELVED, {})
        back = await move_to(cell, "a", placed, "h1", EndReason.SHELVED)
        await arrive(cell, "a", back)
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch, held=[held("a", back)])
        assert await released.replay_releases(epoch) == 1
        await settle(cell)
        claim = (await cell.claims.read(["a"]))["a"]
        assert {one.token: one.state for one in claim.placements} == {back.token: ClaimStatus.ACTIVE}
        assert claim.token == back.token


@pytest.mark.parametrize("is_another", [False, True])
async def test_a_release_answered_by_a_replaced_primary_covers_what_the_new_one_was_asked_before(
    clean_store: str, is_another: bool
) -> None:
    """The shelving was retried on the new primary; the release reached the old one, in the old epoch."""
    async with opened(clean_store, "h1", settings=BY_HAND) as (_, cell):
        placed = await active(cell, "a")
        old = await cell.tick()
        epoch = (await cell.raise_epoch(old.epoch)).epoch
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        released, other = ReleaseLog(cell), ReleaseLog(cell)
        shelved = await cell.claims.shelve("h1", "a", placed.token)
        (other if is_another else released).note("a", shelved, EndReason.SHELVED)
        await cell.claims.gone("h1", "a", placed.token, EndReason.SHELVED, {})
        by_old_primary = replace(shelved, outcome=Outcome.OK, epoch=old.epoch, facts=(f"{old.epoch}.{old.seq + 9}",))
        released.note("a", by_old_primary)
        assert await released.replay_releases(epoch) == 1
        claim = (await cell.claims.read(["a"]))["a"]
        assert (claim.state, claim.end_reason) == (ClaimStatus.ENDED, EndReason.RELEASED)
        assert [*await cell.claims.shelved_ids()] == []


async def test_a_shelving_that_is_answered_late_does_not_replace_the_release(clean_store: str) -> None:
    async with opened(clean_store, "h1", settings=BY_HAND) as (_, cell):
        placed = await active(cell, "a")
        released = ReleaseLog(cell)
        shelved = await cell.claims.shelve("h1", "a", placed.token)
        released.note("a", await cell.claims.release("h1", "a"))
        released.note("a", shelved, EndReason.SHELVED)
        epoch = await new_epoch(cell)
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        await released.replay_releases(epoch)
        assert (await cell.claims.read(["a"]))["a"].closed_reason is EndReason.RELEASED


async def test_a_failure_that_ended_a_claim_is_repeated(clean_store: str, binary: Any) -> None:
    """No other host could take the claim, and its caller got that answer."""
    async with opened(clean_store, "h1", settings=BY_HAND) as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        before = await Rollback.note(binary)
        with pytest.raises(NoValidHost):
            await scheduler.claims.fail(claim_id, token)
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch, held=[held_claim(claim_id, token)])
        await scheduler.cells.named("c1").released.replay_releases(epoch)
        assert await state_of(cell, claim_id) is ClaimStatus.ENDING


async def test_an_end_that_nobody_has_heard_of_is_not_repeated(clean_store: str, binary: Any) -> None:
    """A scheduler ended a pending claim on a primary that was then replaced; on the new primary the claim is active."""
    async with opened(clean_store, "h1", settings=BY_HAND) as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        before = await Rollback.note(binary)
        await cell.claims.fail("h1", claim_id, token, by_host=False, retry=True)
        [own] = scheduler.cells
        claim = (await cell.claims.read([claim_id]))[claim_id]
        with pytest.raises(NoValidHost):
            await scheduler.migrations.place_again(own, claim)
        assert await state_of(cell, claim_id) is ClaimStatus.ENDED
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch, held=[held_claim(claim_id, token)])
        assert await own.released.replay_releases(epoch) == 0
        await settle(cell)
        assert await state_of(cell, claim_id) is ClaimStatus.ACTIVE


@pytest.mark.parametrize("alternates", [None, ()], ids=["no host fits", "no host is wanted"])
async def test_an_end_that_its_caller_was_not_told_does_not_end_a_later_place(
    clean_store: str, binary: Any, monkeypatch: pytest.MonkeyPatch, alternates: tuple[str, ...] | None
) -> None:
    """The call that ended the claim met a failover. Its caller asked again, and the claim was placed elsewhere."""

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("the primary is gone")

    async with opened(clean_store, "h1", settings=BY_HAND) as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        before = await Rollback.note(binary)
        with monkeypatch.context() as failing:
            failing.setattr("redsched.scheduler.claims.migration.release_elsewhere", unavailable)
            with pytest.raises(StoreUnavailable):
                await scheduler.claims.fail(claim_id, token, alternates)
        assert await state_of(cell, claim_id) is ClaimStatus.ENDED
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch, held=[held_claim(claim_id, token, ClaimStatus.CLAIMED)])
        await open_host(cell, "h2")
        placed = await scheduler.claims.fail(claim_id, token)
        assert placed.host == "h2"
        await scheduler.cells.named("c1").released.replay_releases(epoch)
        now = (await cell.claims.read([claim_id]))[claim_id]
        assert (now.host, now.state) == ("h2", ClaimStatus.CLAIMED)


@pytest.mark.parametrize("verb", ["fail", "release shelved", "shelve"])
async def test_other_ends_that_a_rollback_took_back_are_repeated(clean_store: str, binary: Any, verb: str) -> None:
    """A claim that failed for good, one that was released while shelved, and a shelving itself."""
    async with opened(clean_store, "h1", settings=BY_HAND) as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        before = await Rollback.note(binary)
        if verb == "fail":
            await scheduler.claims.fail(claim_id, token, ())
        else:
            await scheduler.claims.shelve(claim_id, token)
        if verb == "release shelved":
            await scheduler.claims.release(claim_id)
        ended = (await cell.claims.read([claim_id]))[claim_id]
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch)
        assert await scheduler.cells.named("c1").released.replay_releases(epoch) >= 1
        now = (await cell.claims.read([claim_id]))[claim_id]
        assert (now.state, now.end_reason) == (ClaimStatus.ENDED, ended.end_reason)
        assert (list(await cell.claims.shelved_ids()) == [claim_id]) is (verb == "shelve")


async def test_what_a_released_claim_was_moved_to_is_released_too(clean_store: str, binary: Any) -> None:
    """The store lost the move and the release, and both hosts restore their placements."""
    async with opened(clean_store, "h1", "h2", settings=BY_HAND) as (_, cell):
        placed = await active(cell, "a")
        before = await Rollback.note(binary)
        target = await move_to(cell, "a", placed)
        await arrive(cell, "a", target)
        released = ReleaseLog(cell)
        released.note("a", await cell.claims.release("h1", "a"))
        epoch = await before.play(cell)
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        await cell.hosts.attest("h2", epoch, held=[held("a", target)])
        assert await released.replay_releases(epoch) == 1
        await settle(cell)
        assert await states(cell, "a") == {"h1": "ending released", "h2": "ending released"}


async def test_a_move_that_was_called_off_is_not_a_release(clean_store: str) -> None:
    """The source stays active, in a new epoch too."""
    async with opened(clean_store, "h1", "h2", settings=BY_HAND) as (scheduler, cell):
        placed = await active(cell, "a")
        target = await move_to(cell, "a", placed)
        assert await scheduler.claims.release("a", target.token)
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        await scheduler.cells.named("c1").released.replay_releases(epoch)
        assert await states(cell, "a") == {"h1": "active"}


async def test_a_release_of_what_has_moved_closes_where_it_was(clean_store: str) -> None:
    """The former host, which was written off, restores the claim when the store no longer has it."""
    async with opened(clean_store, "h1", "h2", settings=BY_HAND) as (_, cell):
        placed = await active(cell, "a")
        now = await moved(cell, "a", placed)
        released = ReleaseLog(cell)
        released.note("a", await cell.claims.release("h2", "a", now.token))
        async with raw_client(clean_store) as raw:
            await raw.delete(cell.keys.claim("a"))
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        assert await released.replay_releases(epoch) == 1
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        assert await states(cell, "a") == {"h1": "ending released"}


async def test_no_more_is_remembered_than_can_be_lost(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.scheduler.background.release_log.MOST", 1000)
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        await claim_on(cell, "a")
        released, answer = ReleaseLog(cell), await cell.claims.release("h1", "a")
        epoch = (await cell.tick()).epoch
        for number in range(1010):
            released.note(f"a{number}", answer)
            released.note(f"a{number}", answer)
        assert len(released) == 1000
        monkeypatch.setattr("redsched.scheduler.background.release_log.ANSWERED_S", 0.0)
        assert await released.replay_releases(epoch) == 0
        assert len(released) == 0


async def test_what_its_owner_heard_is_unknown_stays_gone_though_its_host_comes_back(clean_store: str) -> None:
    """After a wipe the cell settles by time. A host that returns later still holds a claim reported as not found."""
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, QUICK) as scheduler:
        cell = store.cell("c1")
        async with raw_client(clean_store) as raw:
            clock = await cell.tick()
            await raw.hset(cell.keys.meta, "settle_at_ms", clock.now_ms - 1)
            assert (await cell.tick()).settled
            with pytest.raises(NotFound):
                await scheduler.claims.release("own")
        await cell.hosts.report(report_of("h1"))
        held = [held_claim(name, "1-former.7", ClaimStatus.ACTIVE, {"VCPU": 1}) for name in ("own", "other")]
        await cell.hosts.attest("h1", clock.epoch, held=held)
        assert await state_of(cell, "own") is ClaimStatus.ENDING
        assert await state_of(cell, "other") is ClaimStatus.ACTIVE


async def test_an_unknown_id_leaves_nothing_in_a_store_that_has_heard_all_its_hosts(clean_store: str) -> None:
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, QUICK) as scheduler:
        await store.cell("c1").init()
        async with raw_client(clean_store) as raw:
            with pytest.raises(NotFound):
                await scheduler.claims.release("never")
            assert not await raw.exists(store.cell("c1").keys.claim("never"))


@pytest.mark.parametrize("until", ["claimed", "active"])
async def test_ids_that_were_made_are_returned_where_what_they_have_cannot_be_read(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, until: Literal["claimed", "active"]
) -> None:
    """Otherwise no caller would know the claim's id, and the claim would never be released."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        await scheduler.explain(Request({"VCPU": 1}))
        claim, read = ClaimCommands.place, ClaimCommands.read

        async def sent_twice(self: ClaimCommands, call: ClaimCall, *more: Any, **named: Any) -> ClaimReply:
            answer = await claim(self, call, *more, **named)
            monkeypatch.setattr(ClaimCommands, "read", away)
            if until == "active":
                [placed] = answer.placed
                await cell.claims.accept("h1", call.members[0].id, placed.token, 60)
                await cell.claims.confirm("h1", call.members[0].id, placed.token)
                return answer
            return await claim(self, call, *more, **named)

        async def away(*_: object) -> dict[str, Claim]:
            raise StoreUnavailable("away")

        monkeypatch.setattr(ClaimCommands, "place", sent_twice)
        request = Request({"VCPU": 1}, until=until)
        with pytest.raises(OutcomeUnknown) as unknown:
            await scheduler.select(request)
        monkeypatch.setattr(ClaimCommands, "read", read)
        monkeypatch.setattr(ClaimCommands, "place", claim)
        ids = tuple(unknown.value.facts.claim_ids)
        (found,) = (await scheduler.select(replace(request, claim_ids=ids))).selections
        assert await cell.hosts.claim_ids("h1") == {found.claim_id} == set(ids)


@pytest.mark.parametrize("own", [(), ("mine",)])
async def test_a_first_outcome_that_is_lost_before_it_is_read_is_decided_again(
    clean_store: str, binary: Any, monkeypatch: pytest.MonkeyPatch, own: tuple[str, ...]
) -> None:
    """The call's reply is lost; its retry gets ALREADY_DONE, and then a failover loses the claim."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        await scheduler.explain(Request({"VCPU": 1}))
        before = await Rollback.note(binary)
        real, lost = ClaimCommands.place, list[str]()

        async def claim(self: ClaimCommands, call: ClaimCall, *more: Any, **named: Any) -> ClaimReply:
            answer = await real(self, call, *more, **named)
            if not lost:
                lost.append(call.members[0].id)
                answer = await real(self, call, *more, **named)
                assert answer.outcome is Outcome.ALREADY_DONE
                await cell.hosts.attest("h1", await before.play(cell))
            return answer

        monkeypatch.setattr(ClaimCommands, "place", claim)
        (found,) = (await scheduler.select(Request({"VCPU": 1}, claim_ids=own))).selections
        assert await state_of(cell, found.claim_id) is ClaimStatus.CLAIMED
        assert (found.claim_id == lost[0]) == bool(own)


async def test_what_a_lost_copy_of_a_call_has_claimed_stays_gone(
    clean_store: str, binary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is lost with the primary, the retry meets a new epoch, and the call is decided again under new ids."""
    async with opened(clean_store, "h1", "h2") as (scheduler, cell):
        await scheduler.explain(Request({"VCPU": 1}))
        before = await Rollback.note(binary)
        real, lost = ClaimCommands.place, list[JournaledClaim]()

        async def claim(self: ClaimCommands, call: ClaimCall, *more: Any, **named: Any) -> ClaimReply:
            if not lost:
                placed = (await real(self, call)).placed[0]
                lost.append(held_claim(call.members[0].id, placed.token, ClaimStatus.ACTIVE, {"VCPU": 1}))
                epoch = await before.play(cell)
                await cell.hosts.attest("h2" if placed.host == "h1" else "h1", epoch)
            return await real(self, call, *more, **named)

        monkeypatch.setattr(ClaimCommands, "place", claim)
        found = (await scheduler.select(Request({"VCPU": 1}))).selections[0]
        assert found.claim_id != lost[0].id

        async def is_closed() -> bool:
            return bool(await cell.claims.read([lost[0].id]))

        await wait_until(is_closed, what="the id is closed")
        late = "h2" if found.host == "h1" else "h1"
        await cell.hosts.attest(late, (await cell.tick()).epoch, held=lost)
        assert await state_of(cell, lost[0].id) is ClaimStatus.ENDING, "nobody knows of it: its host is to stop it"
        assert await state_of(cell, found.claim_id) is ClaimStatus.CLAIMED


async def test_a_copy_that_the_store_has_kept_is_released_too(clean_store: str) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        await claim_on(cell, "a")
        released = ReleaseLog(cell)
        released.abandon(["a"])
        epoch = (await cell.tick()).epoch
        assert await released.replay_releases(epoch) == 1
        assert await state_of(cell, "a") is ClaimStatus.ENDED


@pytest.mark.parametrize("unseen", [1, 2])
async def test_a_claim_that_comes_back_while_its_release_looks_for_it_is_released(
    scheduler: Scheduler, clean_store: str, monkeypatch: pytest.MonkeyPatch, unseen: int
) -> None:
    """Its host restores it after one or two reads that did not find it, before the cell is seen as settled."""
    async with Store.connect(clean_store) as store:
        await open_host(store.cell("c1"), "h1")
        [one] = (await scheduler.select(Request({"VCPU": 1}))).selections
        reads, read_claims = 0, ClaimCommands.read

        async def not_yet(self: ClaimCommands, ids: Iterable[str]) -> dict[str, Claim]:
            nonlocal reads
            reads += 1
            return {} if reads <= unseen else await read_claims(self, ids)

        monkeypatch.setattr(ClaimCommands, "read", not_yet)
        assert await scheduler.claims.release(str(one.claim_id)) is True
        assert await state_of(store.cell("c1"), one.claim_id) is ClaimStatus.ENDED


async def test_an_unknown_id_stays_closed_through_further_epochs_but_not_to_what_is_claimed_later(
    clean_store: str,
) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        async with raw_client(clean_store) as raw:
            told_in = (await cell.tick()).epoch
            released = ReleaseLog(cell)
            for claim_id in ("lost", "again"):
                released.note(claim_id, await cell.claims.void(claim_id, ""))
            await raw.flushall()
        epoch = (await cell.raise_epoch(told_in)).epoch
        await cell.hosts.report(report_of("h1"))
        await cell.hosts.attest("h1", epoch, held=[held_claim("lost", "1-former.7", ClaimStatus.ACTIVE, {"VCPU": 1})])
        await raw_settled(clean_store, cell)
        await claim_on(cell, "again")
        assert await released.replay_releases(epoch) == 2
        assert await state_of(cell, "lost") is ClaimStatus.ENDING
        assert await state_of(cell, "again") is ClaimStatus.CLAIMED


async def test_an_unknown_id_that_was_used_again_is_its_owners_though_a_later_epoch_hears_of_the_closing_first(
    clean_store: str,
) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        told_in = (await cell.tick()).epoch
        released = ReleaseLog(cell)
        released.note("a", await cell.claims.void("a", ""))
        async with raw_client(clean_store) as raw:
            await raw.delete(cell.keys.claim("a"))
        placed = await active(cell, "a")
        async with raw_client(clean_store) as raw:
            await raw.flushdb()
        epoch = (await cell.raise_epoch(told_in)).epoch
        assert await released.replay_releases(epoch) == 1
        await cell.hosts.report(report_of("h1"))
        answer = await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
        assert answer.drop == ()
        assert await state_of(cell, "a") is ClaimStatus.ACTIVE


async def raw_settled(url: str, cell: CellStore) -> None:
    """End the time that the cell waits for its hosts."""
    async with raw_client(url) as raw:
        await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    assert (await cell.tick()).settled
