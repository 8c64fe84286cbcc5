"""Claims whose work may run for a limited time: their deadline, and the reports of hosts that have stopped them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Claim, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import Placed, Replacement
from tests.support.builders.cells import call_of, member
from tests.support.builders.placements import arrive, held, move_to, roll_back, shelved, snapshot
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def limited(cell: CellStore, max_runtime_s: int = 60, **options: Any) -> Placed:
    """Claim `a` on h1; its work may run for so long."""
    call = replace(call_of(await cell.tick(), member("a", "h1")), max_runtime_s=max_runtime_s, **options)
    answer = await cell.claims.place(call)
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


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
    await make_earlier(cell, raw)
    one = replace(member("a", "h2"), replacement=Replacement("h1", placed.token, EndReason.MOVED))
    answer = await cell.claims.place(replace(call_of(await cell.tick(), one), max_runtime_s=60))
    assert answer.outcome is Outcome.OK
    assert (await read(cell)).runtime_deadline_ms == EARLIER_MS


async def test_a_retry_does_not_prolong_it(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell, max_attempts=2)
    await make_earlier(cell, raw)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    await move_to(cell, "a", placed, "h2", EndReason.FAILED)
    assert (await read(cell)).runtime_deadline_ms == EARLIER_MS


async def test_unshelving_starts_it_again(cell: CellStore, raw: Any) -> None:
    placed = await limited(cell)
    await arrive(cell, "a", placed)
    await make_earlier(cell, raw)
    await shelved(cell, "a", placed)
    before = await cell.tick()
    await move_to(cell, "a", placed, "h2", EndReason.SHELVED)
    claim = await read(cell)
    assert claim.runtime_deadline_ms is not None
    assert claim.runtime_deadline_ms >= before.now_ms + 60_000
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


EARLIER_MS = 1_700_000_000_000


async def make_earlier(cell: CellStore, raw: Any) -> None:
    """Set the deadline of claim `a` to a time that no call of a test would."""
    await raw.hset(cell.keys.claim("a"), "runtime_deadline_ms", EARLIER_MS)
