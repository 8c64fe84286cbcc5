"""Requests and chores: what a claim's end leaves to be done is remembered until somebody has done it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Why
from redsched.store import CellStore, Former, Giving, Outcome
from tests.support.cells import (
    HOUR_S,
    active,
    call_of,
    claim_on,
    fields_of,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
)
from tests.support.succession import states, target


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with two hosts."""
    await open_host(cell)
    await open_host(cell, "h2")
    return cell


async def due(cell: CellStore) -> list[str]:
    return await cell.due_chores((await cell.tick()).now_ms, 0, 10)


async def expired(cell: CellStore, raw: Any) -> None:
    await make_due(raw, cell, "a")
    assert await cell.expire([("a", "h1")]) == 1


async def ended_by_its_journal(cell: CellStore, token: str) -> None:
    await cell.attest("h1", await new_epoch(cell), None, [], [("a", token)])


ENDS: dict[str, Callable[[CellStore, Any, str], Awaitable[Any]]] = {
    "release": lambda cell, raw, token: cell.release("h1", "a", token),
    "fail": lambda cell, raw, token: cell.fail("h1", "a", token, by_host=False),
    "fail by host": lambda cell, raw, token: cell.fail("h1", "a", token, by_host=True),
    "gone": lambda cell, raw, token: cell.gone("h1", "a", token, Why.RELEASED, {}),
    "expire": lambda cell, raw, token: expired(cell, raw),
    "forget": lambda cell, raw, token: cell.forget("h1", force=True),
    "attest": lambda cell, raw, token: ended_by_its_journal(cell, token),
    "shelve": lambda cell, raw, token: cell.shelve("h1", "a", token),
}


@pytest.mark.parametrize("end", ENDS)
async def test_an_end_that_concerns_nobody_else_leaves_no_chore(cell: CellStore, raw: Any, end: str) -> None:
    """For whom it was claimed is known for remember_s, and of what is shelved for as long as that."""
    placed = await claim_on(cell)
    await ENDS[end](cell, raw, placed.token)
    claim = (await cell.read_claims("a"))["a"]
    assert (claim.state, claim.project, claim.consumer) == ("ended", "project", "consumer")
    assert await due(cell) == []
    assert (await raw.pttl(cell.keys.claim("a")) > 0) == (end != "shelve")


async def test_a_chore_that_cannot_be_done_is_tried_later(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell)
    await target(cell, "a", placed)
    await cell.release("h1", "a")
    answer = await cell.chore_done("a", (), 5000)
    assert answer.outcome is Outcome.EARLY
    assert await raw.zscore(cell.keys.chores, "a") == answer.now_ms + 5000
    async with nothing_written(raw):
        assert (await cell.chore_done("nothing", (), 5000)).outcome is Outcome.SAME


async def test_a_chore_of_a_claim_that_nobody_knows_is_let_go(cell: CellStore, raw: Any) -> None:
    await raw.zadd(cell.keys.chores, {"nothing": 1})
    assert (await cell.chore_done("nothing", ())).outcome is Outcome.OK
    assert not await raw.exists(cell.keys.chores, cell.keys.claim("nothing"))


# Requests


async def test_a_request_is_kept_for_a_day_under_its_digest(cell: CellStore, raw: Any) -> None:
    call = replace(call_of(await cell.tick(), member("a", "h1")), request='{"resources":{"VCPU":1}}')
    assert (await cell.claim(call)).outcome is Outcome.OK
    assert await cell.read_request("digest") == '{"resources":{"VCPU":1}}'
    key, day_ms = cell.keys.request("digest"), 24 * 3600 * 1000
    assert day_ms - 60_000 < await raw.pttl(key) <= day_ms
    await raw.pexpire(key, 60_000)
    await cell.keep_requests(["digest", "another"])
    assert day_ms - 60_000 < await raw.pttl(key) <= day_ms
    assert await cell.read_request("another") is None


async def test_a_refused_call_keeps_no_request(cell: CellStore, raw: Any) -> None:
    call = replace(call_of(await cell.tick(), member("a", "h1", VCPU=99)), request="{}")
    async with nothing_written(raw):
        assert (await cell.claim(call)).outcome is Outcome.FULL


async def test_request_gang_former_and_conditions_in_one_call(cell: CellStore, raw: Any) -> None:
    """Each has keys and arguments of its own, behind those of the others."""
    placed = await active(cell, "x")
    clock = await cell.tick()
    former = Former("x", "h1", placed.token, Why.MOVED, 60)
    members = (member("a", "h2"), replace(member("b", "h2"), former=former))
    call = replace(call_of(clock, *members), request="{}", is_gang=True, limits={})
    assert (await cell.claim(call)).outcome is Outcome.OK
    found = (await cell.read_claims("ab")).values()
    assert [(one.gang, one.former) for one in found] == [("a", ""), ("a", "x")]
    assert await cell.read_gang("a") == {"a": "h2", "b": "h2"}
    assert await cell.read_request("digest") == "{}"


# Giving back unless it is active


@pytest.mark.parametrize(
    ("state", "outcome", "after"),
    [("claimed", "OK", "ended released"), ("starting", "ENDING", "ending released"), ("active", "ACTIVE", "active")],
)
async def test_what_is_not_active_by_then_is_given_back(
    cell: CellStore, raw: Any, state: str, outcome: str, after: str
) -> None:
    placed = await claim_on(cell)
    if state != "claimed":
        await cell.accept("h1", "a", placed.token, HOUR_S)
    if state == "active":
        await cell.confirm("h1", "a", placed.token)
    before = await fields_of(raw, cell.keys.claim("a"))
    answer = await cell.release("h1", "a", placed.token, Giving.UNLESS_ACTIVE)
    assert (answer.outcome, await states(cell, "a")) == (outcome, {"a": after})
    if outcome == "ACTIVE":
        assert await fields_of(raw, cell.keys.claim("a")) == before
    assert (await cell.confirm("h1", "a", placed.token)).outcome == {"OK": "GONE", "ACTIVE": "SAME"}.get(
        outcome, "ENDING"
    )
