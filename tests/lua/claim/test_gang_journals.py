"""Gangs and journals in a new epoch: a journal may be ahead of the store's record of a member, or behind it."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason, HostStatus
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import EndedPlacement, Placed
from tests.support.builders.cells import HOUR_S, call_of, make_due, member, new_epoch, open_host
from tests.support.builders.placements import arrive, held, let_settle, main_states, roll_back, settle, snapshot


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with two hosts."""
    await open_host(cell)
    await open_host(cell, "h2")
    return cell


async def gang(cell: CellStore, ids: str = "ab", active: str = "") -> dict[str, Placed]:
    """Make a gang: `a` on h1, the others on h2. All are accepted, some active."""
    members = [member(one, "h1" if one == "a" else "h2") for one in ids]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    placed = dict(zip(ids, answer.placed, strict=True))
    for one in ids:
        await cell.claims.accept(placed[one].host, one, placed[one].token, HOUR_S)
    for one in active:
        await cell.claims.confirm(placed[one].host, one, placed[one].token)
    return placed


async def waiting(cell: CellStore, raw: Any) -> str | None:
    found: str | None = await raw.hget(cell.keys.gang("a"), "waiting")
    return found


async def test_a_member_whose_work_its_host_has_lost_is_waited_for_again(cell: CellStore, raw: Any) -> None:
    placed = await gang(cell, active="a")
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    assert await waiting(cell, raw) == "2"
    await cell.hosts.attest("h2", epoch, None, [held("b", placed["b"])])
    assert await waiting(cell, raw) == "1"
    await arrive(cell, "a", placed["a"])
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_host_that_has_lost_one_and_runs_the_other_waits_for_the_first(cell: CellStore, raw: Any) -> None:
    """Whichever of them is merged first, the gang is not complete."""
    placed = await gang(cell, "abc", active="ab")
    await cell.hosts.attest("h2", await new_epoch(cell), None, [held("c", placed["c"])])
    assert await waiting(cell, raw) == "1"
    assert await cell.gangs.members("a") == {"a": "h1", "b": "h2", "c": "h2"}


async def test_one_that_has_come_up_is_not_waited_for_because_its_host_lost_it(cell: CellStore, raw: Any) -> None:
    await gang(cell, active="ab")
    await cell.hosts.attest("h1", await new_epoch(cell))
    assert await main_states(cell, "a") == {"a": "claimed"}
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_member_that_its_journal_is_ending_has_left(cell: CellStore, raw: Any) -> None:
    """The host was notified of a release that the store has lost."""
    placed = await gang(cell)
    await cell.hosts.attest("h2", await new_epoch(cell), None, [held("b", placed["b"], ClaimStatus.ENDING)])
    assert await main_states(cell, "b") == {"b": "ending void"}
    assert await cell.gangs.members("a") == {"a": "h1"}
    assert await waiting(cell, raw) == "1"
    assert await raw.hget(cell.keys.gang("a"), "end_reason") == "void"
    await cell.claims.gone("h2", "b", placed["b"].token, EndReason.RELEASED, {})
    await settle(cell, but="b")  # its gang has failed, and h1 has not attested
    assert await waiting(cell, raw) == "1"


@pytest.mark.parametrize(
    ("end_reason", "was_active", "other"),
    [
        (EndReason.RELEASED, False, "active"),
        (EndReason.WORK_ENDED, True, "active"),
        (EndReason.FAILED, True, "active"),
        (None, True, "active"),
        (EndReason.FAILED, False, "ending failed"),
        (None, False, "ending failed"),
    ],
)
@pytest.mark.parametrize("is_over", [True, False])
async def test_a_member_that_had_been_active_does_not_end_the_others(
    cell: CellStore, raw: Any, end_reason: EndReason | None, was_active: bool, other: str, is_over: bool
) -> None:
    """The gang was complete and a member has ended, or is ending; the store lost that, but the journal has it."""
    placed = await gang(cell)
    before = await snapshot(raw)
    await cell.claims.confirm("h1", "a", placed["a"].token)
    await cell.claims.confirm("h2", "b", placed["b"].token)
    assert not await raw.exists(cell.keys.gang("a"))
    epoch = await roll_back(cell, raw, before)
    token = placed["a"].token
    if is_over:
        told = EndedPlacement("a", token, "", end_reason or "", was_active)
        await cell.hosts.attest("h1", epoch, None, [], [told])
    else:
        ending = replace(held("a", placed["a"], ClaimStatus.ENDING), was_active=was_active)
        await cell.hosts.attest("h1", epoch, None, [ending])
    await cell.hosts.attest("h2", epoch, None, [held("b", placed["b"])])
    await settle(cell)
    if is_over:
        assert await main_states(cell, "ab") == {"a": f"ended {end_reason or 'void'}", "b": other}
    else:
        expected = "active" if was_active else "ending failed"
        assert await main_states(cell, "ab") == {"a": "ending void", "b": expected}


async def test_a_member_that_fell_with_its_gang_counts_as_never_active(cell: CellStore, raw: Any) -> None:
    """The store lost data from after it was active, and another member had not failed yet at that point."""
    placed = await gang(cell, active="a")
    before = await snapshot(raw)
    await cell.claims.fail("h2", "b", placed["b"].token, by_host=True)
    await settle(cell)
    assert (await cell.claims.gone("h1", "a", placed["a"].token, EndReason.VOID, {})).facts == ("failed",)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, None, [], [EndedPlacement("a", placed["a"].token, end_reason="failed")])
    await cell.hosts.attest("h2", epoch)
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended failed", "b": "ended failed"}


async def ended_before_the_other_was_heard(cell: CellStore, raw: Any, in_time: bool) -> dict[str, Placed]:
    """Both were active, which the store has lost; h1 attests, and the work of `a` ends."""
    placed = await gang(cell)
    before = await snapshot(raw)
    await cell.claims.confirm("h1", "a", placed["a"].token)
    await cell.claims.confirm("h2", "b", placed["b"].token)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, None, [held("a", placed["a"])])
    if not in_time:
        await let_settle(cell, raw)
    await cell.claims.gone("h1", "a", placed["a"].token, EndReason.WORK_ENDED, {})
    assert not await cell.gangs.end("a")
    return placed


@pytest.mark.parametrize("in_time", [True, False])
async def test_an_active_member_that_ends_before_the_others_were_heard_ends_alone(
    cell: CellStore, raw: Any, in_time: bool
) -> None:
    """They may be active, and the gang complete. Also if the cell was settled by time, without their host."""
    placed = await ended_before_the_other_was_heard(cell, raw, in_time)
    await cell.hosts.attest("h2", "", None, [held("b", placed["b"])])
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended work-ended", "b": "active"}
    assert not await raw.exists(cell.keys.gang("a"))


@pytest.mark.parametrize("in_time", [True, False])
async def test_an_active_member_that_ends_fails_its_gang_once_another_is_known_never_to_have_been_active(
    cell: CellStore, raw: Any, in_time: bool
) -> None:
    placed = await ended_before_the_other_was_heard(cell, raw, in_time)
    await cell.hosts.attest("h2", "", None, [held("b", placed["b"], ClaimStatus.STARTING)])
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended work-ended", "b": "ending failed"}
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_member_that_confirms_after_an_active_one_has_ended_is_asked_back(cell: CellStore, raw: Any) -> None:
    """It was never active, so the gang was never complete. No scheduler has reconciled yet."""
    placed = await gang(cell, "abc", active="ac")
    await cell.claims.gone("h1", "a", placed["a"].token, EndReason.WORK_ENDED, {})
    assert (await cell.claims.confirm("h2", "b", placed["b"].token)).outcome is Outcome.ENDING
    assert await raw.hget(cell.keys.gang("a"), "may_be_complete") is None
    await settle(cell)
    assert await main_states(cell, "abc") == {"a": "ended work-ended", "b": "ending failed", "c": "ending failed"}


async def test_an_active_member_stays_while_its_gang_may_be_complete(cell: CellStore, raw: Any) -> None:
    """One member has ended, and the state of another is unknown: the reconciliation leaves the active one alone."""
    await open_host(cell, "h3")
    members = [member(one, host) for one, host in zip("abc", ("h1", "h2", "h3"), strict=True)]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    placed = dict(zip("abc", answer.placed, strict=True))
    for one in "abc":
        await cell.claims.accept(placed[one].host, one, placed[one].token, HOUR_S)
    epoch = await new_epoch(cell)
    for one in "ac":
        await cell.hosts.attest(placed[one].host, epoch, None, [held(one, placed[one])])
    await cell.claims.gone("h1", "a", placed["a"].token, EndReason.WORK_ENDED, {})
    assert not await cell.gangs.end("a")
    assert await main_states(cell, "bc") == {"b": "starting", "c": "active"}
    await cell.hosts.write_off("h2", force=True)
    assert not await cell.gangs.end("a")
    assert await main_states(cell, "bc") == {"b": "starting", "c": "active"}
    await make_due(raw, cell, "b")
    await cell.claims.reconcile(["b"])
    await settle(cell)
    assert await main_states(cell, "bc") == {"b": "ended expired", "c": "active"}


@pytest.mark.parametrize("end", ["lease", "evacuation", "removal"])
@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_host_that_was_written_off_unattested_ends_no_gang_that_may_have_been_complete(
    cell: CellStore, raw: Any, end: str, is_heard: bool
) -> None:
    """Its member is starting in a store that lost data; had the host attested since, the state would be known."""
    placed = await gang(cell)
    before = await snapshot(raw)
    await cell.claims.confirm("h1", "a", placed["a"].token)
    await cell.claims.confirm("h2", "b", placed["b"].token)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h2", epoch, None, [held("b", placed["b"])])
    if is_heard:
        await cell.hosts.attest("h1", epoch, None, [held("a", placed["a"], ClaimStatus.STARTING)])
    await cell.hosts.write_off("h1", evacuate=True, force=True)
    if end == "lease":
        await make_due(raw, cell, "a")
        await cell.claims.reconcile(["a"])
    elif end == "evacuation":
        await cell.claims.fail("h1", "a", placed["a"].token, by_host=False, retry=True)
    else:
        await cell.hosts.forget("h1", force=True)
    await settle(cell, but="a" if end == "evacuation" and not is_heard else "")
    alone = {"lease": "ended expired", "evacuation": "pending failed", "removal": "ended void"}[end]
    with_gang = {"lease": "ended expired", "evacuation": "ended failed", "removal": "ended void"}[end]
    wanted = {"a": with_gang, "b": "ending failed"} if is_heard else {"a": alone, "b": "active"}
    assert await main_states(cell, "ab") == wanted


async def test_a_member_that_came_up_after_another_had_failed_is_asked_back(cell: CellStore, raw: Any) -> None:
    """Its confirmation was lost, so the host got no ENDING: the gang does not count as complete."""
    placed = await gang(cell)
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    await cell.hosts.attest("h2", epoch, None, [held("b", placed["b"])])
    assert await main_states(cell, "b") == {"b": "active"}
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended failed", "b": "ending failed"}
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_member_that_was_placed_on_another_host_later_is_a_member_still(cell: CellStore, raw: Any) -> None:
    """By a journal with a later token; only the store knows to which gang it belongs."""
    placed = await gang(cell)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch, None, [held("a", placed["a"], ClaimStatus.STARTING)])
    later = replace(placed["a"], token=f"{epoch}.999999")
    assert (
        await cell.hosts.attest("h2", epoch, None, [held("a", later), held("b", placed["b"])])
    ).outcome is Outcome.OK
    assert (await cell.claims.read("a"))["a"].gang == "a"
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_written_off_host_that_comes_back_counts_likewise(cell: CellStore, raw: Any) -> None:
    await gang(cell, active="a")
    await cell.hosts.write_off("h1", force=True)
    await cell.hosts.attest("h1", "")
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    assert await main_states(cell, "a") == {"a": "claimed"}
    assert await waiting(cell, raw) == "2"
