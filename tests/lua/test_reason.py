"""Why a claim failed, expired or lost its work: kept in words beside it, and no longer than what is left of it."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import ClaimStatus, OnExit, Reason, Why
from redsched.store import CellStore, Giving, Outcome
from redsched.store.claim_calls import MOST_REASON
from tests.support.cells import (
    IN_STATE,
    active,
    call_of,
    claim_on,
    fields_of,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
    taken_up,
)
from tests.support.placements import held_claim

REMEMBER_MS, DAY_MS = 600_000, 24 * 3600 * 1000


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


async def reason_of(cell: CellStore, claim_id: str = "a") -> Reason | None:
    return (await cell.read_reasons([claim_id, "other"])).get(claim_id)


async def left_ms(cell: CellStore, raw: Any) -> int:
    """For how long the reason is kept."""
    left: int = await raw.pttl(cell.keys.reason("a"))
    return left


async def test_a_failure_is_kept_as_long_as_the_claim_is_remembered(cell: CellStore, raw: Any) -> None:
    placed = await taken_up(cell)
    before = await cell.tick()
    await cell.fail("h1", "a", placed.token, by_host=True, reason="no more disks\nreally")
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.host, reason.token, reason.text) == ("h1", placed.token, "no more disks\nreally")
    assert before.now_ms <= reason.at_ms <= (await cell.tick()).now_ms
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS, abs=10_000)
    assert await left_ms(cell, raw) == pytest.approx(await raw.pttl(cell.keys.claim("a")), abs=1000)


async def test_the_first_reason_stays(cell: CellStore, raw: Any) -> None:
    placed = await taken_up(cell)
    await cell.fail("h1", "a", placed.token, by_host=True, reason="first")
    async with nothing_written(raw):
        await cell.fail("h1", "a", placed.token, by_host=True, reason="second")


async def test_while_a_claim_ends_its_reason_is_kept_for_a_day(cell: CellStore, raw: Any) -> None:
    """And once it has ended as long as the claim, though the host says nothing new."""
    placed = await taken_up(cell)
    answer = await cell.fail("h1", "a", placed.token, by_host=False, reason="exit code 3")
    assert answer.outcome is Outcome.ENDING
    assert await left_ms(cell, raw) == pytest.approx(DAY_MS, abs=10_000)
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS, abs=10_000)
    assert (await reason_of(cell) or placed).token == placed.token


async def test_without_a_reason_there_is_no_key(cell: CellStore, raw: Any) -> None:
    first, second = await taken_up(cell, "a"), await taken_up(cell, "b")
    await cell.fail("h1", "a", first.token, by_host=True)
    await cell.gone("h1", "b", second.token, Why.RELEASED, {})
    assert not await raw.exists(cell.keys.reason("a"), cell.keys.reason("b"))


async def test_a_long_reason_is_cut(cell: CellStore) -> None:
    placed = await taken_up(cell)
    await cell.fail("h1", "a", placed.token, by_host=True, reason="\N{GRINNING FACE}" * 5000)
    reason = await reason_of(cell)
    assert reason is not None
    assert len(reason.text) == MOST_REASON


async def test_work_that_ended_ends_its_claim_with_the_reason(cell: CellStore) -> None:
    placed = await active(cell)
    await cell.gone("h1", "a", placed.token, Why.WORK_ENDED, {}, reason="no process 7 is left")
    assert (await cell.read_claims(["a"]))["a"].why is Why.WORK_ENDED
    reason = await reason_of(cell)
    assert reason is not None
    assert reason.text == "no process 7 is left"


@pytest.mark.parametrize(("state", "word"), [("claimed", "taken it up"), ("starting", "confirmed that its work runs")])
async def test_a_lease_that_ran_out_says_which_and_what_was_missing(
    cell: CellStore, raw: Any, state: str, word: str
) -> None:
    """Of two that are ended together each says its own."""
    await IN_STATE[state](cell, "a", "h1", VCPU=1)
    await claim_on(cell, "other", VCPU=1)
    await make_due(raw, cell, "a")
    await make_due(raw, cell, "other")
    due_ms = (await cell.read_claims(["a"]))["a"].expires_at_ms
    assert await cell.reconcile(["other", "a"]) == 2
    reason = await reason_of(cell)
    assert reason is not None
    assert reason.text == f"its lease ended at {due_ms}, and host h1 had not {word}"
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS if state == "claimed" else DAY_MS, abs=10_000)
    assert "taken it up" in (await cell.read_reasons(["other"]))["other"].text


# -- work that ended though the claim goes on


async def test_a_claim_shows_that_its_work_has_ended(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    seq = (await cell.tick()).seq
    assert (await cell.work_ended("h1", "a", placed.token, "no process 7 is left")).outcome is Outcome.OK
    claim = (await cell.read_claims(["a"]))["a"]
    assert claim.state is ClaimStatus.ACTIVE
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.text, reason.at_ms) == ("no process 7 is left", claim.work_ended_at_ms)
    (entry,) = [one for one in await cell.changes("0-0", 100) if one.seq > seq]
    assert (entry.op, entry.fields) == ("work-ended", {"claim": "a"})
    assert await left_ms(cell, raw) == pytest.approx(DAY_MS, abs=10_000)


async def test_a_claim_that_lost_the_note_of_it_gets_it_anew(cell: CellStore, raw: Any) -> None:
    """Its host brought it back by a journal from before, and the reason was never lost."""
    placed = await active(cell)
    await cell.work_ended("h1", "a", placed.token, "gone")
    await raw.hdel(cell.keys.claim("a"), "work_ended_at_ms")
    assert (await cell.work_ended("h1", "a", placed.token, "gone")).outcome is Outcome.OK
    assert (await cell.read_claims(["a"]))["a"].work_ended_at_ms


async def test_the_work_of_a_later_placing_may_end_too(cell: CellStore) -> None:
    placed = await active(cell, VCPU=2)
    await cell.work_ended("h1", "a", placed.token, "first")
    token = (await cell.resize("h1", "a", placed.token, {"VCPU": 1})).facts[0]
    await cell.resized("h1", "a", token, {"VCPU": 1})
    assert (await cell.work_ended("h1", "a", placed.token, "late")).outcome is Outcome.STALE
    assert (await cell.work_ended("h1", "a", token, "second")).outcome is Outcome.OK
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.text, reason.token) == ("second", token)


async def test_what_becomes_of_it_stands_in_the_claim_where_it_was_said(cell: CellStore, raw: Any) -> None:
    for claim_id, on_exit in (("a", OnExit.RELEASE), ("b", OnExit.REPLACE), ("c", OnExit.KEEP)):
        call = replace(call_of(await cell.tick(), member(claim_id, "h1", VCPU=1)), on_exit=on_exit)
        assert (await cell.claim(call)).outcome is Outcome.OK
        assert (await cell.read_claims([claim_id]))[claim_id].on_exit is on_exit
    assert "on_exit" not in await fields_of(raw, cell.keys.claim("a"))


async def test_a_host_brings_back_what_becomes_of_it_and_that_its_work_has_ended(cell: CellStore, raw: Any) -> None:
    call = replace(call_of(await cell.tick(), member("a", "h1", VCPU=1)), on_exit=OnExit.KEEP)
    token = (await cell.claim(call)).placed[0].token
    await cell.release("h1", "a", token, Giving.FORCE)
    await raw.delete(cell.keys.claim("a"))
    epoch = await new_epoch(cell)
    held = held_claim("a", token, on_exit="keep", work_ended_at_ms="7")
    assert (await cell.attest("h1", epoch, None, [held])).outcome is Outcome.OK
    claim = (await cell.read_claims(["a"]))["a"]
    assert (claim.state, claim.on_exit, claim.work_ended_at_ms) == (ClaimStatus.ACTIVE, OnExit.KEEP, 7)
