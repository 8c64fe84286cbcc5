"""Successions after a loss of data, and evacuated hosts that come back: nothing is left twice, nothing is lost."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import ClaimStatus, HostStatus, Why
from redsched.store import CellStore, Outcome, Placed
from tests.support.cells import active, claimed, new_epoch, open_host, report_of
from tests.support.succession import arrive, held, kept, moved, settle, states, target

pytestmark = pytest.mark.usefixtures("three_hosts")


async def wipe(cell: CellStore, raw: Any) -> str:
    """The store forgets all; its hosts report again. The new epoch."""
    await raw.flushdb()
    for name in ("h1", "h2", "h3"):
        epoch = (await cell.report(report_of(name))).epoch
    return epoch


async def let_settle(cell: CellStore, raw: Any) -> None:
    """The time that a cell waits for its hosts is over."""
    await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    assert (await cell.tick()).settled


# Evacuation


@pytest.mark.parametrize("epochs", [0, 1, 2])
async def test_an_evacuated_host_that_comes_back_drops_what_was_placed_elsewhere(
    cell: CellStore, raw: Any, epochs: int
) -> None:
    """Also long after what is remembered of those claims is gone. What was not evacuated it keeps."""
    first, left = await active(cell, "a"), await active(cell, "left")
    second = await moved(cell, "a", first, "b", "h3")
    placed = await active(cell, "b2", "h3")
    third = await moved(cell, "b", second, "c", "h1")
    await cell.write_off("h1", evacuate=True)
    assert await cell.leaving_hosts() == {"h1": "evacuate"}
    fourth = await target(cell, "c", third, "d", "h2")
    await arrive(cell, "d", fourth)
    await settle(cell)
    assert await states(cell, "cd") == {"c": "ended moved", "d": "active"}
    for _ in range(epochs):
        epoch = await new_epoch(cell)
        await cell.attest("h2", epoch, None, [held("d", fourth, origin="a")])
        await cell.attest("h3", epoch, None, [held("b2", placed)])
    await raw.delete(cell.keys.claim("c"))
    answer = await cell.attest("h1", "", None, [held("left", left), held("c", third, origin="a"), held("a", first)])
    assert (answer.outcome, set(answer.drop)) == (Outcome.OK, {"a", "c"})
    await settle(cell)
    assert (await cell.read_claims(("left",)))["left"].state is ClaimStatus.ACTIVE
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (1, 1)
    assert (await cell.leaving_hosts(), await raw.hget(cell.keys.host("h1"), "leaving")) == ({}, None)


async def test_what_a_host_was_given_after_its_write_off_comes_back_with_it(cell: CellStore, raw: Any) -> None:
    before = await active(cell, "a")
    await cell.write_off("h1")
    await cell.release("h1", "a", before.token)
    await cell.attest("h1", "")
    await cell.set_status("h1", HostStatus.ENABLED)
    await open_host(cell, "h1")
    after = await active(cell, "b")
    epoch = await new_epoch(cell)
    await raw.delete(cell.keys.claim("a"), cell.keys.claim("b"))
    await raw.srem(cell.keys.claims("h1"), "b")
    answer = await cell.attest("h1", epoch, None, [held("a", before), held("b", after)])
    assert answer.drop == ("a",)
    assert await states(cell, "ab") == {"b": "active"}


async def test_an_evacuation_goes_on_in_later_epochs(cell: CellStore, raw: Any) -> None:
    """The operator's word that a host is dead is not for one epoch. Without `evacuate` it is."""
    placed, other = await active(cell, "a"), await active(cell, "other", "h3")
    await cell.write_off("h1", evacuate=True)
    await cell.write_off("h3")
    await cell.attest("h2", await new_epoch(cell))
    await arrive(cell, "b", await target(cell, "a", placed))
    assert (await cell.succeed("b")).outcome is Outcome.OK
    assert await states(cell, "ab") == {"a": "ended moved", "b": "active"}
    assert (await cell.release("h3", "other", other.token)).outcome is Outcome.ATTEST


async def test_a_host_that_comes_back_before_the_target_is_active_goes_on_until_it_is(
    cell: CellStore, raw: Any
) -> None:
    placed = await active(cell, "a")
    await cell.write_off("h1", evacuate=True)
    found = await target(cell, "a", placed)
    answer = await cell.attest("h1", "", None, [held("a", placed)])
    assert answer.drop == ()
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    await arrive(cell, "b", found)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending moved", "b": "active"}


async def test_leaving_is_an_operators_word_until_the_next(cell: CellStore, raw: Any) -> None:
    assert (await cell.set_status("h1", HostStatus.DRAINING, move=True)).outcome is Outcome.OK
    assert (await cell.set_status("h1", HostStatus.DRAINING, move=True)).outcome is Outcome.SAME
    assert await raw.hget(cell.keys.host("h1"), "leaving") == "move"
    assert (await cell.set_status("h1", HostStatus.DRAINING)).outcome is Outcome.OK
    assert await cell.leaving_hosts() == {}
    assert (await cell.write_off("h1")).outcome is Outcome.OK
    assert (await cell.write_off("h1", evacuate=True)).outcome is Outcome.OK
    assert (await cell.write_off("h1", evacuate=True)).outcome is Outcome.SAME
    await cell.set_status("h1", HostStatus.DRAINING, move=True)
    assert await raw.hget(cell.keys.host("h1"), "leaving") == "evacuate"
    await cell.set_status("h2", HostStatus.DRAINING, move=True)
    await cell.forget("h2")
    await cell.set_status("h1", HostStatus.ENABLED)
    assert (await cell.leaving_hosts(), await raw.hget(cell.keys.host("h1"), "leaving")) == ({}, None)


async def test_an_attestation_does_not_stop_a_drain(cell: CellStore) -> None:
    await cell.set_status("h1", HostStatus.DRAINING, move=True)
    await cell.attest("h1", await new_epoch(cell))
    assert await cell.leaving_hosts() == {"h1": "move"}


# A wipe


async def test_an_owner_finds_its_claim_again_and_the_old_host_drops_it(cell: CellStore, raw: Any) -> None:
    """The host of the living one comes back first. Its journal knows the origin, and nobody knows the rest."""
    first = await active(cell, "a")
    second = await moved(cell, "a", first)
    epoch = await wipe(cell, raw)
    await cell.attest("h2", epoch, None, [held("b", second, origin="a")])
    assert await cell.due_chores((await cell.tick()).now_ms, 0, 10) == ["b"]
    assert (await cell.succeed("b")).outcome is Outcome.ATTEST
    await let_settle(cell, raw)
    await settle(cell)
    assert ((await cell.read_claims("a"))["a"].next, await kept(cell, raw, "a")) == ("b", "a")
    answer = await cell.attest("h1", epoch, None, [held("a", first)])
    assert answer.drop == ("a",)
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (0, 1)


async def test_what_comes_back_on_the_old_host_is_asked_back(cell: CellStore, raw: Any) -> None:
    """The old host attests first."""
    first = await active(cell, "a")
    second = await moved(cell, "a", first)
    epoch = await wipe(cell, raw)
    await cell.attest("h1", epoch, None, [held("a", first)])
    await cell.attest("h2", epoch, None, [held("b", second, origin="a")])
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending moved", "b": "active"}
    await cell.gone("h1", "a", first.token, Why.RELEASED, {})
    await settle(cell)
    assert ((await cell.read_claims("a"))["a"].next, await kept(cell, raw, "a")) == ("b", "a")


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("chain", [False, True])
async def test_a_wipe_between_the_targets_confirmation_and_the_chore(
    cell: CellStore, raw: Any, settled: bool, chain: bool
) -> None:
    """The target's host brings back what it is to succeed. Its former's host may come before or after the end."""
    origin = await active(cell, "o", "h3") if chain else None
    first = await moved(cell, "o", origin, "a", "h1") if origin else await active(cell, "a")
    origin_id = "o" if chain else "a"
    former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": first.token, "former_why": Why.MOVED}
    found = await target(cell, "a", first)
    await arrive(cell, "b", found)
    epoch = await wipe(cell, raw)
    if not settled:
        await cell.attest("h1", epoch, None, [held("a", first, origin="o" if chain else "")])
    await cell.attest("h2", epoch, None, [held("b", found, origin=origin_id, **former)])
    await let_settle(cell, raw)
    await settle(cell)
    if settled:
        answer = await cell.attest("h1", epoch, None, [held("a", first, origin="o" if chain else "")])
        assert answer.drop == ("a",)
    assert await states(cell, "ab") == {"a": "ended moved" if settled else "ending moved", "b": "active"}
    await cell.gone("h1", "a", first.token, Why.RELEASED, {})
    await settle(cell)
    claims = await cell.read_claims("oab")
    assert (claims["a"].next, claims["b"].former) == ("b", "")
    assert {one.next for one in claims.values() if one.id == origin_id} == {"b"}
    assert await kept(cell, raw, "oa") == origin_id


@pytest.mark.parametrize("order", ["abc", "bca", "cab", "cba"])
async def test_of_a_whole_line_that_comes_back_only_the_last_is_left(cell: CellStore, raw: Any, order: str) -> None:
    first = await active(cell, "a", "h1")
    second = await moved(cell, "a", first, "b", "h2")
    third = await moved(cell, "b", second, "c", "h3")
    epoch = await wipe(cell, raw)
    of = {"a": ("h1", held("a", first)), "b": ("h2", held("b", second, origin="a"))}
    of["c"] = ("h3", held("c", third, origin="a"))
    for number, claim_id in enumerate(order):
        host, claim = of[claim_id]
        await cell.attest(host, epoch, None, [claim])
        if number == 1:
            await let_settle(cell, raw)
        await settle(cell, but=order if number < 1 else ())
    for host, claim_id, placed in (("h1", "a", first), ("h2", "b", second)):
        await cell.gone(host, claim_id, placed.token, Why.RELEASED, {})
    await settle(cell)
    assert (await cell.read_claims("a"))["a"].next == "c"
    assert (await states(cell, "c"), await kept(cell, raw, "ab")) == ({"c": "active"}, "a")
    assert [await claimed(raw, cell, host) for host in ("h1", "h2", "h3")] == [0, 0, 1]


async def test_a_target_that_was_not_active_waits_for_its_formers_host(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": placed.token, "former_why": Why.MOVED}
    await cell.accept("h2", "b", found.token, 3600)
    epoch = await wipe(cell, raw)
    await cell.attest("h2", epoch, None, [held("b", found, ClaimStatus.STARTING, origin="a", **former)])
    await let_settle(cell, raw)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert (await cell.attest("h1", epoch, None, [held("a", placed)])).drop == ()
    await cell.confirm("h2", "b", found.token)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending moved", "b": "active"}


async def test_a_former_that_was_moved_elsewhere_meanwhile_has_one_successor(cell: CellStore, raw: Any) -> None:
    """Its host comes back first, it is moved again, and then the first target's host comes back."""
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": placed.token, "former_why": Why.MOVED}
    await arrive(cell, "b", found)
    epoch = await wipe(cell, raw)
    await cell.attest("h1", epoch, None, [held("a", placed)])
    await cell.attest("h3", epoch)
    again = await target(cell, "a", placed, "c", "h3")
    await arrive(cell, "c", again)
    await settle(cell)
    await cell.attest("h2", epoch, None, [held("b", found, origin="a", **former)])
    await settle(cell)
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await settle(cell)
    assert await states(cell, "abc") == {"a": "ended moved", "b": "ending moved", "c": "active"}
    assert (await cell.read_claims("a"))["a"].next == "c"


@pytest.mark.parametrize("has_stopped", [True, False])
async def test_a_move_that_a_failover_takes_back_in_its_last_steps_is_not_taken_for_a_release(
    cell: CellStore, raw: Any, has_stopped: bool
) -> None:
    """The first claim's host says that it has ended, or is ending. That was because the other one had come up."""
    first = await active(cell, "a")
    before = {key: await raw.hgetall(key) for key in (cell.keys.claim("a"), cell.keys.host("h1"))}
    second = await target(cell, "a", first)
    await arrive(cell, "b", second)
    epoch = await wipe(cell, raw)
    await raw.hset(cell.keys.claim("a"), mapping=before[cell.keys.claim("a")])
    await raw.hset(cell.keys.host("h1"), mapping={"claims": "1", "claimed.VCPU": "1"})
    await raw.sadd(cell.keys.claims("h1"), "a")
    if has_stopped:
        await cell.attest("h1", epoch, ended=[("a", first.token)])
    else:
        await cell.attest("h1", epoch, held=[held("a", first, ClaimStatus.ENDING)])
    former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": first.token, "former_why": Why.MOVED}
    await cell.attest("h2", epoch, held=[held("b", second, origin="a", **former)])
    await cell.attest("h3", epoch)
    await settle(cell)
    assert (await states(cell, "ab"))["b"] == "active"
    assert (await cell.read_claims("a"))["a"].next == "b"


async def test_a_former_whose_target_the_store_has_lost_can_be_moved_again(cell: CellStore, raw: Any) -> None:
    """Nobody had taken the target up, so no journal brings it back."""
    placed = await active(cell, "a")
    await target(cell, "a", placed)
    await raw.delete(cell.keys.claim("b"), cell.keys.claims("h2"))
    assert (await cell.succeed("a")).outcome is Outcome.OK
    assert (await cell.read_claims("a"))["a"].next == ""
    await target(cell, "a", placed, "c", "h3")


@pytest.mark.parametrize("is_late", [True, False], ids=["late", "in time"])
@pytest.mark.parametrize("ids", ["b", "bc"], ids=["moved", "being moved again"])
async def test_what_a_move_has_made_is_given_back_where_its_owner_was_told_that_nobody_knows_the_id(
    cell: CellStore, raw: Any, is_late: bool, ids: str
) -> None:
    """The hosts bring back what goes by another id, before that was said or after it."""
    second = await moved(cell, "a", await active(cell, "a"))
    third = await target(cell, "b", second, "c", "h3")
    former: dict[str, Any] = {"former": "b", "former_host": "h2", "former_token": second.token, "former_why": Why.MOVED}
    journals = {"b": held("b", second, origin="a"), "c": held("c", third, origin="a", **former)}
    epoch = await wipe(cell, raw)

    async def come_back() -> None:
        for claim_id, host in zip(ids, ("h2", "h3"), strict=False):
            await cell.attest(host, epoch, None, [journals[claim_id]])

    if not is_late:
        await come_back()
    await let_settle(cell, raw)
    assert (await cell.void("a", "", unheard=True)).outcome is Outcome.OK
    if is_late:
        await come_back()
    for _ in range(2):
        await settle(cell)
        for claim_id, placed in (("b", second), ("c", third)):
            if (await states(cell, claim_id)).get(claim_id) == "ending released":
                await cell.gone(placed.host, claim_id, placed.token, Why.RELEASED, {})
    await settle(cell)
    assert await states(cell, ids) == dict.fromkeys(ids, "ended released")
    assert await kept(cell, raw, "abc") == ""


async def test_what_was_placed_since_an_id_was_told_to_be_unknown_stays(cell: CellStore, raw: Any) -> None:
    """Its owner has used it again, and a later epoch hears of the closing first: by the token that it had."""
    told_in = await wipe(cell, raw)
    await let_settle(cell, raw)
    for name in ("h1", "h2", "h3"):
        await cell.attest(name, told_in)
    second = await moved(cell, "a", await active(cell, "a"))
    epoch = await wipe(cell, raw)
    assert (await cell.void("a", "", unheard=True, token=f"{told_in}.0")).outcome is Outcome.OK
    await let_settle(cell, raw)
    await cell.attest("h2", epoch, None, [held("b", second, origin="a")])
    await settle(cell)
    assert (await states(cell, "b"))["b"] == "active"


# What a failover has lost of a succession: the target comes back with its host, and nothing leads to it yet


async def failed_over(cell: CellStore, raw: Any, placed: Placed, ended: bool = False) -> str:
    """A new epoch that has lost what was to succeed `a`; the host of that one, h2, is still to attest to it.

    `ended`: h1 says that it had stopped the work of `a`, of which the store has heard nothing.
    """
    await raw.delete(cell.keys.claim("b"), cell.keys.claims("h2"))
    await raw.hdel(cell.keys.claim("a"), "next")
    await raw.delete(cell.keys.chores, cell.keys.deadlines)
    await raw.hset(cell.keys.host("h2"), mapping={"claims": "0", "starting": "0", "claimed.VCPU": "0"})
    epoch = await new_epoch(cell)
    await cell.attest(
        "h1", epoch, ended=[("a", placed.token)] if ended else [], held=[] if ended else [held("a", placed)]
    )
    await cell.attest("h3", epoch)
    return epoch


async def come_back(cell: CellStore, epoch: str, first: Placed, second: Placed, why: Why, **more: Any) -> None:
    """h2 brings the target back."""
    former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": first.token, "former_why": why}
    await cell.attest("h2", epoch, held=[held("b", second, origin="a", **former, **more)])


@pytest.mark.parametrize("why", [Why.MOVED, Why.FAILED])
async def test_a_release_reaches_a_target_that_comes_back_after_it(cell: CellStore, raw: Any, why: Why) -> None:
    """The store knows of the claim only that it is over, and its owner hears that it is free."""
    first = await active(cell, "a")
    second = await target(cell, "a", first, why=why)
    epoch = await failed_over(cell, raw, first, ended=True)
    assert await states(cell, "a") == {"a": "ended void"}
    assert (await cell.release("h1", "a")).outcome is Outcome.SAME
    await come_back(cell, epoch, first, second, why)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ended released", "b": "ending released"}


async def test_a_former_that_no_host_has_leads_to_its_target_at_once(cell: CellStore, raw: Any) -> None:
    """Though that is not active yet: its owner would hear that there is no such claim."""
    first = await active(cell, "a")
    second = await target(cell, "a", first)
    epoch = await failed_over(cell, raw, first, ended=True)
    await raw.delete(cell.keys.claim("a"))
    await come_back(cell, epoch, first, second, Why.MOVED, state=ClaimStatus.STARTING)
    await settle(cell)
    assert (await states(cell, "b"), (await cell.read_claims("a"))["a"].next) == ({"b": "starting"}, "b")


@pytest.mark.parametrize("by_host", [False, True])
async def test_what_ended_by_failing_is_not_succeeded_by_what_comes_back(
    cell: CellStore, raw: Any, by_host: bool
) -> None:
    """Who said so was told that it has ended. The word of a host is told to nobody."""
    first = await active(cell, "a")
    second = await target(cell, "a", first)
    epoch = await failed_over(cell, raw, first)
    await cell.fail("h1", "a", first.token, by_host)
    await come_back(cell, epoch, first, second, Why.MOVED)
    await settle(cell)
    assert (await states(cell, "b"))["b"] == ("active" if by_host else "ending released")


async def test_what_failed_without_another_place_may_find_one_later(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    await cell.fail("h1", "a", first.token, by_host=False)
    await arrive(cell, "c", await target(cell, "a", first, "c", "h3", why=Why.FAILED))
    await settle(cell)
    assert (await states(cell, "c"), (await cell.read_claims("a"))["a"].next) == ({"c": "active"}, "c")


async def test_of_two_alternates_the_first_does_not_take_over_when_it_ends(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    second = await target(cell, "a", first, why=Why.FAILED)
    epoch = await failed_over(cell, raw, first)
    await arrive(cell, "c", await target(cell, "a", first, "c", "h3", why=Why.FAILED))
    await settle(cell)
    await come_back(cell, epoch, first, second, Why.FAILED)
    await settle(cell)
    await cell.gone("h2", "b", second.token, Why.RELEASED, {})
    await settle(cell)
    assert await states(cell, "bc") == {"b": "ended moved", "c": "active"}
    assert (await cell.read_claims("a"))["a"].next == "c"


async def test_a_release_of_what_only_a_journal_knows_to_be_ending_takes_its_target_along(
    cell: CellStore, raw: Any
) -> None:
    """It was being given back, as its target had come up, says nobody any more. The target's host is heard later."""
    first = await active(cell, "a")
    second = await target(cell, "a", first)
    await failed_over(cell, raw, first)
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch, held=[held("a", first, ClaimStatus.ENDING)])
    assert await states(cell, "a") == {"a": "ending void"}
    assert (await cell.release("h1", "a", first.token)).outcome is Outcome.ENDING
    await come_back(cell, epoch, first, second, Why.MOVED)
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ending released", "b": "ending released"}


async def test_what_a_released_claim_had_become_in_two_moves_is_given_back_when_its_host_brings_it(
    cell: CellStore, raw: Any
) -> None:
    """The claim between is not known to anyone any more."""
    first = await active(cell, "a")
    second = await moved(cell, "a", first)
    third = await moved(cell, "b", second, "c", "h3")
    epoch = await wipe(cell, raw)
    await cell.attest("h1", epoch, held=[held("a", first)])
    assert (await cell.release("h1", "a", first.token)).outcome is Outcome.ENDING
    await cell.attest("h3", epoch, held=[held("c", third, origin="a")])
    await settle(cell)
    assert (await states(cell, "c"))["c"] == "ending released"


@pytest.mark.parametrize("why", [Why.SHELVED, Why.MOVED])
async def test_what_was_shelved_is_not_left_so_where_it_has_been_succeeded_twice_since(
    cell: CellStore, raw: Any, why: Why
) -> None:
    """Unshelved, and then shelved and unshelved again, or moved: of the second the journals alone know."""
    second = await moved(cell, "a", await active(cell, "a"))
    await cell.shelve("h2", "b", second.token)
    await cell.gone("h2", "b", second.token, Why.RELEASED, {})
    third = await target(cell, "b", second, "c", "h3", why=Why.SHELVED)
    await arrive(cell, "c", third)
    epoch = await new_epoch(cell)
    await cell.attest("h2", epoch)
    await cell.attest("h3", epoch, ended=[("c", third.token)])
    former: dict[str, Any] = {"former": "c", "former_host": "h3", "former_token": third.token, "former_why": why}
    last = replace(third, host="h1", token=f"{third.token}9")
    await cell.attest("h1", epoch, held=[held("d", last, origin="a", **former)])
    await cell.succeed("d")
    await settle(cell)
    assert await states(cell, "bcd") == {"b": "ended moved", "c": "ended void", "d": "active"}
    assert (await cell.read_claims("a"))["a"].next == "d"
    assert (await kept(cell, raw, "abc"), await raw.exists(cell.keys.shelved)) == ("a", 0)
