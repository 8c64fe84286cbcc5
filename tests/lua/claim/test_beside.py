"""replace.lua: a host that was chosen because of where other claims are is used only while they are still there."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Placed, Replacement
from tests.support.builders.cells import call_of, claim_on, member, nothing_written, open_host
from tests.support.builders.placements import arrive, move_to, settle

HOSTS = ("h1", "h2", "h3", "h10")


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    for host in HOSTS:
        await open_host(cell, host)
    return cell


async def active(cell: CellStore, claim_id: str, host: str) -> Placed:
    placed = await claim_on(cell, claim_id, host)
    await arrive(cell, claim_id, placed)
    return placed


async def move(cell: CellStore, claim_id: str, placed: Placed, host: str, **expected: tuple[str, ...]) -> ClaimReply:
    """Move a claim to a host that was chosen while other claims were on these hosts."""
    one = replace(member(claim_id, host), replacement=Replacement(placed.host, placed.token, EndReason.MOVED))
    return await cell.claims.place(replace(call_of(await cell.tick(), one), expected=expected))


async def test_a_place_beside_others_is_given_where_they_still_are(cell: CellStore) -> None:
    """In whatever order their hosts are named; an ended claim is on no host."""
    one, other = await active(cell, "one", "h1"), await active(cell, "other", "h10")
    await move_to(cell, "other", other, "h2")
    answer = await move(cell, "one", one, "h3", other=("h2", "h10"), gone=())
    assert answer.outcome is Outcome.OK


@pytest.mark.parametrize("expected", [(), ("h2",), ("h1", "h2"), ("h2", "h3", "h10")])
async def test_a_place_beside_others_is_refused_when_one_has_moved(
    cell: CellStore, raw: Any, expected: tuple[str, ...]
) -> None:
    one, other = await active(cell, "one", "h1"), await active(cell, "other", "h2")
    await move_to(cell, "other", other, "h3")
    await active(cell, "still", "h1")
    async with nothing_written(raw):
        answer = await move(cell, "one", one, "h10", still=("h1",), other=expected)
        assert answer.outcome is Outcome.RETRY


async def test_a_place_that_was_given_is_answered_again_though_others_have_moved(cell: CellStore) -> None:
    one, other = await active(cell, "one", "h1"), await active(cell, "other", "h2")
    first = await move(cell, "one", one, "h3", other=("h2",))
    await arrive(cell, "other", await move_to(cell, "other", other, "h10"))
    await settle(cell)
    again = await move(cell, "one", one, "h3", other=("h2",))
    assert (again.outcome, again.placed[0].token) == (Outcome.ALREADY_DONE, first.placed[0].token)
