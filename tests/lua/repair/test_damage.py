"""Fields that were overwritten by hand: nothing fits there, only their own host suffers, and no write is half done."""

from typing import Any

import pytest

from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import (
    accepted_claim,
    call_of,
    claim_on,
    claimed,
    make_due,
    member,
    nothing_written,
    open_host,
)

NONSENSE = ("nan", "-nan", "inf", "2.5", "abc", "-3", "1e1", "0x10", " 8", "99999999999999999999")


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize("kind", ["capacity", "claimed", "external", "min", "max", "step"])
async def test_a_damaged_amount_admits_nothing_and_the_next_host_is_tried(
    cell: CellStore, raw: Any, kind: str, value: str
) -> None:
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await raw.hset(cell.keys.host("h1"), f"{kind}.VCPU", value)
    before = await raw.hgetall(cell.keys.host("h1"))
    async with nothing_written(raw):
        refused = await cell.claims.place(call_of(await cell.tick(), member("a", "h1")))
    assert (refused.outcome, [one.cause for one in refused.looked_at]) == (Outcome.FULL, ["VCPU"])
    answer = await cell.claims.place(call_of(await cell.tick(), member("a", "h1", "h2")))
    assert [one.host for one in answer.placed] == ["h2"]
    assert await raw.hgetall(cell.keys.host("h1")) == before


@pytest.mark.parametrize("value", NONSENSE)
@pytest.mark.parametrize(("field", "cause"), [("version", "UNKNOWN"), ("alive_until_ms", "DOWN")])
async def test_a_damaged_host_is_closed_and_half_a_gang_is_never_written(
    cell: CellStore, raw: Any, field: str, cause: str, value: str
) -> None:
    """Otherwise the write to the second member's host would fail after the first one was written."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await raw.hset(cell.keys.host("h2"), field, value)
    async with nothing_written(raw):
        answer = await cell.claims.place(call_of(await cell.tick(), member("a", "h1"), member("b", "h2")))
    assert (answer.outcome, [one.cause for one in answer.looked_at]) == (Outcome.FULL, ["", cause])


@pytest.mark.parametrize("field", ["inbox", "claimed.VCPU", "version"])
async def test_a_damaged_host_does_not_keep_the_claims_of_others_from_expiring(
    cell: CellStore, raw: Any, field: str
) -> None:
    """Due claims are swept in batches: one that raised an error would block all claims after it, for ever."""
    for host in ("h1", "h2"):
        await open_host(cell, host)
    await claim_on(cell, "a", "h1")
    await accepted_claim(cell, "b", "h1")
    await claim_on(cell, "c", "h2")
    for claim_id in "abc":
        await make_due(raw, cell, claim_id)
    await raw.hset(cell.keys.host("h1"), field, "abc")
    seq = (await cell.tick()).seq
    assert await cell.claims.reconcile(["a", "b", "c"]) == 3
    assert (await cell.tick()).seq == seq + 3
    assert await claimed(raw, cell, "h2") == 0
    full = await cell.claims.place(call_of(await cell.tick(), member("d", "h1", VCPU=8)))
    assert full.outcome is Outcome.FULL
