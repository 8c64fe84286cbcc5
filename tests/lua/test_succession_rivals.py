"""Two targets of one claim, of which a loss of data brings back the one that came to nothing.

A claim `a` on h1 was to be moved to h2, as `b`, which no host took up; then it was moved to h3, as `c`, and h1 has
stopped its work for that. A failover takes the store back to when `b` had just been placed. Whatever comes first then:
the work that is left is at `c`, and goes on.
"""

from typing import Any

import pytest

from redsched.model import ClaimStatus, Why
from redsched.store import CellStore, Outcome, Placed
from tests.support.cells import HOUR_S, active, claimed, make_due, new_epoch, open_host
from tests.support.succession import arrive, held, settle, states, target


class Moved:
    """What the journals of h1 and h3 have in the new epoch, before any host has attested."""

    def __init__(self, cell: CellStore, first: Placed, second: Placed, epoch: str) -> None:
        self.cell, self.first, self.second, self.epoch = cell, first, second, epoch

    async def source(self, has_stopped: bool = True) -> None:
        """h1 has stopped its work, or is at it. Why, its journal does not say."""
        if has_stopped:
            await self.cell.attest("h1", self.epoch, ended=[("a", self.first.token)])
        else:
            await self.cell.attest("h1", self.epoch, held=[held("a", self.first, ClaimStatus.ENDING)])

    async def winner(self) -> None:
        """h3 has the work."""
        former: dict[str, Any] = {
            "former": "a",
            "former_host": "h1",
            "former_token": self.first.token,
            "former_why": Why.MOVED,
        }
        await self.cell.attest("h3", self.epoch, held=[held("c", self.second, origin="a", **former)])

    async def comes_up_after_all(self) -> None:
        """h2 takes `b` up."""
        token = (await self.cell.read_claims("b"))["b"].token
        assert (await self.cell.accept("h2", "b", token, HOUR_S)).outcome is Outcome.OK
        assert (await self.cell.confirm("h2", "b", token)).outcome is Outcome.OK


@pytest.fixture
async def lost(cell: CellStore, raw: Any) -> Moved:
    """Three hosts, `a` moved, and what the store forgets of that."""
    for name in ("h1", "h2", "h3"):
        await open_host(cell, name)
    first = await active(cell, "a")
    await target(cell, "a", first, by_s=3600)
    kept = {key: await raw.dump(key) async for key in raw.scan_iter()}
    await make_due(raw, cell, "b")
    assert await cell.expire([("b", "h2")]) == 1
    await settle(cell)
    second = await target(cell, "a", first, "c", "h3")
    await arrive(cell, "c", second)
    await settle(cell)
    assert await states(cell, "abc") == {"a": "ending moved", "b": "ended expired", "c": "active"}
    await raw.flushall()
    for key, value in kept.items():
        await raw.restore(key, 0, value)
    return Moved(cell, first, second, await new_epoch(cell))


@pytest.mark.parametrize("has_stopped", [True, False])
@pytest.mark.parametrize("source_first", [True, False])
async def test_a_target_that_has_not_come_up_gives_way_to_one_that_has(
    cell: CellStore, raw: Any, lost: Moved, source_first: bool, has_stopped: bool
) -> None:
    """Also where its chore comes before the other one's host."""
    await cell.attest("h2", lost.epoch)
    if source_first:
        await lost.source(has_stopped)
        assert (await cell.succeed("b")).outcome is Outcome.EARLY
        await lost.winner()
    else:
        await lost.winner()
        await lost.source(has_stopped)
    await settle(cell)
    expected = {"a": "ended void" if has_stopped else "ending void", "b": "ended moved", "c": "active"}
    assert await states(cell, "abc") == expected
    assert (await cell.read_claims("a"))["a"].next == "c"
    assert [await claimed(raw, cell, host) for host in ("h1", "h2", "h3")] == [0 if has_stopped else 1, 0, 1]


async def test_a_target_that_expires_before_the_other_ones_host_is_back_takes_nothing_with_it(
    cell: CellStore, raw: Any, lost: Moved
) -> None:
    await cell.attest("h2", lost.epoch)
    await lost.source()
    await settle(cell)
    await make_due(raw, cell, "b")
    assert await cell.expire([("b", "h2")]) == 1
    await settle(cell)
    await lost.winner()
    await settle(cell)
    assert await states(cell, "abc") == {"a": "ended void", "b": "ended expired", "c": "active"}
    assert (await cell.read_claims("a"))["a"].next == "c"


async def test_of_two_that_have_come_up_the_later_placing_is_left(cell: CellStore, raw: Any, lost: Moved) -> None:
    """Whichever is heard first."""
    await cell.attest("h2", lost.epoch)
    await lost.source()
    await lost.comes_up_after_all()
    await settle(cell)
    assert (await cell.read_claims("a"))["a"].next == "b"
    await lost.winner()
    await settle(cell)
    assert await states(cell, "bc") == {"b": "ending moved", "c": "active"}
    assert (await cell.read_claims("a"))["a"].next == "c"


async def test_one_that_comes_back_by_the_earlier_placing_of_two_gives_way(
    cell: CellStore, raw: Any, lost: Moved
) -> None:
    """`d` is placed where h1 was written off, and comes up before h1 and h3 are heard."""
    await cell.attest("h2", lost.epoch)
    await make_due(raw, cell, "b")
    await cell.expire([("b", "h2")])
    await cell.write_off("h1", evacuate=True)
    await settle(cell)
    again = await target(cell, "a", lost.first, "d", "h2")
    await arrive(cell, "d", again)
    await settle(cell)
    await lost.winner()
    await settle(cell)
    assert await states(cell, "acd") == {"a": "ended moved", "c": "ending moved", "d": "active"}
    assert (await cell.read_claims("a"))["a"].next == "d"


async def test_a_target_whose_former_is_gone_for_no_known_reason_has_no_deadline(
    cell: CellStore, raw: Any, lost: Moved
) -> None:
    """There is nothing to go back to: its own lease is all that ends it."""
    await cell.attest("h2", lost.epoch)
    await lost.source()
    await raw.hset(cell.keys.claim("b"), "by_ms", 1)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert await cell.due_chores((await cell.tick()).now_ms, 0, 10) == []
    await lost.comes_up_after_all()
    await settle(cell)
    assert (await states(cell, "b"), (await cell.read_claims("a"))["a"].next) == ({"b": "active"}, "b")
