"""Moves: a claim gets another placement beside its present one, which is released once the new one is active."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import EndReason, GangOnExit
from redsched.origin import Origin, enter, leave
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, Replacement
from tests.support.builders.cells import (
    HOUR_S,
    IN_STATE,
    accepted_claim,
    active,
    call_of,
    claim_on,
    claimed,
    everything,
    fields_of,
    known,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
)
from tests.support.builders.counted_claims import AT_BOTH, begin_move, counts, seats
from tests.support.builders.placements import (
    arrive,
    ask_again,
    held,
    make_move_due,
    move_to,
    moved,
    settle,
    shelved,
    states,
    unshelved,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")

MOVED = EndReason.MOVED


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


# The layout in the store


async def test_an_everyday_claim_is_flat(cell: CellStore, raw: Any) -> None:
    await accepted_claim(cell, "a", VCPU=2)
    assert set(await fields_of(raw, cell.keys.claim("a"))) == {
        "host",
        "state",
        "token",
        "project",
        "consumer",
        "digest",
        "claimed_at_ms",
        "expires_at_ms",
        "amount.VCPU",
    }


async def test_the_placement_of_a_move_lies_beside_the_flat_one_under_its_token(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    flat = await fields_of(raw, cell.keys.claim("a"))
    found = await move_to(cell, "a", placed, by_s=60)
    fields = dict(await fields_of(raw, cell.keys.claim("a")))
    beside = {name: fields.pop(name) for name in list(fields) if name.startswith("placement.")}
    now_ms = int(fields.pop("expires_at_ms", "0")) or (await cell.tick()).now_ms
    prefix = f"placement.{found.token}."
    assert fields == flat
    assert now_ms - 5_000 < int(beside.pop(f"{prefix}placed_at_ms")) <= now_ms
    assert now_ms - 5_000 < int(beside.pop(f"{prefix}move_deadline_ms")) - 60_000 <= now_ms
    assert beside == {
        f"{prefix}host": "h2",
        f"{prefix}state": "claimed",
        f"{prefix}token": found.token,
        f"{prefix}root": placed.token,
        f"{prefix}from": placed.token,
        f"{prefix}from_host": "h1",
        f"{prefix}from_why": "moved",
        f"{prefix}expires_at_ms": str(found.expires_at_ms),
        f"{prefix}inbox_id": (await cell.hosts.inbox("h2"))[0].entry_id,
        f"{prefix}amount.VCPU": "1",
    }


async def test_the_active_placement_is_the_flat_one_and_after_the_move_nothing_else_is_left(
    cell: CellStore, raw: Any
) -> None:
    placed = await active(cell, "a")
    flat = set(await fields_of(raw, cell.keys.claim("a")))
    found = await move_to(cell, "a", placed)
    await arrive(cell, "a", found)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert (fields["host"], fields[f"placement.{placed.token}.host"]) == ("h2", "h1")
    await settle(cell)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert (fields["host"], fields["token"], fields["root"]) == ("h2", found.token, placed.token)
    assert set(fields) == flat | {"root", "from", "from_host", "from_why", "placed_at_ms"}


# Why a move is refused


@pytest.mark.parametrize(
    ("state", "outcome"), [("ending", "ENDED"), ("ended", "ENDED"), ("unknown", "NO_CLAIM"), ("active", "OK")]
)
async def test_only_a_claim_that_is_wanted_can_be_moved(cell: CellStore, raw: Any, state: str, outcome: str) -> None:
    token = "1-a.1" if state == "unknown" else (await IN_STATE[state](cell, "a")).token
    before = await everything(raw)
    assert (await ask_again(cell, "a", "h2", Replacement("h1", token, MOVED))).outcome == outcome
    assert (await everything(raw) == before) == (outcome != "OK")


async def test_a_move_with_another_token_is_stale(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    async with nothing_written(raw):
        assert (await ask_again(cell, "a", "h2", Replacement("h1", f"{placed.token}1", MOVED))).outcome is Outcome.STALE


async def test_what_is_itself_on_its_way_cannot_be_moved(cell: CellStore, raw: Any) -> None:
    found = await move_to(cell, "a", await active(cell, "a"))
    async with nothing_written(raw):
        assert (await ask_again(cell, "a", "h3", Replacement("h2", found.token, MOVED))).outcome is Outcome.MOVING


async def test_what_a_claim_was_moved_from_cannot_be_moved(cell: CellStore, raw: Any) -> None:
    """Neither before the host is asked to stop it nor after."""
    placed = await active(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    for _ in range(2):
        answer = await ask_again(cell, "a", "h3", Replacement("h1", placed.token, MOVED))
        assert answer.outcome in (Outcome.ALREADY_DONE, Outcome.ENDED)
        await settle(cell)
    assert set(await states(cell, "a")) == {"h1", "h2"}


async def test_a_target_without_room_leaves_the_claim_alone(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    async with nothing_written(raw):
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", placed.token, MOVED), VCPU=99)
        ).outcome is Outcome.FULL


async def test_nothing_is_moved_from_a_host_that_has_not_attested_nor_before_all_have(
    cell: CellStore, raw: Any
) -> None:
    placed = await active(cell, "a")
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h2", epoch)
    async with nothing_written(raw):
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", placed.token, MOVED))
        ).outcome is Outcome.NOT_ATTESTED
    await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
    async with nothing_written(raw):
        assert (await ask_again(cell, "a", "h2", Replacement("h1", placed.token, MOVED))).outcome is Outcome.SETTLING
    await cell.hosts.attest("h3", epoch)
    await move_to(cell, "a", placed)


async def test_the_same_move_sent_again_gets_its_first_answer(cell: CellStore, raw: Any) -> None:
    """Also once its target is active, and whatever host the copy names."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    async with nothing_written(raw):
        again = await ask_again(cell, "a", "h3", Replacement("h1", placed.token, MOVED))
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(found))
    await arrive(cell, "a", found)
    async with nothing_written(raw):
        again = await ask_again(cell, "a", "h3", Replacement("h1", placed.token, MOVED))
    assert (again.outcome, again.placed[0].token, again.placed[0].state) == (
        Outcome.ALREADY_DONE,
        found.token,
        "active",
    )


# The move itself


async def test_a_claim_continues_where_it_is_until_its_target_is_active_and_is_then_asked_back(
    cell: CellStore, raw: Any
) -> None:
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"h1": "active", "h2": "claimed"}
    await cell.claims.accept("h2", "a", found.token, HOUR_S)
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"h1": "active", "h2": "starting"}
    assert not await raw.exists(cell.keys.reconcile)
    await cell.claims.confirm("h2", "a", found.token)
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.host, claim.token, claim.state) == ("h2", found.token, "active")
    assert await cell.due.to_reconcile((await cell.tick()).now_ms, 0, 10) == ["a"]
    assert await cell.claims.reconcile(["a"]) == 1
    assert await states(cell, "a") == {"h1": "ending moved", "h2": "active"}
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", placed.token)]
    async with nothing_written(raw):
        assert await cell.claims.reconcile(["a"]) == 0
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (1, 1)


async def test_its_amounts_return_with_the_word_of_the_host_that_it_has_left(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=3)
    found = await move_to(cell, "a", placed)
    await arrive(cell, "a", found)
    await settle(cell)
    assert await claimed(raw, cell, "h1") == 3
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {"VCPU": 2})).outcome is Outcome.OK
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (0, 1)
    assert (await cell.hosts.claim_ids("h1"), await cell.hosts.claim_ids("h2")) == (set(), {"a"})
    assert await states(cell, "a") == {"h2": "active"}
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})).outcome is Outcome.STALE


async def test_both_placements_count_in_group_and_pool_for_as_long_as_they_are_there(cell: CellStore, raw: Any) -> None:
    first, second = await begin_move(cell)
    assert (await counts(raw, cell), await seats(raw, cell)) == (AT_BOTH, 5)
    await arrive(cell, "a", second)
    await settle(cell)
    assert (await counts(raw, cell), await seats(raw, cell)) == (AT_BOTH, 5)
    await cell.claims.gone("h1", "a", first.token, EndReason.RELEASED, {})
    assert (await counts(raw, cell), await seats(raw, cell)) == ({"members": 1, "host=h2": 1, "zone=az2": 1}, 2)


async def test_a_claim_moves_on_its_own_host(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed, "h1")
    assert await claimed(raw, cell, "h1") == 2
    await check_sums(cell, raw)
    await arrive(cell, "a", found)
    await settle(cell)
    claim = (await cell.claims.read("a"))["a"]
    assert [(one.token, one.state) for one in claim.placements] == [(found.token, "active"), (placed.token, "ending")]
    await check_sums(cell, raw)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert (await claimed(raw, cell, "h1"), await cell.hosts.claim_ids("h1")) == (1, {"a"})


async def test_a_claim_moves_again_and_back(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    second = await moved(cell, "a", first)
    third = await moved(cell, "a", second, "h1")
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.host, claim.token, claim.placements[0].root) == ("h1", third.token, first.token)
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (1, 0)


async def test_two_schedulers_that_reconcile_it_at_once_do_it_once(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    assert [await cell.claims.reconcile(["a"]), await cell.claims.reconcile(["a"])] == [1, 0]
    assert [one.op for one in await cell.hosts.inbox("h1")] == ["end"]


# A move that fails


@pytest.mark.parametrize("end", ["fail by host", "fail", "gone", "expire"])
async def test_a_target_that_ends_before_it_is_active_leaves_the_claim_as_it_was(
    cell: CellStore, raw: Any, end: str
) -> None:
    placed = await active(cell, "a")
    before = await fields_of(raw, cell.keys.claim("a"))
    found = await move_to(cell, "a", placed)
    if end == "expire":
        await raw.hset(cell.keys.claim("a"), f"placement.{found.token}.expires_at_ms", 1)
        await raw.zadd(cell.keys.deadlines, {"a": 1})
        assert await cell.claims.reconcile(["a"]) == 1
    elif end == "gone":
        await cell.claims.gone("h2", "a", found.token, EndReason.FAILED, {})
    else:
        assert (await cell.claims.fail("h2", "a", found.token, by_host=end == "fail by host")).outcome is Outcome.OK
    after = dict(await fields_of(raw, cell.keys.claim("a")))
    assert (after.pop("failed_moves"), int(after.pop("move_failed_at_ms")) > 0) == ("1", True)
    assert after == before
    assert (await claimed(raw, cell, "h2"), await raw.pttl(cell.keys.claim("a"))) == (0, -1)
    await move_to(cell, "a", placed, "h3")


async def test_a_move_that_is_not_done_by_its_deadline_is_called_off(cell: CellStore, raw: Any) -> None:
    """Also a move that its host has accepted, and whose lease it renews."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed, by_s=60)
    await cell.claims.accept("h2", "a", found.token, HOUR_S)
    await cell.claims.renew("h2", "a", found.token, HOUR_S)
    deadline_ms = int((await fields_of(raw, cell.keys.claim("a")))[f"placement.{found.token}.move_deadline_ms"])
    assert await cell.due.deadlines() == {"a": deadline_ms}
    assert await cell.claims.reconcile(["a"]) == 0
    await make_move_due(raw, cell, "a", found)
    assert await cell.claims.reconcile(["a"]) == 1
    assert await states(cell, "a") == {"h1": "active", "h2": "ending expired"}
    assert (await cell.claims.read(["a"]))["a"].failed_moves == 1
    assert (await cell.claims.confirm("h2", "a", found.token)).outcome is Outcome.ENDING
    assert (await cell.claims.gone("h2", "a", found.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "active"}
    assert await cell.due.deadlines() == {}


async def test_without_anything_to_go_back_to_a_move_has_no_deadline(cell: CellStore, raw: Any) -> None:
    """The source of the move has failed: only the lease ends the target."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed, by_s=60)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    await raw.hset(cell.keys.claim("a"), "move_deadline_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"h2": "claimed"}
    assert await cell.due.deadlines() == {"a": found.expires_at_ms}
    await arrive(cell, "a", found)


@pytest.mark.parametrize("by_host", [False, True])
async def test_what_fails_while_it_is_moved_continues_at_its_target(cell: CellStore, raw: Any, by_host: bool) -> None:
    """It is not placed a third time."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=by_host, retry=True)
    assert answer.outcome is (Outcome.OK if by_host else Outcome.ENDING)
    assert await states(cell, "a") == {"h2": "claimed"} | ({} if by_host else {"h1": "ending failed"})
    await arrive(cell, "a", found)
    await settle(cell)
    assert (await states(cell, "a"))["h2"] == "active"


async def test_a_claim_that_fails_where_it_has_moved_to_does_not_go_back(cell: CellStore) -> None:
    """The former placement is not released yet, but is superseded: the claim waits to be placed again."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    await arrive(cell, "a", found)
    answer = await cell.claims.fail("h2", "a", found.token, by_host=True, retry=True)
    assert answer.facts == ("pending",)
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"h1": "ending moved", "": "pending"}
    third = await move_to(cell, "a", found, "h3", EndReason.FAILED)
    await arrive(cell, "a", third)
    assert await states(cell, "a") == {"h1": "ending moved", "h3": "active"}


async def test_the_target_can_be_called_off_by_its_token(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    answer = await cell.claims.release("h2", "a", found.token)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("",))
    assert await states(cell, "a") == {"h1": "active"}
    assert "closed" not in await fields_of(raw, cell.keys.claim("a"))
    found = await move_to(cell, "a", placed)
    await cell.claims.accept("h2", "a", found.token, HOUR_S)
    for _ in range(2):
        assert (await cell.claims.release("h2", "a", found.token)).outcome is Outcome.ENDING
        assert await states(cell, "a") == {"h1": "active", "h2": "ending moved"}
    assert (await cell.claims.confirm("h2", "a", found.token)).outcome is Outcome.ENDING


@pytest.mark.parametrize("is_called_off", [False, True])
@pytest.mark.parametrize("end_reason", [EndReason.WORK_ENDED, EndReason.RELEASED])
async def test_a_claim_ends_for_its_own_reason_although_what_it_was_moved_from_is_stopped_last(
    cell: CellStore, raw: Any, is_called_off: bool, end_reason: EndReason
) -> None:
    """Its source, or its target if the move was called off."""
    placed = await active(cell, "a")
    target = await move_to(cell, "a", placed)
    if is_called_off:
        await cell.claims.accept("h2", "a", target.token, HOUR_S)
        await cell.claims.release("h2", "a", target.token)
    else:
        await arrive(cell, "a", target)
        await settle(cell)
    runs, left = (placed, target) if is_called_off else (target, placed)
    assert (await cell.claims.gone(runs.host, "a", runs.token, end_reason, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {left.host: "ending moved"}
    assert (await cell.claims.gone(left.host, "a", left.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"": f"ended {end_reason}"}


@pytest.mark.parametrize("is_called_off", [False, True])
async def test_the_end_of_such_a_claim_concerns_its_gang(cell: CellStore, raw: Any, is_called_off: bool) -> None:
    """Whatever it was moved from is stopped last: its end is not that of a move."""
    call = call_of(await cell.tick(), member("a", "h1"), member("b", "h1"), gang_on_exit=GangOnExit.RELEASE)
    first, second = (await cell.claims.place(replace(call, is_gang=True))).placed
    await arrive(cell, "a", first)
    await arrive(cell, "b", second)
    gang = (await fields_of(raw, cell.keys.claim("a")))["gang"]
    [target] = (await ask_again(cell, "a", "h2", Replacement("h1", first.token, MOVED, gang=gang))).placed
    if is_called_off:
        await cell.claims.accept("h2", "a", target.token, HOUR_S)
        await cell.claims.release("h2", "a", target.token)
    else:
        await arrive(cell, "a", target)
        await settle(cell)
    runs, left = (first, target) if is_called_off else (target, first)
    await cell.claims.gone(runs.host, "a", runs.token, EndReason.WORK_ENDED, {})
    await cell.claims.gone(left.host, "a", left.token, EndReason.RELEASED, {})
    assert (await fields_of(raw, cell.keys.claim("a")))["gang_exit"] == "release"


async def test_who_has_shelved_a_claim_is_not_who_ended_it(cell: CellStore, raw: Any) -> None:
    """It was unshelved and moved, and its work ended by itself while its source was being stopped."""
    placed = await active(cell, "a")
    token = enter(Origin("ops"))
    await shelved(cell, "a", placed)
    leave(token)
    assert (await fields_of(raw, cell.keys.claim("a")))["closed_by"] == "ops"
    first = await unshelved(cell, "a", placed)
    second = await move_to(cell, "a", first, "h3")
    await arrive(cell, "a", second)
    await settle(cell)
    await cell.claims.gone("h3", "a", second.token, EndReason.WORK_ENDED, {})
    assert "closed_by" not in await fields_of(raw, cell.keys.claim("a"))
    [(_, change)] = await raw.xrevrange(cell.keys.changes, count=1)
    assert (change["end_reason"], change.get("reason")) == ("work-ended", None)


async def test_undoing_a_move_leaves_the_claim_although_that_is_active(cell: CellStore) -> None:
    """A caller that is not sure that the move is durable undoes it unless active, which refers to the target."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    assert (await cell.claims.release("h2", "a", found.token, ReleaseMode.UNLESS_ACTIVE)).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "active"}
    found = await move_to(cell, "a", placed)
    await arrive(cell, "a", found)
    assert (await cell.claims.release("h2", "a", found.token, ReleaseMode.UNLESS_ACTIVE)).outcome is Outcome.ACTIVE
    assert await states(cell, "a") == {"h1": "active", "h2": "active"}


@pytest.mark.parametrize("accepted_first", [False, True])
async def test_a_move_of_what_is_not_active_yet_can_be_called_off_too(cell: CellStore, accepted_first: bool) -> None:
    placed = await (accepted_claim if accepted_first else claim_on)(cell, "a")
    found = await move_to(cell, "a", placed)
    assert (await cell.claims.release("h2", "a", found.token)).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "starting" if accepted_first else "claimed"}
    found = await move_to(cell, "a", placed)
    assert (await cell.claims.release("h1", "a", placed.token)).outcome is (
        Outcome.ENDING if accepted_first else Outcome.OK
    )
    assert (await cell.claims.confirm("h2", "a", found.token)).outcome in (Outcome.ENDED, Outcome.STALE)


async def test_a_move_of_what_was_claimed_only_is_done_when_the_target_is_active(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "b")
    placed = await claim_on(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    await settle(cell)
    assert await states(cell, "a") == {"h2": "active"}
    assert await claimed(raw, cell, "h1") == 1


async def test_what_was_overtaken_before_it_came_up_is_asked_back_when_it_does(cell: CellStore) -> None:
    """Before any scheduler has reconciled it."""
    placed = await accepted_claim(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    assert (await cell.claims.confirm("h1", "a", placed.token)).outcome is Outcome.ENDING
    assert await states(cell, "a") == {"h1": "ending moved", "h2": "active"}


async def test_a_host_that_is_removed_takes_only_its_placement_along(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    assert (await cell.hosts.forget("h2", force=True)).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "active"}
    await open_host(cell, "h2")
    found = await move_to(cell, "a", placed)
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    assert await states(cell, "a") == {"h2": "claimed"}
    await arrive(cell, "a", found)


async def test_both_placements_expire_with_their_leases(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "b", "h3")
    placed = await claim_on(cell, "a")
    found = await move_to(cell, "a", placed)
    await make_due(raw, cell, "a")
    prefix = f"placement.{placed.token}." if (await fields_of(raw, cell.keys.claim("a")))["host"] == "h2" else ""
    await raw.hset(cell.keys.claim("a"), f"{prefix or f'placement.{found.token}.'}expires_at_ms", 1)
    assert await cell.claims.reconcile(["a"]) == 1
    assert await states(cell, "a") == {"": "ended expired"}


async def test_moves_of_one_call_are_made_together_or_not_at_all(cell: CellStore, raw: Any) -> None:
    first, second = await active(cell, "a"), await active(cell, "b")
    again = {"a": Replacement("h1", first.token, MOVED), "b": Replacement("h1", second.token, MOVED)}
    async with nothing_written(raw):
        too_large = replace(member("b", "h2", VCPU=99), replacement=again["b"])
        answer = await cell.claims.place(
            call_of(await cell.tick(), replace(member("a", "h2"), replacement=again["a"]), too_large)
        )
    assert answer.outcome is Outcome.FULL
    moves = [replace(member(one, "h2"), replacement=again[one]) for one in "ab"]
    assert (await cell.claims.place(call_of(await cell.tick(), *moves))).outcome is Outcome.OK
    both = {"h1": "active", "h2": "claimed"}
    assert (await states(cell, "a"), await states(cell, "b")) == (both, both)


async def test_one_call_cannot_claim_and_move(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    move = replace(member("a", "h2"), replacement=Replacement("h1", placed.token, MOVED))
    call = call_of(await cell.tick(), move, member("b", "h2"))
    async with nothing_written(raw):
        with pytest.raises(ValueError, match="either new claims or claims that are placed again"):
            await cell.claims.place(call)


@pytest.mark.parametrize("evacuated", [False, True])
async def test_a_claim_goes_to_a_third_host_while_the_one_that_failed_is_still_to_stop_it(
    cell: CellStore, raw: Any, evacuated: bool
) -> None:
    """That host may be dead, and may never report that the work has stopped."""
    placed = await active(cell, "a")
    if evacuated:
        await cell.hosts.write_off("h1", evacuate=True, force=True)
    found = await move_to(cell, "a", placed)
    await cell.claims.accept("h2", "a", found.token, HOUR_S)
    await raw.hset(cell.keys.claim("a"), f"placement.{found.token}.expires_at_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    await cell.claims.reconcile(["a"])
    assert (await states(cell, "a"))["h2"] == "ending expired"
    third = await move_to(cell, "a", placed, "h3")
    again = await ask_again(cell, "a", "h3", Replacement("h1", placed.token, MOVED))
    assert (again.outcome, again.placed[0].token) == (Outcome.ALREADY_DONE, third.token)
    await arrive(cell, "a", third)
    assert (await states(cell, "a"))["h3"] == "active"
