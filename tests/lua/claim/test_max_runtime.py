"""Claims whose work may run for a limited time: their deadline, and the reports of hosts that have stopped them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Claim, ClaimStatus, EndReason, OnExit
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import EndedPlacement, Placed, Replacement
from tests.support.builders.cells import HOUR_S, call_of, member, new_epoch, nothing_written
from tests.support.builders.placements import arrive, held, move_to, roll_back, settle, shelved, snapshot, states
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def limited(cell: CellStore, max_runtime_s: int = 60, **options: Any) -> Placed:
    """Claim `a` on h1; its work may run for so long."""
    call = replace(call_of(await cell.tick(), member("a", "h1"), **options), max_runtime_s=max_runtime_s)
    answer = await cell.claims.place(call)
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


OTHER_MS = 4_000_000_000_000
"""A deadline that no call of a test would set."""


async def set_deadline(cell: CellStore, raw: Any, at_ms: int) -> None:
    """Set the deadline of claim `a`."""
    await raw.hset(cell.keys.claim("a"), "runtime_deadline_ms", at_ms)


async def read(cell: CellStore) -> Claim:
    """Return claim `a`."""
    return (await cell.claims.read(["a"]))["a"]


async def test_the_deadline_counts_from_the_claim(cell: CellStore) -> None:
    await limited(cell, 60)
    claim = await read(cell)
    assert claim.claimed_at_ms is not None
    assert (claim.max_runtime_s, claim.runtime_deadline_ms) == (60, claim.claimed_at_ms + 60_000)


async def test_without_a_limit_the_claim_has_no_deadline(cell: CellStore, raw: Any) -> None:
    await limited(cell, 0)
    claim = await read(cell)
    assert (claim.max_runtime_s, claim.runtime_deadline_ms) == (0, None)
    assert not await raw.hexists(cell.keys.claim("a"), "runtime_deadline_ms")


async def test_a_move_does_not_prolong_it(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    await set_deadline(cell, raw, OTHER_MS)
    one = replace(member("a", "h2"), replacement=Replacement("h1", placed.token, EndReason.MOVED))
    answer = await cell.claims.place(replace(call_of(await cell.tick(), one), max_runtime_s=60))
    assert answer.outcome is Outcome.OK
    assert (await read(cell)).runtime_deadline_ms == OTHER_MS


async def test_a_retry_does_not_prolong_it(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell, max_attempts=2)
    await set_deadline(cell, raw, OTHER_MS)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    await move_to(cell, "a", placed, "h2", EndReason.FAILED)
    assert (await read(cell)).runtime_deadline_ms == OTHER_MS


async def test_unshelving_starts_it_again(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    await set_deadline(cell, raw, OTHER_MS)
    await shelved(cell, "a", placed)
    before = await cell.tick()
    await move_to(cell, "a", placed, "h2", EndReason.SHELVED)
    after, claim = await cell.tick(), await read(cell)
    assert claim.runtime_deadline_ms is not None
    assert before.now_ms <= claim.runtime_deadline_ms - 60_000 <= after.now_ms
    assert claim.max_runtime_s == 60


async def test_an_ended_claim_still_shows_it(cell: CellStore) -> None:
    await limited(cell)
    before = await read(cell)
    await cell.claims.release("h1", "a")
    after = await read(cell)
    assert after.state == "ended"
    assert (after.max_runtime_s, after.runtime_deadline_ms) == (60, before.runtime_deadline_ms)


async def test_a_journal_restores_it(cell: CellStore, raw: Any) -> None:
    without = await snapshot(raw)
    placed = await limited(cell)
    before = await read(cell)
    epoch = await roll_back(cell, raw, without)
    journaled = replace(held("a", placed), record=record_of(before))
    assert (await cell.hosts.attest("h1", epoch, None, [journaled])).outcome is Outcome.OK
    after = await read(cell)
    assert after.state == "active"
    assert (after.max_runtime_s, after.runtime_deadline_ms) == (60, before.runtime_deadline_ms)


# -- a host has stopped the work


async def gone(cell: CellStore, placed: Placed) -> Outcome:
    """Report that the host of a placement has stopped its work, because its time was up."""
    answer = await cell.claims.gone(
        placed.host, "a", placed.token, EndReason.MAX_RUNTIME, {}, reason="its max_runtime_s of 60 s has passed"
    )
    return answer.outcome


async def of_feed(cell: CellStore, op: str) -> list[dict[str, str]]:
    """Return the fields of the changes of claim `a` with this name."""
    changes = await cell.feed.read("0-0", 1000)
    return [dict(one.fields) for one in changes if one.op == op and one.fields.get("claim") == "a"]


@pytest.mark.parametrize("on_exit", list(OnExit))
async def test_the_claim_ends_whatever_on_exit_says(cell: CellStore, raw: Any, on_exit: OnExit) -> None:
    placed = await limited(cell, on_exit=on_exit, max_attempts=3)
    await arrive(cell, "a", placed)
    assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended max-runtime"}
    assert not await raw.exists(cell.keys.reconcile)
    assert (await cell.claims.reasons(["a"]))["a"].text == "its max_runtime_s of 60 s has passed"
    (entry,) = await of_feed(cell, "max-runtime")
    assert (entry["end_reason"], entry["reason"]) == ("max-runtime", "its max_runtime_s of 60 s has passed")
    async with nothing_written(raw):
        assert await gone(cell, placed) is Outcome.ALREADY_DONE


@pytest.mark.parametrize("state", ["claimed", "starting"])
async def test_it_ends_before_the_work_ran(cell: CellStore, state: str) -> None:
    placed = await limited(cell, max_attempts=3)
    if state == "starting":
        await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended max-runtime"}


async def test_without_a_limit_its_host_cannot_name_one(cell: CellStore) -> None:
    placed = await limited(cell, 0)
    await arrive(cell, "a", placed)
    assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}


async def test_a_release_that_came_first_keeps_its_reason(cell: CellStore) -> None:
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    await cell.claims.release("h1", "a")
    assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}


async def test_a_claim_that_is_moving_ends_on_both_hosts(cell: CellStore) -> None:
    """The target reports first; the source may be on a host that is down, and must not be moved once more."""
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    target = await move_to(cell, "a", placed, "h2")
    await cell.claims.accept("h2", "a", target.token, HOUR_S)
    assert await gone(cell, target) is Outcome.OK
    await settle(cell)
    assert await states(cell, "a") == {"h1": "ending max-runtime"}
    assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended max-runtime"}


async def test_what_fails_past_its_deadline_is_not_placed_again(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell, max_attempts=3)
    await set_deadline(cell, raw, 1)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("ended",))
    assert await states(cell, "a") == {"": "ended max-runtime"}


async def test_on_a_host_that_is_evacuated_it_is_not_placed_again_either(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    await set_deadline(cell, raw, 1)
    await cell.hosts.write_off("h1", force=True)
    await cell.claims.fail("h1", "a", placed.token, by_host=False, retry=True)
    assert await states(cell, "a") == {"": "ended max-runtime"}


@pytest.mark.parametrize("is_ended", [False, True])
async def test_a_host_that_was_cut_off_reports_it_when_it_attests(cell: CellStore, is_ended: bool) -> None:
    """The journal has the placement as ending while the stop hook runs, and then as ended."""
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    epoch = await new_epoch(cell)
    before = await read(cell)
    record = {**record_of(before), "end_reason": "max-runtime"}
    held_now = [] if is_ended else [replace(held("a", placed, ClaimStatus.ENDING), record=record)]
    ended_now = [EndedPlacement("a", placed.token, placed.token, "max-runtime", True)] if is_ended else []
    assert (await cell.hosts.attest("h1", epoch, None, held_now, ended_now)).outcome is Outcome.OK
    if not is_ended:
        assert await states(cell, "a") == {"h1": "ending max-runtime"}
        assert await gone(cell, placed) is Outcome.OK
    assert await states(cell, "a") == {"": "ended max-runtime"}


async def test_the_members_of_a_gang_that_was_never_complete_end_together(cell: CellStore) -> None:
    """The host of one member stops it first."""
    members = (member("a", "h1"), member("b", "h2"))
    call = replace(call_of(await cell.tick(), *members), max_runtime_s=60, is_gang=True)
    a, b = (await cell.claims.place(call)).placed
    await arrive(cell, "a", a)
    await cell.claims.accept("h2", "b", b.token, HOUR_S)
    assert await gone(cell, a) is Outcome.OK
    await settle(cell)
    assert await states(cell, "a") == {"": "ended max-runtime"}
    assert await states(cell, "b") == {"h2": "ending failed"}


async def test_a_scheduler_does_not_end_what_another_one_has_placed_again(cell: CellStore, raw: Any) -> None:
    """Both had found the claim pending, and one of them shortly before its deadline."""
    placed = await limited(cell, max_attempts=3)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await cell.claims.fail("h1", "a", placed.token, by_host=False)
    await move_to(cell, "a", placed, "h2", EndReason.FAILED)
    async with nothing_written(raw):
        answer = await cell.claims.release("h1", "a", placed.token, end_reason=EndReason.MAX_RUNTIME)
        assert answer.outcome is Outcome.STALE
