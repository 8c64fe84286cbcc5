"""Gangs and what journals say of their members in a new epoch: it may be ahead of what the store has, or behind."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import ClaimStatus, HostStatus, Why
from redsched.store import CellStore, EndedPlacement, Outcome, Placed
from tests.support.cells import HOUR_S, call_of, member, new_epoch, open_host
from tests.support.placements import arrive, held, main_states, roll_back, settle, snapshot


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with two hosts."""
    await open_host(cell)
    await open_host(cell, "h2")
    return cell


async def gang(cell: CellStore, ids: str = "ab", active: str = "") -> dict[str, Placed]:
    """A gang: `a` on h1, the others on h2. All are taken up, some active."""
    members = [member(one, "h1" if one == "a" else "h2") for one in ids]
    answer = await cell.claim(replace(call_of(await cell.tick(), *members), is_gang=True))
    placed = dict(zip(ids, answer.placed, strict=True))
    for one in ids:
        await cell.accept(placed[one].host, one, placed[one].token, HOUR_S)
    for one in active:
        await cell.confirm(placed[one].host, one, placed[one].token)
    return placed


async def waiting(cell: CellStore, raw: Any) -> str | None:
    found: str | None = await raw.hget(cell.keys.gang("a"), "waiting")
    return found


async def test_a_member_whose_work_its_host_has_lost_is_waited_for_again(cell: CellStore, raw: Any) -> None:
    placed = await gang(cell, active="a")
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch)
    assert await waiting(cell, raw) == "2"
    await cell.attest("h2", epoch, None, [held("b", placed["b"])])
    assert await waiting(cell, raw) == "1"
    await arrive(cell, "a", placed["a"])
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_host_that_has_lost_one_and_runs_the_other_waits_for_the_first(cell: CellStore, raw: Any) -> None:
    """In one journal: whatever comes first in it, the gang has not come up."""
    placed = await gang(cell, "abc", active="ab")
    await cell.attest("h2", await new_epoch(cell), None, [held("c", placed["c"])])
    assert await waiting(cell, raw) == "1"
    assert await cell.read_gang("a") == {"a": "h1", "b": "h2", "c": "h2"}


async def test_one_that_has_come_up_is_not_waited_for_because_its_host_lost_it(cell: CellStore, raw: Any) -> None:
    await gang(cell, active="ab")
    await cell.attest("h1", await new_epoch(cell))
    assert await main_states(cell, "a") == {"a": "claimed"}
    assert not await raw.exists(cell.keys.gang("a"))


@pytest.mark.parametrize("active", ["", "b"])
async def test_a_member_that_its_journal_is_ending_has_left(cell: CellStore, raw: Any, active: str) -> None:
    """The release that its host has heard of is one that the store has forgotten."""
    placed = await gang(cell, active=active)
    await cell.attest("h2", await new_epoch(cell), None, [held("b", placed["b"], ClaimStatus.ENDING)])
    assert await main_states(cell, "b") == {"b": "ending void"}
    assert await cell.read_gang("a") == {"a": "h1"}
    assert await waiting(cell, raw) == "1"
    await cell.gone("h2", "b", placed["b"].token, Why.RELEASED, {})
    await settle(cell, but="b")  # its gang has failed, and h1 has not attested
    assert await waiting(cell, raw) == "1"


@pytest.mark.parametrize(
    ("why", "other"), [(Why.RELEASED, "active"), (Why.FAILED, "ending failed"), (None, "ending failed")]
)
async def test_a_member_that_has_ended_is_no_failure_if_its_owner_let_it_go(
    cell: CellStore, raw: Any, why: Why | None, other: str
) -> None:
    """The gang had come up and one was released; the store went back to before that, and its journal knows why."""
    placed = await gang(cell)
    before = await snapshot(raw)
    await cell.confirm("h1", "a", placed["a"].token)
    await cell.confirm("h2", "b", placed["b"].token)
    await cell.release("h1", "a")
    assert (await cell.gone("h1", "a", placed["a"].token, Why.VOID, {})).facts == ("released",)
    epoch = await roll_back(cell, raw, before)
    told = EndedPlacement("a", placed["a"].token, placed["a"].token, why or "")
    await cell.attest("h1", epoch, None, [], [told])
    await cell.attest("h2", epoch, None, [held("b", placed["b"])])
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": f"ended {why or 'void'}", "b": other}


async def test_a_member_that_came_up_after_another_had_failed_is_asked_back(cell: CellStore, raw: Any) -> None:
    """Its confirmation was lost, so nobody told it: the gang is not taken for one that has come up."""
    placed = await gang(cell)
    await cell.fail("h1", "a", placed["a"].token, by_host=True)
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch)
    await cell.attest("h2", epoch, None, [held("b", placed["b"])])
    assert await main_states(cell, "b") == {"b": "active"}
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended failed", "b": "ending failed"}
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_member_that_was_placed_on_another_host_later_is_a_member_still(cell: CellStore, raw: Any) -> None:
    """By a journal with a later token; which gang it is of, only the store knows."""
    placed = await gang(cell)
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch, None, [held("a", placed["a"], ClaimStatus.STARTING)])
    later = replace(placed["a"], token=f"{epoch}.999999")
    assert (await cell.attest("h2", epoch, None, [held("a", later), held("b", placed["b"])])).outcome is Outcome.OK
    assert (await cell.read_claims("a"))["a"].gang == "a"
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_written_off_host_that_comes_back_counts_likewise(cell: CellStore, raw: Any) -> None:
    await gang(cell, active="a")
    await cell.write_off("h1", force=True)
    await cell.attest("h1", "")
    await cell.set_status("h1", HostStatus.ENABLED)
    assert await main_states(cell, "a") == {"a": "claimed"}
    assert await waiting(cell, raw) == "2"
