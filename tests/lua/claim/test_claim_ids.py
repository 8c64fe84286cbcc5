"""claim.lua: an id has one outcome, however often and late its call arrives; void.lua, bind.lua: ids changing cells."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall
from tests.support.builders.cells import (
    IN_STATE,
    accepted_claim,
    active,
    call_of,
    claim_on,
    ending,
    known,
    member,
    new_epoch,
    nothing_written,
    open_host,
)


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


async def refused(cell: CellStore, raw: Any, call: ClaimCall) -> Outcome:
    """Return the outcome of a call that must write nothing."""
    async with nothing_written(raw):
        answer = await cell.claims.place(call)
    assert not answer.looked_at
    return answer.outcome


async def test_the_same_call_again_gets_the_first_outcome_and_changes_nothing(cell: CellStore, raw: Any) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    first = await cell.claims.place(call)
    async with nothing_written(raw):
        again = await cell.claims.place(call)
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(*first.placed))


async def test_the_digest_decides_and_not_the_candidates(cell: CellStore, raw: Any) -> None:
    """Another scheduler chooses other hosts; the id still has its one outcome."""
    first = await claim_on(cell)
    async with nothing_written(raw):
        again = await cell.claims.place(call_of(await cell.tick(), member("a", "elsewhere", VCPU=7)))
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(first))


async def test_same_tells_the_present_state(cell: CellStore) -> None:
    for state, bring in (("starting", accepted_claim), ("active", active)):
        first = await bring(cell, state)
        answer = await cell.claims.place(call_of(await cell.tick(), member(state, "h1")))
        (placed,) = answer.placed
        assert (answer.outcome, placed.state, placed.token) == (Outcome.ALREADY_DONE, state, first.token)
        assert (placed.expires_at_ms is None) == (state != "starting")


async def test_a_claim_that_is_ending_is_none_that_the_caller_could_use(cell: CellStore, raw: Any) -> None:
    """It was released or shelved while its work ran, as when a call is undone that was not durable in time."""
    await ending(cell, "a")
    assert await refused(cell, raw, call_of(await cell.tick(), member("a", "h1"))) is Outcome.ENDED


@pytest.mark.parametrize("state", IN_STATE)
async def test_another_digest_is_a_conflict_in_every_state(cell: CellStore, raw: Any, state: str) -> None:
    await IN_STATE[state](cell)
    call = call_of(await cell.tick(), member("a", "h1"), digest="other")
    assert await refused(cell, raw, call) is Outcome.CONFLICT


async def test_an_owner_may_insist_on_claims_of_its_own(cell: CellStore, raw: Any) -> None:
    """Those of others with the same ids are a conflict, and those that nobody owns are not."""
    hers = replace(call_of(await cell.tick(), member("a", "h1")), owner="alice", own_only=True)
    nobodys = call_of(await cell.tick(), member("b", "h1"))
    for call in (hers, nobodys):
        assert (await cell.claims.place(call)).outcome is Outcome.OK
    assert await refused(cell, raw, replace(hers, owner="bob", call_id="late")) is Outcome.CONFLICT
    assert await refused(cell, raw, replace(nobodys, owner="bob", own_only=True)) is Outcome.ALREADY_DONE
    assert await refused(cell, raw, replace(hers, owner="bob", own_only=False)) is Outcome.ALREADY_DONE
    assert await refused(cell, raw, hers) is Outcome.ALREADY_DONE


async def test_a_mix_of_known_and_unknown_ids_is_a_conflict(cell: CellStore, raw: Any) -> None:
    await claim_on(cell)
    clock = await cell.tick()
    for order in (("a", "new"), ("new", "a")):
        call = call_of(clock, *(member(one, "h1") for one in order))
        assert await refused(cell, raw, call) is Outcome.CONFLICT


async def test_an_ended_id_is_gone_even_as_one_of_many(cell: CellStore, raw: Any) -> None:
    call = call_of(await cell.tick(), member("a", "h1"), member("b", "h1"))
    await cell.claims.place(call)
    await cell.claims.release("h1", "b")
    assert await refused(cell, raw, call) is Outcome.ENDED


async def test_a_refused_id_has_no_outcome_yet(cell: CellStore) -> None:
    full = await cell.claims.place(call_of(await cell.tick(), member("a", "h1", VCPU=9)))
    assert full.outcome is Outcome.FULL
    await claim_on(cell, "a")


async def test_a_decision_older_than_tombstones_are_remembered_is_late(cell: CellStore, raw: Any) -> None:
    """By the store's time. At exactly remember_s it is still accepted."""
    await raw.hset(cell.keys.meta, "remember_s", "600")
    clock = await cell.tick()
    old = replace(call_of(clock, member("a", "h1")), now_ms=clock.now_ms - 601_000)
    assert await refused(cell, raw, old) is Outcome.EXPIRED
    assert (await cell.claims.place(replace(old, now_ms=clock.now_ms - 598_000))).outcome is Outcome.OK


async def test_a_decision_from_the_future_is_late_too(cell: CellStore, raw: Any) -> None:
    """A caller's clock cannot make a call valid for longer than the tombstone that would stop it."""
    clock = await cell.tick()
    call = replace(call_of(clock, member("a", "h1")), now_ms=clock.now_ms + 60_000)
    assert await refused(cell, raw, call) is Outcome.EXPIRED


async def test_late_is_only_for_ids_without_an_outcome(cell: CellStore) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    await cell.claims.place(call)
    assert (await cell.claims.place(replace(call, now_ms=0))).outcome is Outcome.ALREADY_DONE


async def test_a_decision_of_another_epoch_is_refused(cell: CellStore, raw: Any) -> None:
    call = call_of(await cell.tick(), member("a", "h1"))
    await new_epoch(cell)
    assert await refused(cell, raw, call) is Outcome.WRONG_EPOCH


async def test_a_callers_id_waits_while_a_host_might_still_name_it(cell: CellStore, raw: Any) -> None:
    """Fresh ids cannot be in use anywhere, so a host that has attested still gets claims under them."""
    await open_host(cell, "late")
    await new_epoch(cell)
    await open_host(cell, "h1")
    clock = await cell.tick()
    assert not clock.settled
    assert await refused(cell, raw, call_of(clock, member("a", "h1"), fresh=False)) is Outcome.SETTLING
    assert (await cell.claims.place(call_of(clock, member("b", "h1")))).outcome is Outcome.OK
    await open_host(cell, "late")
    assert (await cell.claims.place(call_of(await cell.tick(), member("a", "h1"), fresh=False))).outcome is Outcome.OK


async def test_an_ended_claim_is_remembered_for_remember_s(cell: CellStore, raw: Any) -> None:
    await raw.hset(cell.keys.meta, "remember_s", "7")
    placed = await claim_on(cell)
    key = cell.keys.claim("a")
    claimed_at_ms = await raw.hget(key, "claimed_at_ms")
    (closed,) = (await cell.claims.release("h1", "a")).facts
    assert 6000 < await raw.pttl(key) <= 7000
    assert await raw.hgetall(key) == {
        "state": "ended",
        "end_reason": "released",
        "host": "h1",
        "digest": "digest",
        "token": placed.token,
        "project": "project",
        "consumer": "consumer",
        "closed": closed,
        "closed_reason": "released",
        "claimed_at_ms": claimed_at_ms,
    }
    assert await cell.due.deadlines() == {}


async def test_without_candidates_a_call_only_tells_what_its_ids_are_known_for(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell)
    async with nothing_written(raw):
        again = await cell.claims.place(call_of(await cell.tick(), member("a")))
        unknown = await cell.claims.place(call_of(await cell.tick(), member("b")))
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(placed))
    assert (unknown.outcome, unknown.looked_at) == (Outcome.FULL, ())


async def test_a_voided_id_is_closed_to_what_was_decided_before_and_open_to_what_comes_after(
    cell: CellStore, raw: Any
) -> None:
    early = call_of(await cell.tick(), member("a", "h1"))
    assert (await cell.claims.void("a", "digest")).outcome is Outcome.OK
    assert await raw.pttl(cell.keys.claim("a")) > 0
    async with nothing_written(raw):
        assert (await cell.claims.void("a", "digest")).outcome is Outcome.ALREADY_DONE
        assert (await cell.claims.place(early)).outcome is Outcome.EXPIRED
        assert (await cell.claims.place(replace(early, digest="other"))).outcome is Outcome.EXPIRED
    voided_at_ms = int(await raw.hget(cell.keys.claim("a"), "voided_at_ms"))
    await raw.hset(cell.keys.claim("a"), "voided_at_ms", voided_at_ms - 1000)  # one second passes
    assert (await cell.claims.place(call_of(await cell.tick(), member("a", "h1")))).outcome is Outcome.OK
    assert await raw.pttl(cell.keys.claim("a")) == -1
    assert not await raw.hexists(cell.keys.claim("a"), "voided_at_ms")


@pytest.mark.parametrize("state", IN_STATE)
async def test_an_id_with_an_outcome_cannot_be_voided(cell: CellStore, raw: Any, state: str) -> None:
    await IN_STATE[state](cell)
    async with nothing_written(raw):
        assert (await cell.claims.void("a", "digest")).outcome is Outcome.CONFLICT


async def test_a_binding_is_given_once_and_taken_over_only_from_the_cell_that_is_named(
    cell: CellStore, raw: Any
) -> None:
    key = cell.keys.binding("a")
    assert await cell.bindings.bind("a", "", 60_000) == "c1"
    assert 0 < await raw.pttl(key) <= 60_000
    assert await cell.bindings.bind("a", "", 60_000) == "c1"
    await raw.set(key, "c2", px=60_000)
    for former in ("", "c1", "c3"):
        async with nothing_written(raw):
            assert await cell.bindings.bind("a", former, 60_000) == "c2"
    assert await cell.bindings.bind("a", "c2", 60_000) == "c1"
    assert await raw.get(key) == "c1"
