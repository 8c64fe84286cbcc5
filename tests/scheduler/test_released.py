"""Releases that were answered and lost with the store's last writes: the scheduler that answered says them again."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis.asyncio as redis

from redsched.errors import StaleToken, Unknown
from redsched.model import Claim, ClaimStatus, Request, Why
from redsched.scheduler import Scheduler
from redsched.scheduler.released import MOST, Released
from redsched.settings import Settings
from redsched.store import CellStore, ClaimAnswer, ClaimCall, Giving, HeldClaim, Store
from tests.scheduler.working import BY_HAND
from tests.support.cells import active, claim_on, open_host, raw_client, report_of
from tests.support.placements import held_claim
from tests.support.succession import arrive, held, moved, settle, target
from tests.support.waiting import wait_until

QUICK = Settings(tick_s=0.05)


class Rollback:
    """What the store held at one instant, to be brought back later as a failover to a late replica does."""

    def __init__(self, raw: redis.Redis, held: dict[str, bytes]) -> None:
        self._raw, self._held = raw, held

    @classmethod
    async def note(cls, raw: Any) -> "Rollback":
        return cls(raw, {key: await raw.dump(key) for key in await raw.keys("*")})

    async def play(self, cell: CellStore) -> str:
        """Go back; the epoch that this starts."""
        async with self._raw.pipeline() as at_once:
            at_once.flushall()
            for key, value in self._held.items():
                at_once.restore(key, 0, value)
            await at_once.execute()
        clock = await cell.tick()
        return (await cell.raise_epoch(clock.epoch)).epoch


@pytest.fixture
async def binary(clean_store: str) -> Any:
    """A client that reads what DUMP gives."""
    async with redis.Redis.from_url(clean_store, protocol=2) as client:
        yield client


@asynccontextmanager
async def opened(url: str, *hosts: str, settings: Settings = QUICK) -> AsyncIterator[tuple[Scheduler, CellStore]]:
    """A scheduler, and its cell with some hosts."""
    async with Store.connect(url) as store, Scheduler.connect(url, settings) as scheduler:
        cell = store.cell("c1")
        await cell.init()
        for name in hosts:
            await open_host(cell, name)
        yield scheduler, cell


async def selected(scheduler: Scheduler) -> tuple[str, str]:
    """A claim's id and token."""
    found = (await scheduler.select(Request({"VCPU": 1}))).selections[0]
    return found.claim_id or "", found.token or ""


async def state_of(cell: CellStore, claim_id: str | None) -> ClaimStatus:
    """Where a claim is in its life."""
    assert claim_id
    return (await cell.read_claims([claim_id]))[claim_id].state


async def test_a_release_that_a_rollback_took_back_is_said_again_when_its_host_has_attested(
    clean_store: str, binary: Any
) -> None:
    async with opened(clean_store, "h1") as (scheduler, cell):
        found = (await scheduler.select(Request({"VCPU": 1}))).selections[0]
        assert found.claim_id
        before = await Rollback.note(binary)
        assert await scheduler.claims.release(found.claim_id)
        epoch = await before.play(cell)
        async with raw_client(clean_store) as raw:
            await wait_until(lambda: scheduler._cells.named("c1").mirror.epoch == epoch, what="the new epoch is seen")
            assert (await raw.hget(cell.keys.claim(found.claim_id), "state")) == "claimed", "its host is asked first"
        await cell.attest("h1", epoch)

        async def has_ended() -> bool:
            return await state_of(cell, found.claim_id) is ClaimStatus.ENDED

        await wait_until(has_ended, what="the release is said again")
        assert (await scheduler.audit()).problems == ()


async def test_a_release_is_said_once_in_an_epoch_and_only_with_its_own_token(
    clean_store: str,
) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        await claim_on(cell, "a")
        claim = (await cell.read_claims(["a"]))["a"]
        released = Released(cell)
        released.note(claim, how=Giving.ASK, epoch="1-former")
        async with raw_client(clean_store) as raw:
            await raw.hset(cell.keys.claim("a"), "token", "9999999999999-later.1")
            assert await released.say_again((await cell.tick()).epoch) == 1
            assert await state_of(cell, "a") is ClaimStatus.CLAIMED, "it was placed anew: another claim by now"
            assert await released.say_again((await cell.tick()).epoch) == 0
            await raw.hset(cell.keys.claim("a"), "token", claim.token)
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        assert await released.say_again(epoch) == 0, "the host has not attested"
        await cell.attest("h1", epoch)
        assert await released.say_again(epoch) == 1
        assert await state_of(cell, "a") is ClaimStatus.ENDED


@pytest.mark.parametrize("verb", ["fail", "release what is shelved"])
async def test_other_ends_that_a_rollback_took_back_are_said_again(clean_store: str, binary: Any, verb: str) -> None:
    """A claim said to have failed, with no host to try, and one that was shelved and is not wanted any more."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        if verb == "fail":
            before = await Rollback.note(binary)
            assert (await scheduler.claims.fail(claim_id, token, ())).state is ClaimStatus.ENDED
        else:
            await scheduler.claims.shelve(claim_id, token)
            before = await Rollback.note(binary)
            assert await scheduler.claims.release(claim_id)
        await cell.attest("h1", await before.play(cell))

        async def is_given_up() -> bool:
            claim = (await cell.read_claims([claim_id]))[claim_id]
            return claim.state is ClaimStatus.ENDED and claim.why is Why.RELEASED

        await wait_until(is_given_up, what="it is given back")


async def test_what_was_placed_in_the_stead_of_a_released_claim_is_given_back_too(clean_store: str) -> None:
    """The store forgot the release, and the claim was moved before it was said again."""
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        for name in ("h1", "h2"):
            await open_host(cell, name)
        first = await active(cell, "a")
        released = Released(cell)
        released.note((await cell.read_claims(["a"]))["a"], how=Giving.ASK, epoch="1-former")
        await moved(cell, "a", first, "b", "h2")
        epoch = (await cell.tick()).epoch
        assert await released.say_again(epoch) == 1
        assert await released.say_again(epoch) == 1
        assert await state_of(cell, "b") is ClaimStatus.ENDING


async def test_what_was_unshelved_and_then_released_is_not_left_shelved(clean_store: str, binary: Any) -> None:
    """A store that has lost both knows only that it is shelved, under the id of its owner."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        await scheduler.claims.shelve(claim_id, token)
        before = await Rollback.note(binary)
        await scheduler.claims.unshelve(claim_id)
        assert await scheduler.claims.release(claim_id)
        await cell.attest("h1", await before.play(cell))

        async def is_given_up() -> bool:
            return (await cell.read_claims([claim_id]))[claim_id].why is Why.RELEASED

        await wait_until(is_given_up, what="it is shelved no more")
        async with raw_client(clean_store) as raw:
            assert not await raw.exists(cell.keys.shelved)


async def test_a_release_forgets_what_was_shelved_on_the_way(clean_store: str) -> None:
    """A chore of a new epoch has left it shelved, before the host came back that has what it has become."""
    async with opened(clean_store, "h1") as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        await scheduler.claims.shelve(claim_id, token)
        target, _ = await scheduler.claims.unshelve(claim_id)
        async with raw_client(clean_store) as raw:
            await raw.hdel(cell.keys.claim(target.id), "former", "former_host", "former_token", "former_why")
            assert await scheduler.claims.release(target.id)
            assert not await raw.exists(cell.keys.shelved)


async def test_an_id_that_was_written_anew_leads_to_what_it_has_become(clean_store: str) -> None:
    """Its journal knows of the claim that lives only by which id its owner knows it, not where that one was."""
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, QUICK) as scheduler:
        cell = store.cell("c1")
        placed = held_claim("b", "1-former.7", ClaimStatus.ACTIVE, {"VCPU": 1}, origin="a")
        epoch = (await cell.report(report_of("h1"))).epoch
        await cell.attest("h1", epoch, held=[placed])
        await raw_settled(clean_store, cell)
        await cell.succeed("b")
        assert (await scheduler.claims.get("a")).id == "b"
        assert not await scheduler.claims.release("a")
        assert await state_of(cell, "b") is ClaimStatus.ENDING


async def test_what_was_unshelved_and_failed_stays_shelved_in_a_new_epoch(clean_store: str) -> None:
    async with opened(clean_store, "h1") as (scheduler, cell):
        claim_id, token = await selected(scheduler)
        await scheduler.claims.shelve(claim_id, token)
        target, _ = await scheduler.claims.unshelve(claim_id)
        await scheduler.claims.fail(claim_id, target.token, ())
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        await cell.attest("h1", epoch)
        released = scheduler._cells.named("c1").released
        await wait_until(lambda: all(one.epoch == epoch for one in released._said), what="the end is said again")
        assert (await cell.read_claims([claim_id]))[claim_id].why is Why.SHELVED


async def test_what_a_released_claim_has_succeeded_does_not_come_back(clean_store: str) -> None:
    """The store has lost the move and the release, and the former host, which had not heard of it, has it still."""
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        for name in ("h1", "h2"):
            await open_host(cell, name)
        first = await active(cell, "a")
        await moved(cell, "a", first, "b", "h2")
        released = Released(cell)
        released.note((await cell.read_claims(["b"]))["b"], how=Giving.ASK, epoch="1-former")
        async with raw_client(clean_store) as raw:
            former = (await cell.tick()).epoch
            await raw.delete(cell.keys.claim("a"), cell.keys.claim("b"), cell.keys.claims("h2"))
        epoch = (await cell.raise_epoch(former)).epoch
        await released.say_again(epoch)
        answer = await cell.attest("h1", epoch, held=[held_claim("a", first.token, ClaimStatus.ACTIVE, {"VCPU": 1})])
        assert answer.drop == ("a",)


async def test_a_release_is_said_of_a_claim_whose_resize_was_lost_too(clean_store: str) -> None:
    """The store then has it by its earlier token."""
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        placed = await claim_on(cell, "a")
        await cell.resize("h1", "a", placed.token, {"VCPU": 2})
        released = Released(cell)
        released.note((await cell.read_claims(["a"]))["a"], how=Giving.ASK, epoch="1-former")
        async with raw_client(clean_store) as raw:
            await raw.hset(cell.keys.claim("a"), "token", placed.token)
        epoch = (await cell.tick()).epoch
        await released.say_again(epoch)
        await released.say_again(epoch)
        assert await state_of(cell, "a") is ClaimStatus.ENDED


async def test_no_more_is_remembered_than_can_be_lost(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        await claim_on(cell, "a")
        claim = (await cell.read_claims(["a"]))["a"]
        released = Released(cell)
        epoch = (await cell.tick()).epoch
        for _ in range(MOST + 10):
            released.note(claim, how=Giving.ASK, epoch=epoch)
        assert len(released) == MOST
        monkeypatch.setattr("redsched.scheduler.released.ANSWERED_S", 0.0)
        assert await released.say_again(epoch) == 0
        assert len(released) == 0


async def test_what_its_owner_was_told_is_not_known_stays_gone_though_its_host_comes_back(clean_store: str) -> None:
    """After a wipe the cell settles by time. A host that is away for longer has what its owner took for lost."""
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, QUICK) as scheduler:
        cell = store.cell("c1")
        async with raw_client(clean_store) as raw:
            clock = await cell.tick()
            await raw.hset(cell.keys.meta, "settle_at_ms", clock.now_ms - 1)
            assert (await cell.tick()).settled
            with pytest.raises(Unknown):
                await scheduler.claims.release("own")
        await cell.report(report_of("h1"))
        held = [held_claim(name, "1-former.7", ClaimStatus.ACTIVE, {"VCPU": 1}) for name in ("own", "other")]
        answer = await cell.attest("h1", clock.epoch, held=held)
        assert answer.drop == ("own",)
        assert await state_of(cell, "other") is ClaimStatus.ACTIVE


async def test_an_unknown_id_leaves_nothing_in_a_store_that_has_heard_all_its_hosts(clean_store: str) -> None:
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, QUICK) as scheduler:
        await store.cell("c1").init()
        async with raw_client(clean_store) as raw:
            with pytest.raises(Unknown):
                await scheduler.claims.release("never")
            assert not await raw.exists(store.cell("c1").keys.claim("never"))


async def test_what_a_lost_copy_of_a_call_has_claimed_stays_gone(
    clean_store: str, binary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is lost with the primary, a copy meets another epoch, and the call is decided anew under new ids."""
    async with opened(clean_store, "h1", "h2") as (scheduler, cell):
        await scheduler.explain(Request({"VCPU": 1}))
        before = await Rollback.note(binary)
        real, lost = CellStore.claim, list[HeldClaim]()

        async def claim(self: CellStore, call: ClaimCall, *more: Any, **named: Any) -> ClaimAnswer:
            if not lost:
                placed = (await real(self, call)).placed[0]
                lost.append(held_claim(call.members[0].id, placed.token, ClaimStatus.ACTIVE, {"VCPU": 1}))
                epoch = await before.play(self)
                await cell.attest("h2" if placed.host == "h1" else "h1", epoch)
            return await real(self, call, *more, **named)

        monkeypatch.setattr(CellStore, "claim", claim)
        found = (await scheduler.select(Request({"VCPU": 1}))).selections[0]
        assert found.claim_id != lost[0].id

        async def is_closed() -> bool:
            return bool(await cell.read_claims([lost[0].id]))

        await wait_until(is_closed, what="the id is closed")
        late = "h2" if found.host == "h1" else "h1"
        answer = await cell.attest(late, (await cell.tick()).epoch, held=lost)
        assert answer.drop == (lost[0].id,), "nobody knows of it: its host is to drop it"
        assert await state_of(cell, found.claim_id) is ClaimStatus.CLAIMED


async def test_a_copy_that_the_store_has_kept_is_given_back_too(clean_store: str) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell, "h1")
        await claim_on(cell, "a")
        released = Released(cell)
        released.abandon(["a"])
        epoch = (await cell.tick()).epoch
        assert await released.say_again(epoch) == 2, "it is looked for, and then given back"
        assert await state_of(cell, "a") is ClaimStatus.ENDED


@pytest.mark.parametrize("unseen", [1, 2])
async def test_a_claim_that_comes_back_while_its_release_looks_for_it_is_released(
    scheduler: Scheduler, clean_store: str, monkeypatch: pytest.MonkeyPatch, unseen: int
) -> None:
    """Its host restores it after it was looked for, once or twice, and before the cell says that it has settled."""
    async with Store.connect(clean_store) as store:
        await open_host(store.cell("c1"), "h1")
        [one] = (await scheduler.select(Request({"VCPU": 1}))).selections
        reads, read_claims = 0, CellStore.read_claims

        async def not_yet(self: CellStore, ids: Iterable[str]) -> dict[str, Claim]:
            nonlocal reads
            reads += 1
            return {} if reads <= unseen else await read_claims(self, ids)

        monkeypatch.setattr(CellStore, "read_claims", not_yet)
        assert await scheduler.claims.release(str(one.claim_id)) is True
        assert await state_of(store.cell("c1"), one.claim_id) is ClaimStatus.ENDED


async def test_an_unknown_id_stays_closed_through_further_epochs_but_not_to_what_is_claimed_later(
    clean_store: str,
) -> None:
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        async with raw_client(clean_store) as raw:
            told_in = (await cell.tick()).epoch
            released = Released(cell)
            for claim_id in ("lost", "again"):
                released.note_unknown(claim_id, told_in)
            await raw.flushall()
        epoch = (await cell.raise_epoch(told_in)).epoch
        await cell.report(report_of("h1"))
        await cell.attest("h1", epoch, held=[held_claim("lost", "1-former.7", ClaimStatus.ACTIVE, {"VCPU": 1})])
        await raw_settled(clean_store, cell)
        await claim_on(cell, "again")
        assert await released.say_again(epoch) == 3, "both are looked for, and the one that came back is given back"
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
        placed = await active(cell, "a")
        released = Released(cell)
        released.note_unknown("a", told_in)
        async with raw_client(clean_store) as raw:
            await raw.flushdb()
        epoch = (await cell.raise_epoch(told_in)).epoch
        assert await released.say_again(epoch) == 1
        await cell.report(report_of("h1"))
        answer = await cell.attest("h1", epoch, held=[held("a", placed)])
        assert answer.drop == ()
        assert await state_of(cell, "a") is ClaimStatus.ACTIVE


async def test_what_an_unknown_id_had_become_is_given_back_in_a_later_epoch(clean_store: str) -> None:
    """Another scheduler had the id lead to it, before the one that had told its owner could close the id again."""
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        for name in ("h1", "h2"):
            await open_host(cell, name)
        await moved(cell, "a", await active(cell, "a"))
        released = Released(cell)
        released.note_unknown("a", (await cell.raise_epoch((await cell.tick()).epoch)).epoch)
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        for name in ("h1", "h2"):
            await cell.attest(name, epoch)
        assert await released.say_again(epoch) == 2, "it is looked for, and then given back"
        assert (await cell.read_claims("b"))["b"].why is Why.RELEASED


async def test_what_was_to_be_moved_goes_on_in_a_new_epoch_where_its_move_was_called_off(clean_store: str) -> None:
    """The target was released by its own id, and had not come up."""
    async with opened(clean_store, "h1", "h2") as (scheduler, cell):
        first = await active(cell, "a")
        await target(cell, "a", first)
        assert await scheduler.claims.release("b")
        epoch = (await cell.raise_epoch((await cell.tick()).epoch)).epoch
        await cell.attest("h1", epoch, held=[held("a", first)])
        await cell.attest("h2", epoch)
        released = scheduler._cells.named("c1").released
        await wait_until(lambda: all(one.epoch == epoch for one in released._said), what="the end is said again")
        await released.say_again(epoch)
        assert await state_of(cell, "a") is ClaimStatus.ACTIVE


@pytest.mark.parametrize(
    "wins", ["between its reading and the release", "before a release by token", "after the release"]
)
async def test_a_release_reaches_both_targets_where_a_rollback_has_left_two(
    clean_store: str, binary: Any, monkeypatch: pytest.MonkeyPatch, wins: str
) -> None:
    """The owner's id leads to the one that a host has brought back, and the other one comes up.

    By the token of one that has been given back for the other, nothing is said of that.
    """
    async with opened(clean_store, "h1", "h2", "h3", settings=BY_HAND) as (scheduler, cell):
        real = CellStore.release
        first = await active(cell, "a")
        before = await Rollback.note(binary)
        lost = await target(cell, "a", first)
        await arrive(cell, "b", lost)
        epoch = await before.play(cell)
        await cell.attest("h1", epoch, held=[held("a", first)])
        await cell.attest("h3", epoch)
        later = await target(cell, "a", first, "c", "h3")
        former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": first.token}
        await cell.attest("h2", epoch, held=[held("b", lost, origin="a", former_why=Why.MOVED, **former)])
        await cell.succeed("b")

        async def won_before(self: CellStore, *arguments: Any, **named: Any) -> Any:
            if arguments[1] == "b":
                await arrive(cell, "c", later)
                await cell.succeed("c")
                if wins == "before a release by token":
                    await settle(cell)
            return await real(self, *arguments, **named)

        if wins != "after the release":
            monkeypatch.setattr(CellStore, "release", won_before)
        if wins == "before a release by token":
            with pytest.raises(StaleToken):
                await scheduler.claims.release("a", lost.token)
            await settle(cell)
            assert await state_of(cell, "c") is ClaimStatus.ACTIVE
            return
        assert await scheduler.claims.release("a") is False
        if wins == "after the release":
            now = await scheduler.claims.get("a")
            assert (now.id, now.state) == ("b", ClaimStatus.ENDING), "its work has still to stop"
            await arrive(cell, "c", later)
            await settle(cell)
        assert {await state_of(cell, one) for one in "bc"} == {ClaimStatus.ENDING}


async def raw_settled(url: str, cell: CellStore) -> None:
    """Let the cell's time for its hosts be up."""
    async with raw_client(url) as raw:
        await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    assert (await cell.tick()).settled
