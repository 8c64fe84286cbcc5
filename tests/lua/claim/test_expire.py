"""reconcile.lua: an expired lease ends its claim, exactly once, and only if the host has attested."""

from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason
from redsched.store.cell import CellStore
from tests.support.builders.cells import (
    IN_STATE,
    accepted_claim,
    claim_on,
    claimed,
    ended,
    ending,
    make_due,
    new_epoch,
    nothing_written,
    open_host,
)


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


async def test_what_no_host_has_accepted_is_freed(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "a", VCPU=2)
    await make_due(raw, cell, "a")
    seq = (await cell.tick()).seq
    assert await cell.claims.reconcile(["a"]) == 1
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    numbers = {"claims": "0", "starting": "0", "claimed.VCPU": "0"}
    reason = (await cell.claims.reasons(["a"]))["a"].text
    said = {"claim": "a", "held.VCPU": "2", "end_reason": "expired", "reason": reason}
    assert (entry.op, entry.fields) == ("expired", {**said, **numbers})
    assert (await cell.claims.read("a"))["a"].end_reason is EndReason.EXPIRED
    assert (await claimed(raw, cell), await cell.hosts.claim_ids("h1"), dict(await cell.due.deadlines())) == (
        0,
        set(),
        {},
    )
    assert not await raw.exists(cell.keys.inbox("h1"))
    async with nothing_written(raw):
        assert await cell.claims.reconcile(["a"]) == 0


async def test_what_a_host_is_starting_is_asked_back(cell: CellStore, raw: Any) -> None:
    """Its work may already run: the amounts stay claimed until the host reports that it has ended."""
    placed = await accepted_claim(cell, "a", VCPU=2)
    await make_due(raw, cell, "a")
    assert await cell.claims.reconcile(["a"]) == 1
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.state, claim.end_reason, await claimed(raw, cell), dict(await cell.due.deadlines())) == (
        "ending",
        "expired",
        2,
        {},
    )
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert (await cell.claims.read("a"))["a"].end_reason is EndReason.EXPIRED


@pytest.mark.parametrize("state", IN_STATE)
async def test_nothing_ends_before_its_time(cell: CellStore, raw: Any, state: str) -> None:
    await IN_STATE[state](cell)
    async with nothing_written(raw):
        assert await cell.claims.reconcile(["a", "nothing"]) == 0


async def test_claims_of_a_host_that_has_not_attested_are_left_alone(cell: CellStore, raw: Any) -> None:
    """The host may have confirmed the claim in writes that the store has lost."""
    await claim_on(cell)
    await new_epoch(cell)
    await make_due(raw, cell, "a")
    async with nothing_written(raw):
        assert await cell.claims.reconcile(["a"]) == 0
    await cell.hosts.write_off("h1", force=True)
    assert await cell.claims.reconcile(["a"]) == 1


async def test_nobody_waits_for_a_host_that_was_written_off(cell: CellStore, raw: Any) -> None:
    """A starting placement ends with its lease, an ending one at once; if the host returns, it drops both."""
    await accepted_claim(cell, "due", VCPU=2)
    await accepted_claim(cell, "starts")
    await ending(cell, "ends")
    await make_due(raw, cell, "due")
    await cell.hosts.write_off("h1", force=True)
    assert await cell.claims.reconcile(["due", "starts", "ends"]) == 2
    claims = await cell.claims.read(("due", "starts", "ends"))
    assert {name: (one.state, one.end_reason) for name, one in claims.items()} == {
        "due": (ClaimStatus.ENDED, EndReason.EXPIRED),
        "starts": (ClaimStatus.STARTING, None),
        "ends": (ClaimStatus.ENDED, EndReason.RELEASED),
    }
    assert (await claimed(raw, cell), await cell.hosts.claim_ids("h1")) == (1, {"starts"})
    assert not await raw.exists(cell.keys.inbox("h1"))


async def test_what_is_ending_on_a_host_that_came_back_waits_for_its_word(cell: CellStore, raw: Any) -> None:
    await ending(cell, "ends")
    await cell.hosts.write_off("h1", force=True)
    await cell.hosts.attest("h1", "")
    async with nothing_written(raw):
        assert await cell.claims.reconcile(["ends"]) == 0


async def test_one_batch_holds_many_hosts_and_numbers_its_entries_densely(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h2")
    due = []
    for number in range(6):
        host = ("h1", "h2")[number % 2]
        await (claim_on if number < 4 else accepted_claim)(cell, f"c{number}", host)
        await make_due(raw, cell, f"c{number}")
        due.append(f"c{number}")
    await claim_on(cell, "runs", "h1")
    seq = (await cell.tick()).seq
    assert await cell.claims.reconcile([*due, "runs"]) == 6
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [one.seq - seq for one in entries] == [1, 2, 3, 4, 5, 6]
    assert (await cell.tick()).seq == seq + 6
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (2, 1)


async def test_a_deadline_without_a_claim_is_swept_away(cell: CellStore, raw: Any) -> None:
    """Otherwise it would stay ahead of all other deadlines for ever, and look due to every scheduler."""
    await ended(cell, "ended")
    await raw.zadd(cell.keys.deadlines, {"nothing": 1, "ended": 2})
    due = await cell.due.expired((await cell.tick()).now_ms, 0, 10)
    assert due == ["nothing", "ended"]
    assert await cell.claims.reconcile(due) == 0
    assert await cell.due.deadlines() == {}
