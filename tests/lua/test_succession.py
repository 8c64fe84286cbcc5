"""claim.lua and succeed.lua: a claim succeeds another, whatever happens to either of them, and in whichever order."""

from typing import Any

import pytest

from redsched.model import Why
from redsched.store import CellStore, Former, Giving, Outcome
from tests.support.cells import (
    IN_STATE,
    active,
    claim_on,
    claimed,
    everything,
    fields_of,
    make_due,
    new_epoch,
    nothing_written,
)
from tests.support.succession import arrive, ask_target, held, kept, moved, settle, states, target

pytestmark = pytest.mark.usefixtures("three_hosts")


# What claim.lua says of the former one


async def test_a_target_names_its_former_and_is_named_by_it(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await target(cell, "a", placed, by_s=60)
    former, found = (await cell.read_claims("ab")).values()
    assert (found.former, found.former_host, found.former_token, found.former_why) == ("a", "h1", placed.token, "moved")
    assert (found.origin, former.next, former.state) == ("a", "b", "active")
    assert found.by_ms == (found.claimed_at_ms or 0) + 60_000
    assert await raw.zrange(cell.keys.chores, 0, -1, withscores=True) == [("b", found.by_ms)]


@pytest.mark.parametrize("state", [*IN_STATE, "unknown"])
@pytest.mark.parametrize("why", [Why.MOVED, Why.FAILED, Why.SHELVED])
async def test_only_what_still_holds_something_can_be_succeeded(
    cell: CellStore, raw: Any, state: str, why: Why
) -> None:
    """What is shelved has ended, and nothing else that has: it was given back for good."""
    token = "1-a.1" if state == "unknown" else (await IN_STATE[state](cell, "a")).token
    lives = state in ("claimed", "starting", "active") and why is not Why.SHELVED
    expected = "FORMER" if state == "unknown" else "OK" if lives else "GONE"
    before = await everything(raw)
    answer = await ask_target(cell, "b", "h2", Former("a", "h1", token, why))
    assert answer.outcome == expected
    assert (await everything(raw) == before) is not lives


async def test_what_its_host_has_failed_can_still_have_a_successor(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell, "a")
    await cell.fail("h1", "a", placed.token, by_host=True)
    await target(cell, "a", placed, why=Why.FAILED)
    assert await kept(cell, raw, "a") == "a"
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ended failed", "b": "claimed"}


async def test_a_former_with_another_token_is_stale_and_one_that_is_being_moved_says_so(
    cell: CellStore, raw: Any
) -> None:
    placed = await active(cell, "a")
    async with nothing_written(raw):
        answer = await ask_target(cell, "b", "h2", Former("a", "h1", placed.token + "1", Why.MOVED))
    assert answer.outcome is Outcome.STALE
    found = await target(cell, "a", placed)
    async with nothing_written(raw):
        again = await ask_target(cell, "c", "h2", Former("a", "h1", placed.token, Why.MOVED))
        assert (again.outcome, again.next) == (Outcome.MOVING, "b")
        further = await ask_target(cell, "c", "h2", Former("b", "h2", found.token, Why.MOVED))
        assert (further.outcome, further.next) == (Outcome.MOVING, "b")
        same = await ask_target(cell, "b", "h2", Former("a", "h1", placed.token, Why.MOVED))
        assert same.outcome is Outcome.SAME


async def test_a_target_without_room_leaves_its_former_alone(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    async with nothing_written(raw):
        answer = await ask_target(cell, "b", "h2", Former("a", "h1", placed.token, Why.MOVED), VCPU=99)
    assert answer.outcome is Outcome.FULL


async def test_nothing_is_succeeded_on_a_host_that_has_not_attested(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.attest("h2", await new_epoch(cell))
    async with nothing_written(raw):
        answer = await ask_target(cell, "b", "h2", Former("a", "h1", placed.token, Why.MOVED))
    assert answer.outcome is Outcome.ATTEST


# A move


async def test_a_former_is_held_until_its_target_is_active_and_then_asked_back(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert await states(cell, "ab") == {"a": "active", "b": "claimed"}
    assert not await cell.due_chores(2**53, 0, 10)
    await arrive(cell, "b", found)
    assert await cell.due_chores((await cell.tick()).now_ms, 0, 10) == ["b"]
    assert (await cell.succeed("b")).outcome is Outcome.OK
    assert await states(cell, "ab") == {"a": "ending moved", "b": "active"}
    assert [one.op for one in await cell.inbox("h1")] == ["end"]
    async with nothing_written(raw):
        assert {(await cell.succeed(one)).outcome for one in "ab"} == {Outcome.SAME}
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await settle(cell)
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (0, 1)
    fields = await fields_of(raw, cell.keys.claim("b"))
    assert fields["origin"] == "a"
    assert not [one for one in fields if one.startswith("former") or one in ("by_ms", "arrived")]


async def test_what_no_host_had_taken_up_is_freed_with_the_move(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell, "a")
    await arrive(cell, "b", await target(cell, "a", placed))
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ended moved", "b": "active"}
    assert await claimed(raw, cell, "h1") == 0


async def test_an_owners_id_is_kept_as_long_as_the_claim_that_it_points_to(cell: CellStore, raw: Any) -> None:
    """Over several moves; the claims between are forgotten in their time."""
    second = await moved(cell, "a", await active(cell, "a"))
    assert await kept(cell, raw, "ab") == "a"
    third = await moved(cell, "b", second, "c", "h3")
    claims = await cell.read_claims("abc")
    assert (claims["a"].next, claims["b"].next, claims["c"].origin) == ("c", "c", "a")
    assert await kept(cell, raw, "abc") == "a"
    await cell.release("h3", "c", third.token)
    await cell.gone("h3", "c", third.token, Why.RELEASED, {})
    await settle(cell)
    assert await kept(cell, raw, "abc") == ""
    assert await states(cell, "abc") == {"a": "ended moved", "b": "ended moved", "c": "ended released"}


async def test_a_target_that_ends_before_it_is_active_leaves_its_former_as_it_was(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    before = await fields_of(raw, cell.keys.claim("a"))
    found = await target(cell, "a", placed)
    await cell.fail("h2", "b", found.token, by_host=True)
    assert await kept(cell, raw, "b") == "b"
    await settle(cell)
    assert (await fields_of(raw, cell.keys.claim("a")), await kept(cell, raw, "b")) == (before, "")
    await target(cell, "a", placed, "c", "h3")


async def test_what_came_to_nothing_has_no_successor_beside_the_former_that_goes_on(cell: CellStore, raw: Any) -> None:
    """Its owner has been told of the target, and asks for the next alternate: the work would run twice."""
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await cell.fail("h2", "b", found.token, by_host=True)
    await settle(cell)
    async with nothing_written(raw):
        answer = await ask_target(cell, "c", "h3", Former("b", "h2", found.token, Why.FAILED))
    assert answer.outcome is Outcome.GONE
    await target(cell, "a", placed, "c", "h3")


@pytest.mark.parametrize("taken_up", [False, True])
async def test_a_move_that_is_not_done_by_its_deadline_is_given_up(cell: CellStore, raw: Any, taken_up: bool) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed, by_s=60)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert len(await cell.due_chores(2**53, 0, 10)) == 1
    if taken_up:
        await cell.accept("h2", "b", found.token, 60)
    await raw.hset(cell.keys.claim("b"), "by_ms", 1)
    assert (await cell.succeed("b")).outcome is Outcome.OK
    assert await states(cell, "ab") == {"a": "active", "b": "ending expired" if taken_up else "ended expired"}
    if taken_up:
        assert (await cell.confirm("h2", "b", found.token)).outcome is Outcome.ENDING
        await cell.gone("h2", "b", found.token, Why.RELEASED, {})
    await settle(cell)
    assert (await cell.read_claims("a"))["a"].next == ""
    assert await claimed(raw, cell, "h2") == 0


@pytest.mark.parametrize("comes", ["pending", "active"])
@pytest.mark.parametrize("host_stops", [False, True])
async def test_an_owner_who_releases_a_former_gives_up_its_target_too(
    cell: CellStore, raw: Any, comes: str, host_stops: bool
) -> None:
    """In whichever order both become known, and whether or not the former's host has stopped its work by then."""
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    if comes == "active":
        await arrive(cell, "b", found)
    await cell.release("h1", "a", placed.token)
    if host_stops:
        await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await cell.succeed("a")
    await settle(cell)
    expected = "ending released" if comes == "active" else "ended released"
    assert await states(cell, "b") == {"b": expected}
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await cell.gone("h2", "b", found.token, Why.RELEASED, {})
    await settle(cell)
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2"), await kept(cell, raw, "ab")) == (0, 0, "")


@pytest.mark.parametrize("by_host", [False, True])
async def test_a_former_that_fails_meanwhile_has_its_target_all_the_same(
    cell: CellStore, raw: Any, by_host: bool
) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await cell.fail("h1", "a", placed.token, by_host=by_host)
    await cell.succeed("a")
    await settle(cell)
    assert (await cell.read_claims("b"))["b"].former == ""
    await arrive(cell, "b", found)
    await settle(cell)
    assert (await states(cell, "b"), (await cell.read_claims("a"))["a"].next) == ({"b": "active"}, "b")
    assert await kept(cell, raw, "a") == ("a" if by_host else "")


async def test_who_releases_an_active_target_means_the_former_too(cell: CellStore, raw: Any) -> None:
    """Between its confirmation and the chore there are two of them, and an owner who has been told of the new one."""
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await arrive(cell, "b", found)
    await cell.release("h2", "b", found.token, Giving.FORCE)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending released", "b": "ended released"}
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await settle(cell)
    assert await kept(cell, raw, "ab") == ""


async def test_an_active_target_that_its_host_fails_leaves_the_former(cell: CellStore) -> None:
    """It still runs, and nobody has given it up."""
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await arrive(cell, "b", found)
    await cell.fail("h2", "b", found.token, by_host=True)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "active", "b": "ended failed"}
    assert (await cell.read_claims("a"))["a"].next == ""


async def test_a_claim_between_that_ends_while_it_is_moved_again(cell: CellStore, raw: Any) -> None:
    second = await moved(cell, "a", await active(cell, "a"))
    await target(cell, "b", second, "c", "h3")
    await cell.release("h2", "b", second.token, Giving.FORCE)
    await settle(cell)
    assert await states(cell, "bc") == {"b": "ended released", "c": "ended released"}
    assert await kept(cell, raw, "abc") == ""


# The next alternate


@pytest.mark.parametrize("state", ["claimed", "starting", "active"])
async def test_an_alternate_stands_at_once_and_what_failed_is_given_back(cell: CellStore, raw: Any, state: str) -> None:
    placed = await IN_STATE[state](cell, "a")
    found = await target(cell, "a", placed, why=Why.FAILED)
    assert await cell.due_chores((await cell.tick()).now_ms, 0, 10) == ["b"]
    assert (await cell.succeed("b")).outcome is Outcome.OK
    expected = "ended failed" if state == "claimed" else "ending failed"
    assert await states(cell, "ab") == {"a": expected, "b": "claimed"}
    third = await target(cell, "b", found, "c", "h3", Why.FAILED)
    await cell.succeed("c")
    assert (await cell.read_claims("c"))["c"].origin == "a"
    assert await states(cell, "bc") == {"b": "ended failed", "c": "claimed"}
    await cell.release("h3", "c", third.token)
    await settle(cell)
    assert await claimed(raw, cell, "h3") == 0


async def test_what_failed_is_given_back_even_when_its_alternate_has_ended_by_then(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await target(cell, "a", placed, why=Why.FAILED)
    await make_due(raw, cell, "b")
    await cell.expire([("b", "h2")])
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending failed", "b": "ended expired"}


# Both finishers at once, and hosts that cannot be asked


async def test_two_schedulers_that_finish_it_at_once_do_it_once(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await arrive(cell, "b", await target(cell, "a", placed))
    first, second = await cell.succeed("b"), await cell.succeed("b")
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.SAME)
    assert [one.op for one in await cell.inbox("h1")] == ["end"]


async def test_a_succession_waits_for_hosts_that_have_not_attested(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await arrive(cell, "b", found)
    await cell.attest("h2", await new_epoch(cell), None, [held("b", found)])
    async with nothing_written(raw):
        assert (await cell.succeed("b")).outcome is Outcome.ATTEST
    assert (await cell.chore_done("b", (), 5000)).outcome is Outcome.EARLY
    assert not await cell.due_chores((await cell.tick()).now_ms, 0, 10)
    await cell.write_off("h1")
    assert (await cell.succeed("b")).outcome is Outcome.OK
    assert await states(cell, "ab") == {"a": "ended moved", "b": "active"}


async def test_a_target_whose_work_its_host_has_lost_is_waited_for_again(cell: CellStore) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    await arrive(cell, "b", found)
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch, None, [held("a", placed)])
    await cell.attest("h2", epoch)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert await states(cell, "ab") == {"a": "active", "b": "claimed"}
    await arrive(cell, "b", found)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending moved", "b": "active"}


async def test_an_unknown_claim_succeeds_nothing(cell: CellStore, raw: Any) -> None:
    async with nothing_written(raw):
        assert (await cell.succeed("nothing")).outcome is Outcome.UNKNOWN
    await active(cell, "a")
    async with nothing_written(raw):
        assert (await cell.succeed("a")).outcome is Outcome.SAME
