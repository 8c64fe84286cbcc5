"""Losses of data and written-off hosts: what breaks in a claim's placements if a rule is missing, rule by rule.

docs/model/placements.pml has the rules. Each test replays what breaks without one of them, and checks every counter
after each step.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason, HostStatus
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import JournaledClaim, Placed, Replacement
from tests.support.builders.cells import (
    HOUR_S,
    active,
    claim_on,
    claimed,
    fields_of,
    new_epoch,
    open_host,
    report_of,
)
from tests.support.builders.placements import (
    arrive,
    ask_again,
    ended,
    held,
    let_settle,
    main_states,
    make_move_due,
    move_to,
    moved,
    roll_back,
    settle,
    shelved,
    snapshot,
    states,
    unshelved,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts")

STARTING = ClaimStatus.STARTING


class Play:
    """Claim `a` in a cell; every check of its states also checks the counters."""

    def __init__(self, cell: CellStore, raw: Any) -> None:
        self.cell, self.raw = cell, raw

    async def is_now(self, **expected: str) -> None:
        """Fail unless its placements have these states, by host, and all counters match."""
        assert await states(self.cell, "a") == {host.strip("_"): state for host, state in expected.items()}
        await check_sums(self.cell, self.raw)

    async def attest(self, host: str, epoch: str, *has: JournaledClaim, stopped: Sequence[Placed] = ()) -> None:
        """Let a host attest with this journal."""
        entries = [ended("a", one.token) for one in stopped]
        assert (await self.cell.hosts.attest(host, epoch, held=has, ended=entries)).outcome is Outcome.OK
        await check_sums(self.cell, self.raw)

    async def stop(self, placed: Placed) -> None:
        """Report that the host of a placement has stopped its work."""
        assert (
            await self.cell.claims.gone(placed.host, "a", placed.token, EndReason.RELEASED, {})
        ).outcome is Outcome.OK
        await check_sums(self.cell, self.raw)

    async def settle(self) -> None:
        await settle(self.cell)
        await check_sums(self.cell, self.raw)


@pytest.fixture
def play(cell: CellStore, raw: Any) -> Play:
    return Play(cell, raw)


# A claim is closed by root, at the token of the first answer


async def test_a_repeated_release_ends_what_was_evacuated_since(cell: CellStore, raw: Any, play: Play) -> None:
    """It descends from the released placement, although its own token is later."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    closed = (await cell.claims.release("h1", "a")).facts[0]
    epoch = await roll_back(cell, raw, before)
    await play.attest("h2", epoch)
    await play.attest("h3", epoch)
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    await play.settle()
    await play.is_now(h2="active")
    assert (await cell.claims.release("", "a", closed=closed)).outcome is Outcome.ENDING
    await play.is_now(h2="ending released")
    await play.stop(second)
    await play.is_now(_="ended released")


@pytest.mark.parametrize("then_moved", [False, True])
async def test_a_repeated_shelving_leaves_what_was_unshelved_since(
    cell: CellStore, raw: Any, play: Play, then_moved: bool
) -> None:
    first = await active(cell, "a")
    before = await snapshot(raw)
    closed = await shelved(cell, "a", first)
    last = await unshelved(cell, "a", first)
    root = last.token
    last = await moved(cell, "a", last, "h3") if then_moved else last
    epoch = await roll_back(cell, raw, before)
    await play.attest("h1", epoch, stopped=[first])
    assert (await cell.claims.release("", "a", end_reason=EndReason.SHELVED, closed=closed)).facts == (closed,)
    await play.attest(last.host, epoch, held("a", last, root=root))
    await play.settle()
    await play.is_now(**{last.host: "active"})


async def test_a_shelving_that_is_repeated_before_its_host_is_heard_tells_it_to_stop(
    cell: CellStore, raw: Any, play: Play
) -> None:
    first = await active(cell, "a")
    before = await snapshot(raw)
    closed = (await cell.claims.shelve("h1", "a", first.token)).facts[0]
    epoch = await roll_back(cell, raw, before)
    assert (await cell.claims.release("", "a", end_reason=EndReason.SHELVED, closed=closed)).outcome is Outcome.ENDING
    await play.attest("h1", epoch, held("a", first))
    await play.is_now(h1="ending shelved")
    await play.stop(first)
    await play.is_now(_="ended shelved")


# The order of placements is by root, and then by token


async def test_what_was_evacuated_of_a_former_line_does_not_end_what_was_unshelved(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """Its token is later, its root older. If it won, the repeated shelving would end it, and none would be left."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    closed = await shelved(cell, "a", first)
    second = await unshelved(cell, "a", first)
    epoch = await roll_back(cell, raw, before)
    await play.attest("h3", epoch)
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await let_settle(cell, raw)
    third = await move_to(cell, "a", first, "h3")
    await arrive(cell, "a", third)
    await play.attest("h2", epoch, held("a", second))
    await play.is_now(h1="active", h2="active", h3="active")
    await play.settle()
    await play.is_now(h2="active", h3="ending moved")
    await cell.claims.release("", "a", end_reason=EndReason.SHELVED, closed=closed)
    await play.stop(third)
    await play.settle()
    await play.is_now(h2="active")


@pytest.mark.parametrize("order", ["123", "231", "312", "321"])
async def test_of_a_whole_line_that_comes_back_the_last_is_left(
    cell: CellStore, raw: Any, play: Play, order: str
) -> None:
    """In whatever order their hosts attest after a wipe."""
    first = await active(cell, "a")
    second = await moved(cell, "a", first)
    third = await moved(cell, "a", second, "h3")
    line = {"1": first, "2": second, "3": third}
    await raw.flushall()
    for number in order:
        placed = line[number]
        await cell.hosts.report(report_of(placed.host))
        await play.attest(placed.host, "", held("a", placed, root=first.token))
        await play.settle()
    await play.is_now(h1="ending moved", h2="ending moved", h3="active")
    await play.stop(first)
    await play.stop(second)
    await play.is_now(h3="active")
    assert [await claimed(raw, cell, host) for host in ("h1", "h2", "h3")] == [0, 0, 1]


# Nothing expires on a host that has not attested in this epoch


@pytest.mark.parametrize("due", ["lease", "move"])
async def test_what_has_come_up_does_not_expire_before_its_host_is_heard(
    cell: CellStore, raw: Any, play: Play, due: str
) -> None:
    """The store has it as starting. The former placement has stopped."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first, by_s=60)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    before = await snapshot(raw)
    await cell.claims.confirm("h2", "a", second.token)
    await settle(cell)
    await play.stop(first)
    epoch = await roll_back(cell, raw, before)
    if due == "move":
        await make_move_due(raw, cell, "a", second)
    else:
        await raw.hset(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms", 1)
        await raw.zadd(cell.keys.deadlines, {"a": 1})
    assert await cell.claims.reconcile(["a"]) == 0
    await play.attest("h1", epoch, stopped=[first])
    assert await cell.claims.reconcile(["a"]) == (1 if due == "move" else 0), "a move without a former has no deadline"
    await play.attest("h2", epoch, held("a", second, root=first.token))
    await play.is_now(h2="active")


async def test_a_write_off_of_an_earlier_epoch_expires_nothing(cell: CellStore, raw: Any, play: Play) -> None:
    """The host had returned and confirmed, in writes that the store has lost."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    await cell.hosts.write_off("h2", force=True)
    before = await snapshot(raw)
    await cell.hosts.attest("h2", "", held=[held("a", second, STARTING, root=first.token)])
    await cell.claims.confirm("h2", "a", second.token)
    await settle(cell)
    await play.stop(first)
    epoch = await roll_back(cell, raw, before)
    await raw.hset(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    assert await cell.claims.reconcile(["a"]) == 0
    assert (await cell.claims.fail("h2", "a", second.token, by_host=False)).outcome is Outcome.NOT_ATTESTED
    await play.attest("h1", epoch, stopped=[first])
    await play.attest("h2", epoch, held("a", second, root=first.token))
    await play.is_now(h2="active")


async def test_a_write_off_of_this_epoch_expires_what_was_starting_there(cell: CellStore, raw: Any, play: Play) -> None:
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    epoch = await new_epoch(cell)
    await play.attest("h1", epoch, held("a", first))
    await cell.hosts.write_off("h2", force=True)
    await raw.hset(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    assert await cell.claims.reconcile(["a"]) == 1
    await play.is_now(h1="active")


# What was lost with a written-off host is always restored as ending


async def test_what_expired_on_a_written_off_host_is_not_confirmed_when_it_comes_back(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """The claim is known, and is on another host; if confirmed here, it would have the other placement stopped."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    await cell.hosts.write_off("h2", force=True)
    await raw.hset(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    assert await cell.claims.reconcile(["a"]) == 1
    epoch = await new_epoch(cell)
    await play.attest("h1", epoch, held("a", first))
    await play.attest("h2", epoch, held("a", second, STARTING, root=first.token))
    await play.is_now(h1="active", h2="ending void")
    assert (await cell.claims.confirm("h2", "a", second.token)).outcome is Outcome.ENDING
    await play.stop(second)
    await play.is_now(h1="active")


@pytest.mark.parametrize("epochs", [0, 1, 2])
async def test_an_evacuated_host_that_comes_back_is_to_stop_what_was_placed_elsewhere(
    cell: CellStore, raw: Any, play: Play, epochs: int
) -> None:
    """In the epoch of its write-off as in later ones; the work counts until it has stopped. The host keeps the rest."""
    first, left = await active(cell, "a"), await active(cell, "left")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    assert await cell.hosts.draining(0, "") == {"h1": "evacuate"}
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    await play.settle()
    await play.is_now(h2="active")
    for _ in range(epochs):
        epoch = await new_epoch(cell)
        await play.attest("h2", epoch, held("a", second, root=first.token))
        await play.attest("h3", epoch)
    answer = await cell.hosts.attest("h1", "", held=[held("left", left), held("a", first)])
    assert (answer.outcome, answer.drop) == (Outcome.OK, ())
    await play.settle()
    await play.is_now(h1="ending void", h2="active")
    assert await states(cell, "left") == {"h1": "active"}
    assert await claimed(raw, cell, "h1") == 2
    await play.stop(first)
    await play.is_now(h2="active")
    assert (await cell.hosts.draining(0, ""), await raw.hget(cell.keys.host("h1"), "draining")) == ({}, None)


async def test_what_a_host_was_given_after_its_write_off_comes_back_with_it(
    cell: CellStore, raw: Any, play: Play
) -> None:
    before = await active(cell, "old")
    await cell.hosts.write_off("h1", force=True)
    await cell.claims.release("h1", "old", before.token)
    await cell.hosts.attest("h1", "")
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    await open_host(cell, "h1")
    after = await active(cell, "a")
    epoch = await new_epoch(cell)
    await raw.delete(cell.keys.claim("old"), cell.keys.claim("a"), cell.keys.quota("project"))
    await raw.srem(cell.keys.claims("h1"), "a")
    await raw.hset(cell.keys.host("h1"), mapping={"claims": "0", "claimed.VCPU": "0"})
    await play.attest("h1", epoch, held("old", before), held("a", after))
    assert await main_states(cell, ("old", "a")) == {"old": "ending void", "a": "active"}


# Work that still runs is counted, whichever placement is current


async def test_a_placement_that_was_overtaken_is_counted_until_its_host_has_stopped_it(
    cell: CellStore, raw: Any, play: Play
) -> None:
    first = await active(cell, "a", VCPU=2)
    await arrive(cell, "a", await move_to(cell, "a", first))
    (second,) = [one for one in (await cell.claims.read("a"))["a"].placements if one.host == "h2"]
    epoch = await new_epoch(cell)
    await play.attest("h2", epoch, held("a", _placed(second), root=first.token))
    await play.attest("h1", epoch, held("a", first, amounts={"VCPU": 2}))
    assert await claimed(raw, cell, "h1") == 2
    await play.settle()
    await play.is_now(h1="ending moved", h2="active")
    assert await claimed(raw, cell, "h1") == 2
    await play.stop(first)
    assert await claimed(raw, cell, "h1") == 0


def _placed(one: Any) -> Placed:
    return Placed(one.host, one.token, one.state, None)


# A placement is current when it is active, and not when it is placed


async def test_a_target_that_expires_has_ended_nothing(cell: CellStore, raw: Any, play: Play) -> None:
    """Nor in a new epoch that restores it."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await play.settle()
    await cell.claims.reconcile(["a"])
    await play.is_now(h1="active", h2="claimed")
    epoch = await new_epoch(cell)
    await play.attest("h1", epoch, held("a", first))
    await play.attest("h2", epoch, held("a", second, STARTING, root=first.token))
    await play.settle()
    await play.is_now(h1="active", h2="starting")
    await raw.hset(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms", 1)
    await raw.zadd(cell.keys.deadlines, {"a": 1})
    await cell.claims.reconcile(["a"])
    await play.is_now(h1="active", h2="ending expired")


async def test_which_placement_was_active_is_remembered_when_it_is_gone(cell: CellStore, raw: Any, play: Play) -> None:
    """The former placement does not become current again: it is superseded, and its host stops it."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    await cell.claims.fail("h2", "a", second.token, by_host=True)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert (fields["current"], fields["current_root"]) == (second.token, first.token)
    epoch = await new_epoch(cell)
    await play.attest("h1", epoch, held("a", first))
    await play.settle()
    await play.is_now(h1="ending moved")


# A move waits until all hosts have attested


async def test_a_move_that_is_repeated_before_all_are_heard_makes_no_second_target(
    cell: CellStore, raw: Any, play: Play
) -> None:
    first = await active(cell, "a")
    before = await snapshot(raw)
    second = await move_to(cell, "a", first)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    epoch = await roll_back(cell, raw, before)
    await play.attest("h1", epoch, held("a", first))
    await play.attest("h3", epoch)
    assert (
        await ask_again(cell, "a", "h3", Replacement("h1", first.token, EndReason.MOVED))
    ).outcome is Outcome.SETTLING
    await play.attest("h2", epoch, held("a", second, STARTING, root=first.token))
    await play.is_now(h1="active", h2="starting")


# Two targets of one claim, after a loss of data between them


@pytest.mark.parametrize("first_up", ["lost", "later"])
@pytest.mark.parametrize("release", ["before", "between", "after", "never"])
async def test_of_two_targets_the_later_is_left_or_none(
    cell: CellStore, raw: Any, play: Play, first_up: str, release: str
) -> None:
    """The store has lost the first move, whose work runs; the claim is moved again, and both targets become active."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    lost = await move_to(cell, "a", first)
    await arrive(cell, "a", lost)
    epoch = await roll_back(cell, raw, before)
    await play.attest("h1", epoch, held("a", first))
    await play.attest("h3", epoch)
    await let_settle(cell, raw)
    later = await move_to(cell, "a", first, "h3")

    async def comes_up(which: str) -> None:
        if which == "lost":
            await play.attest("h2", epoch, held("a", lost, root=first.token))
        elif (await cell.claims.accept("h3", "a", later.token, HOUR_S)).outcome is Outcome.OK:
            await cell.claims.confirm("h3", "a", later.token)

    async def released(when: str) -> None:
        if release == when:
            assert (await cell.claims.release("", "a")).outcome in (Outcome.OK, Outcome.ENDING)

    await released("before")
    await comes_up(first_up)
    await released("between")
    await comes_up("later" if first_up == "lost" else "lost")
    await play.settle()
    await released("after")
    found = await states(cell, "a")
    living = {host for host, state in found.items() if not state.startswith("end")}
    assert living == ({"h3"} if release == "never" else set())
    for placed in (first, lost, later):
        if found.get(placed.host, "").startswith("ending"):
            await play.stop(placed)
    await play.settle()
    await play.is_now(**({"h3": "active"} if release == "never" else {"_": "ended released"}))


async def test_a_target_that_nobody_took_up_gives_way_to_one_that_has_come_up(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """The store goes back to when the first target was placed; that had expired, and another target was active."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    before = await snapshot(raw)
    await cell.claims.release("h2", "a", second.token)
    third = await move_to(cell, "a", first, "h3")
    await arrive(cell, "a", third)
    await settle(cell)
    await play.stop(first)
    epoch = await roll_back(cell, raw, before)
    await play.attest("h2", epoch)
    await play.attest("h1", epoch, stopped=[first])
    await play.is_now(h2="claimed")
    await play.attest("h3", epoch, held("a", third, root=first.token))
    await play.settle()
    await play.is_now(h3="active")


async def test_what_its_target_has_replaced_at_last_is_not_taken_for_released(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """Its host is stopping it because the target replaced it."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    await settle(cell)
    epoch = await roll_back(cell, raw, before)
    await play.attest("h1", epoch, held("a", first, ClaimStatus.ENDING))
    await play.is_now(h1="ending void")
    await play.attest("h2", epoch, held("a", second, root=first.token))
    await play.stop(first)
    await play.is_now(h2="active")


async def test_a_journalled_claim_that_nobody_took_up_in_its_lease_is_dropped(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """The store may have ended it, and forgotten that."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    before = await snapshot(raw)
    await cell.claims.release("h2", "a", second.token)
    await roll_back(cell, raw, before)
    await raw.hdel(
        cell.keys.claim("a"), *[f for f in await raw.hkeys(cell.keys.claim("a")) if f.startswith("placement")]
    )
    await raw.srem(cell.keys.claims("h2"), "a")
    await raw.delete(cell.keys.inbox("h2"), cell.keys.deadlines)
    await raw.hset(cell.keys.host("h2"), mapping={"claims": "0", "starting": "0", "claimed.VCPU": "0"})
    entry = held("a", second, ClaimStatus.CLAIMED, root=first.token, expires_at_ms="1")
    answer = await cell.hosts.attest("h2", "", held=[entry])
    assert (answer.outcome, answer.drop) == (Outcome.OK, (second.token,))
    await play.is_now(h1="active")
    fresh = held("a", second, ClaimStatus.CLAIMED, root=first.token, expires_at_ms=str(2**52))
    assert (await cell.hosts.attest("h2", await new_epoch(cell), held=[fresh])).drop == ()
    await play.is_now(h1="active", h2="claimed")


async def test_what_had_ended_before_it_was_active_is_to_stop_where_it_comes_back(
    cell: CellStore, raw: Any, play: Play
) -> None:
    """Its owner got the reply that it had ended, but it was never closed."""
    placed = await claim_on(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=False)
    await play.is_now(_="ended failed")
    fresh = held("a", placed, ClaimStatus.CLAIMED, expires_at_ms=str(2**52))
    await play.attest("h1", await new_epoch(cell), fresh)
    await play.is_now(h1="ending void")
    await play.stop(placed)
    await play.is_now(_="ended void")


async def test_one_host_has_two_placements_and_brings_both_back(cell: CellStore, raw: Any, play: Play) -> None:
    first = await active(cell, "a")
    second = await move_to(cell, "a", first, "h1")
    await arrive(cell, "a", second)
    await raw.flushall()
    await cell.hosts.report(report_of("h1"))
    await play.attest("h1", "", held("a", first), held("a", second, root=first.token))
    assert await claimed(raw, cell, "h1") == 2
    await play.settle()
    assert [(one.token, one.state) for one in (await cell.claims.read("a"))["a"].placements] == [
        (second.token, "active"),
        (first.token, "ending"),
    ]
    await play.stop(first)
    await play.is_now(h1="active")


async def test_a_host_that_comes_back_before_the_target_is_active_continues_until_it_is(
    cell: CellStore, raw: Any, play: Play
) -> None:
    first = await active(cell, "a")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    second = await move_to(cell, "a", first)
    answer = await cell.hosts.attest("h1", "", held=[held("a", first)])
    assert answer.drop == ()
    await play.settle()
    await play.is_now(h1="active", h2="claimed")
    await arrive(cell, "a", second)
    await play.settle()
    await play.is_now(h1="ending moved", h2="active")


async def test_an_evacuation_continues_in_later_epochs(cell: CellStore, raw: Any, play: Play) -> None:
    """A write-off with `evacuate` is valid in later epochs too; one without it is not."""
    first, other = await active(cell, "a"), await active(cell, "other", "h3")
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    await cell.hosts.write_off("h3", force=True)
    epoch = await new_epoch(cell)
    await play.attest("h2", epoch)
    await let_settle(cell, raw)
    await arrive(cell, "a", await move_to(cell, "a", first))
    await play.settle()
    await play.is_now(h2="active")
    answer = await ask_again(cell, "other", "h2", Replacement("h3", other.token, EndReason.MOVED))
    assert answer.outcome is Outcome.NOT_ATTESTED


@pytest.mark.parametrize("state", ["claimed", "starting", "active"])
async def test_a_target_whose_journal_was_lost_is_to_be_accepted_again(
    cell: CellStore, raw: Any, play: Play, state: str
) -> None:
    """The former placement continues meanwhile, even if the target had been active."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    if state != "claimed":
        await cell.claims.accept("h2", "a", second.token, HOUR_S)
    if state == "active":
        await cell.claims.confirm("h2", "a", second.token)
    epoch = await new_epoch(cell)
    await play.attest("h2", epoch)
    await play.attest("h1", epoch, held("a", first))
    await play.is_now(h1="active", h2="claimed")
    await play.attest("h3", epoch)  # until the cell has settled, nothing of a former epoch is accepted
    await arrive(cell, "a", second)
    await play.settle()
    await play.is_now(h1="ending moved", h2="active")
