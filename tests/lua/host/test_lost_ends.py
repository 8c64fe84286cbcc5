"""The store has lost the end of a placement, and the placement with it: what its host's journal knows about it counts.

Work that was done must not be done again, and a claim must not run on two hosts while the cell settles.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import AgentStamp, ClaimStatus, EndReason, OnExit
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Placed, ReleaseMode, Replacement
from tests.support.builders.cells import HOUR_S, active, call_of, fields_of, make_due, member, new_epoch, report_of
from tests.support.builders.placements import (
    arrive,
    done,
    held,
    is_kept,
    let_settle,
    move_to,
    moved,
    roll_back,
    settle,
    snapshot,
    states,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def attempted(cell: CellStore, on_exit: OnExit = OnExit.RELEASE) -> Placed:
    """Claim `a` on h1, with three attempts."""
    call = call_of(await cell.tick(), member("a", "h1"), max_attempts=3, on_exit=on_exit)
    return (await cell.claims.place(call)).placed[0]


async def again(cell: CellStore, failed: Placed, host: str) -> ClaimReply:
    """Place `a` again, which is pending from this placement."""
    one = replace(member("a", host), replacement=Replacement(failed.host, failed.token, EndReason.FAILED))
    return await cell.claims.place(call_of(await cell.tick(), one, max_attempts=3))


async def retried(cell: CellStore, raw: Any, on_exit: OnExit = OnExit.RELEASE) -> tuple[Placed, Placed, Any]:
    """Have `a` fail on h1, and run on h2. Returns both placements, and the store as it was in between."""
    first = await attempted(cell, on_exit)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    pending = await snapshot(raw)
    second = (await again(cell, first, "h2")).placed[0]
    await arrive(cell, "a", second)
    return first, second, pending


async def attest_all_but_h2(cell: CellStore, epoch: str) -> None:
    for host in ("h1", "h3"):
        assert (await cell.hosts.attest(host, epoch)).outcome is Outcome.OK


@pytest.mark.parametrize("end_reason", [EndReason.WORK_ENDED, EndReason.MAX_RUNTIME, EndReason.RELEASED])
async def test_a_claim_whose_work_was_done_is_not_placed_again(
    cell: CellStore, raw: Any, end_reason: EndReason
) -> None:
    first, second, pending = await retried(cell, raw)
    epoch = await roll_back(cell, raw, pending)
    await attest_all_but_h2(cell, epoch)
    assert (await cell.hosts.attest("h2", epoch, ended=[done("a", second, end_reason)])).outcome is Outcome.OK
    await settle(cell)
    assert await states(cell, "a") == {"": f"ended {end_reason}"}
    assert (await again(cell, first, "h3")).outcome is Outcome.ENDED
    assert (await fields_of(raw, cell.keys.claim("a")))["host"] == "h2"
    assert not await is_kept(cell, raw, "a")


async def test_so_it_is_if_the_store_has_an_earlier_placement(cell: CellStore, raw: Any) -> None:
    """It is not wanted any more, whether its host has taken it up or not."""
    first = await attempted(cell)
    claimed = await snapshot(raw)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    second = (await again(cell, first, "h2")).placed[0]
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, claimed)
    await cell.hosts.attest("h2", epoch, ended=[done("a", second)])
    assert (await states(cell, "a"))["h1"] in ("claimed", "ending work-ended")
    await cell.hosts.attest("h1", epoch)
    await cell.hosts.attest("h3", epoch)
    assert (await cell.claims.accept("h1", "a", first.token, HOUR_S)).outcome is Outcome.STALE
    await settle(cell)
    assert await states(cell, "a") == {"": "ended work-ended"}


async def test_a_service_that_failed_is_placed_again(cell: CellStore, raw: Any) -> None:
    """Its journal has `failed`: what is to be done then is the claim's own rule, and that is to place it again."""
    first, second, pending = await retried(cell, raw, OnExit.REPLACE)
    epoch = await roll_back(cell, raw, pending)
    await attest_all_but_h2(cell, epoch)
    await cell.hosts.attest("h2", epoch, ended=[done("a", second, EndReason.FAILED)])
    await settle(cell, but=["a"])
    assert await states(cell, "a") == {"": "pending failed"}
    assert (await again(cell, first, "h3")).outcome is Outcome.OK


@pytest.mark.parametrize("end_reason", [EndReason.MOVED, EndReason.SHELVED, EndReason.VOID])
async def test_an_end_that_was_not_the_claims_leaves_it_pending(
    cell: CellStore, raw: Any, end_reason: EndReason
) -> None:
    _, second, pending = await retried(cell, raw)
    epoch = await roll_back(cell, raw, pending)
    await attest_all_but_h2(cell, epoch)
    await cell.hosts.attest("h2", epoch, ended=[done("a", second, end_reason)])
    assert await states(cell, "a") == {"": "pending failed"}


async def test_a_placement_that_never_was_active_ends_nothing(cell: CellStore, raw: Any) -> None:
    _, second, pending = await retried(cell, raw)
    epoch = await roll_back(cell, raw, pending)
    await attest_all_but_h2(cell, epoch)
    await cell.hosts.attest("h2", epoch, ended=[replace(done("a", second), was_active=False)])
    assert await states(cell, "a") == {"": "pending failed"}


async def test_the_end_of_an_earlier_placement_does_not_end_a_later_one(cell: CellStore, raw: Any) -> None:
    """A claim of the same id was released on h2, and its id is used again."""
    first, second, _ = await retried(cell, raw)
    third = await moved(cell, "a", second, "h3")
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    await cell.hosts.attest("h2", epoch, ended=[done("a", second, EndReason.RELEASED)])
    await cell.hosts.attest("h3", epoch, held=[held("a", third)])
    await settle(cell)
    assert await states(cell, "a") == {"h3": "active"}
    assert first.token != third.token


@pytest.mark.parametrize("is_lost", [False, True], ids=["the move is known", "the move is lost"])
@pytest.mark.parametrize("how", [ReleaseMode.ASK, ReleaseMode.UNLESS_ACTIVE])
async def test_a_move_that_was_called_off_does_not_end_the_claim(
    cell: CellStore, raw: Any, is_lost: bool, how: ReleaseMode
) -> None:
    """Its target was just about to be confirmed: the journal of its host has it as active, and then as ended."""
    placed = await active(cell, "a")
    before = await snapshot(raw)
    target = await move_to(cell, "a", placed)
    await cell.claims.accept("h2", "a", target.token, HOUR_S)
    assert (await cell.claims.release("h2", "a", target.token, how)).outcome is Outcome.ENDING
    assert (await cell.claims.confirm("h2", "a", target.token)).outcome is Outcome.ENDING
    gone = await cell.claims.gone("h2", "a", target.token, EndReason.RELEASED, {})
    assert gone.outcome is Outcome.OK
    epoch = await (roll_back(cell, raw, before) if is_lost else new_epoch(cell))
    await cell.hosts.attest("h2", epoch, ended=[done("a", target, EndReason(gone.facts[0]))])
    await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
    await cell.hosts.attest("h3", epoch)
    await settle(cell)
    assert await states(cell, "a") == {"h1": "active"}


@pytest.mark.parametrize("is_lost", [False, True], ids=["the move is known", "the move is lost"])
async def test_nor_does_one_whose_target_is_still_being_stopped(cell: CellStore, raw: Any, is_lost: bool) -> None:
    placed = await active(cell, "a")
    before = await snapshot(raw)
    target = await move_to(cell, "a", placed)
    await cell.claims.accept("h2", "a", target.token, HOUR_S)
    await cell.claims.release("h2", "a", target.token)
    told = next(one for one in (await cell.claims.read(["a"]))["a"].placements if one.host == "h2").end_reason or ""
    epoch = await (roll_back(cell, raw, before) if is_lost else new_epoch(cell))
    stopping = replace(held("a", target, ClaimStatus.ENDING, end_reason=told), was_active=True)
    await cell.hosts.attest("h2", epoch, held=[stopping])
    await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
    await cell.hosts.attest("h3", epoch)
    await settle(cell)
    assert (await cell.claims.gone("h2", "a", target.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "active"}


@pytest.mark.parametrize("end_reason", [EndReason.FAILED, EndReason.EXPIRED, EndReason.RELEASED, EndReason.WORK_ENDED])
@pytest.mark.parametrize("is_reported", [True, False], ids=["as it attests", "later"])
async def test_a_claim_whose_source_is_being_stopped_is_not_closed_while_a_host_may_have_a_later_placement(
    cell: CellStore, raw: Any, end_reason: EndReason, is_reported: bool
) -> None:
    """The store has lost the second move. The end on h2 is no end of the claim, which h3 runs."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    await settle(cell)
    assert await states(cell, "a") == {"h1": "ending moved", "h2": "active"}
    before = await snapshot(raw)
    third = await move_to(cell, "a", second, "h3")
    await arrive(cell, "a", third)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, held=[held("a", first, ClaimStatus.ENDING, end_reason="moved")])
    if is_reported:
        await cell.hosts.attest("h2", epoch, ended=[done("a", second, end_reason)])
    else:
        await cell.hosts.attest("h2", epoch, held=[replace(held("a", second), root=first.token)])
        assert (await cell.claims.gone("h2", "a", second.token, end_reason, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": "ending moved"}
    await cell.hosts.attest("h3", epoch, held=[replace(held("a", third), root=first.token)])
    await settle(cell)
    assert await states(cell, "a") == {"h1": "ending moved", "h3": "active"}


async def test_an_id_that_the_store_has_lost_is_not_claimed_again(cell: CellStore, raw: Any) -> None:
    """Its owner does not know that all is lost, and repeats the call: it gets the answer that it would have got."""
    _, second, _ = await retried(cell, raw)
    epoch = await roll_back(cell, raw, {})
    for host in ("h1", "h2", "h3"):
        await cell.hosts.report(report_of(host))
    await attest_all_but_h2(cell, epoch)
    await cell.hosts.attest("h2", epoch, ended=[done("a", second)])
    assert await states(cell, "a") == {"": "ended work-ended"}
    assert not await is_kept(cell, raw, "a")
    assert (await cell.claims.place(call_of(await cell.tick(), member("a", "h3")))).outcome is Outcome.ENDED


@pytest.mark.parametrize("ago_s", [601, None])
async def test_what_ended_long_ago_is_not_restored(cell: CellStore, raw: Any, ago_s: int | None) -> None:
    """After the time for which the store remembers ended claims, their ids are free; so they are if it is not known."""
    _, second, _ = await retried(cell, raw)
    old = replace(done("a", second), ended_ago_ms=1000 * ago_s if ago_s else None)
    epoch = await roll_back(cell, raw, {})
    for host in ("h1", "h2", "h3"):
        await cell.hosts.report(report_of(host))
    await attest_all_but_h2(cell, epoch)
    await cell.hosts.attest("h2", epoch, ended=[old])
    assert await states(cell, "a") == {}


async def test_a_placement_of_a_former_epoch_is_accepted_once_the_cell_has_settled(cell: CellStore, raw: Any) -> None:
    """Until then, another host may have a later placement: h2 runs the claim, whose first lease had expired on h1."""
    said = await cell.hosts.report(report_of("h1"), AgentStamp("j", "n", 1))
    await cell.hosts.attest("h1", said.epoch, AgentStamp("j", "n", 2))
    first = await attempted(cell)
    old = await snapshot(raw)
    await make_due(raw, cell, "a")
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"": "pending expired"}
    second = (await again(cell, first, "h2")).placed[0]
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, old)
    await cell.hosts.attest("h1", epoch, AgentStamp("j", "n", 3))
    assert (await cell.claims.accept("h1", "a", first.token, HOUR_S)).outcome is Outcome.SETTLING
    assert await states(cell, "a") == {"h1": "claimed"}
    await cell.hosts.attest("h3", epoch)
    await cell.hosts.attest("h2", epoch, held=[held("a", second)])
    await settle(cell)
    assert await states(cell, "a") == {"h2": "active"}
    assert (await cell.claims.accept("h1", "a", first.token, HOUR_S)).outcome is Outcome.STALE


async def test_it_is_accepted_if_no_host_has_a_later_one(cell: CellStore, raw: Any) -> None:
    first = await attempted(cell)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    assert (await cell.claims.accept("h1", "a", first.token, HOUR_S)).outcome is Outcome.SETTLING
    await let_settle(cell, raw)
    assert (await cell.claims.accept("h1", "a", first.token, HOUR_S)).outcome is Outcome.OK
    assert await states(cell, "a") == {"h1": ClaimStatus.STARTING}
