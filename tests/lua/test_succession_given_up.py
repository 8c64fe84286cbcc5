"""Two targets of one claim after a loss of data, of which its owner releases the one that his id leads to.

A claim `a` on h1 was to be moved to h2, as `b`, whose work runs; a failover forgets that. In the new epoch it is to be
moved to h3, as `c`. Then h2 brings `b` back, and the id leads to that. Whatever comes up afterwards: nothing is left.
"""

from typing import Any

import pytest

from redsched.model import ClaimStatus, Why
from redsched.store import CellStore, Giving, Outcome, Placed
from tests.support.cells import active, claimed, new_epoch, open_host
from tests.support.succession import arrive, held, kept, settle, states, target


class Moving:
    """The two targets, before h2 has attested."""

    def __init__(self, cell: CellStore, first: Placed, lost: Placed, later: Placed, epoch: str) -> None:
        self.cell, self.first, self.lost, self.later, self.epoch = cell, first, lost, later, epoch

    async def lost_comes_back(self, state: ClaimStatus = ClaimStatus.ACTIVE) -> None:
        """h2 has `b`."""
        former: dict[str, Any] = {"former": "a", "former_host": "h1", "former_token": self.first.token}
        entry = held("b", self.lost, state, origin="a", former_why=Why.MOVED, **former)
        await self.cell.attest("h2", self.epoch, held=[entry])

    async def lost_wins(self) -> None:
        """h2 has `b`, and the id leads to it."""
        await self.lost_comes_back()
        assert (await self.cell.succeed("b")).outcome is Outcome.OK

    async def later_comes_up(self) -> None:
        """h3 has the work of `c`."""
        await arrive(self.cell, "c", self.later)

    async def release_lost(self, how: Giving = Giving.ASK, whole: bool = False) -> Outcome:
        """Its owner releases `b`; `whole`: by his own id, `a`."""
        return (await self.cell.release("h2", "b", "", how, origin="a", whole=whole)).outcome


@pytest.fixture
async def moving(cell: CellStore, raw: Any) -> Moving:
    """Three hosts, and `a` moved twice, of which the store has forgotten the first."""
    for name in ("h1", "h2", "h3"):
        await open_host(cell, name)
    first = await active(cell, "a")
    before = {key: await raw.dump(key) async for key in raw.scan_iter()}
    lost = await target(cell, "a", first)
    await arrive(cell, "b", lost)
    await raw.flushall()
    for key, value in before.items():
        await raw.restore(key, 0, value)
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch, held=[held("a", first)])
    await cell.attest("h3", epoch)
    return Moving(cell, first, lost, await target(cell, "a", first, "c", "h3"), epoch)


async def nothing_is_left(cell: CellStore, raw: Any, moving: Moving) -> None:
    """Both are asked back, and once their work is gone nothing is kept for ever."""
    assert [(await states(cell, one))[one].split()[0] for one in "bc"] == ["ending", "ending"]
    for placed, claim_id in ((moving.first, "a"), (moving.lost, "b"), (moving.later, "c")):
        await cell.gone(placed.host, claim_id, placed.token, Why.RELEASED, {})
        await settle(cell)
    assert await kept(cell, raw, "abc") == ""
    assert [await claimed(raw, cell, host) for host in ("h1", "h2", "h3")] == [0, 0, 0]


async def later_is_given_back_too(cell: CellStore, raw: Any, moving: Moving) -> None:
    """Whoever looks at it next finds that it is not wanted."""
    await settle(cell)
    assert (await states(cell, "c"))["c"] == "ending released"
    await nothing_is_left(cell, raw, moving)


async def test_what_comes_up_after_the_release_of_the_other_one_is_given_back(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """Before anyone has looked at it again: that another has taken its place is a chore."""
    await moving.lost_wins()
    assert (await cell.read_claims("a"))["a"].next == "b"
    assert await moving.release_lost() is Outcome.ENDING
    await moving.later_comes_up()
    await later_is_given_back_too(cell, raw, moving)


async def test_what_has_won_already_is_given_back_when_the_release_reaches_the_other_one(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """Who releases has read that the id leads to `b`."""
    await moving.lost_wins()
    await moving.later_comes_up()
    assert (await cell.succeed("c")).outcome is Outcome.OK
    assert (await cell.read_claims("a"))["a"].next == "c"
    assert await moving.release_lost() is Outcome.ENDING
    await later_is_given_back_too(cell, raw, moving)


@pytest.mark.parametrize("looked_at_first", ["b", "c"])
async def test_the_release_of_a_target_that_has_come_up_means_the_whole_though_the_former_is_still_there(
    cell: CellStore, raw: Any, moving: Moving, looked_at_first: str
) -> None:
    """By its own id, before anyone has looked at it."""
    await moving.lost_comes_back()
    assert await moving.release_lost() is Outcome.ENDING
    await moving.later_comes_up()
    assert (await cell.succeed(looked_at_first)).outcome is Outcome.OK
    await settle(cell)
    assert await states(cell, "ac") == {"a": "ending released", "c": "ending released"}
    await nothing_is_left(cell, raw, moving)


async def test_an_owner_who_gives_up_his_id_gives_up_what_has_not_come_up_and_all_else(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """Why `a` has ended nobody knows, and that `b`, which his id leads to, was not the only one, neither."""
    await raw.hset(cell.keys.claim("a"), "next", "b")
    moving.epoch = await new_epoch(cell)
    await cell.attest("h1", moving.epoch, ended=[("a", moving.first.token)])
    await cell.attest("h3", moving.epoch)
    await moving.lost_comes_back(ClaimStatus.STARTING)
    assert (await states(cell, "a"))["a"] == "ended void"
    assert await moving.release_lost(whole=True) is Outcome.ENDING
    await moving.later_comes_up()
    await later_is_given_back_too(cell, raw, moving)


async def test_what_was_shelved_under_an_id_takes_all_else_along_when_it_is_not_wanted_any_more(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """The id leads to `b`, which its owner has shelved."""
    await moving.lost_wins()
    assert (await cell.shelve("h2", "b", moving.lost.token)).outcome is Outcome.ENDING
    assert (await cell.forget_shelved("b", "a")).outcome is Outcome.ENDING
    await moving.later_comes_up()
    await settle(cell)
    await nothing_is_left(cell, raw, moving)


async def test_an_id_is_forgotten_though_what_it_leads_to_has_ended_before_the_other_one_is_given_back(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """That `a` has ended is a chore, and another claim of that id is seen to first."""
    await moving.lost_wins()
    assert await moving.release_lost() is Outcome.ENDING
    await cell.gone("h2", "b", moving.lost.token, Why.RELEASED, {})
    await settle(cell, but="c")
    await moving.later_comes_up()
    await cell.gone("h1", "a", moving.first.token, Why.RELEASED, {})
    assert (await cell.succeed("c")).outcome is Outcome.OK
    await settle(cell)
    await cell.gone("h3", "c", moving.later.token, Why.RELEASED, {})
    await settle(cell)
    assert await states(cell, "abc") == {"a": "ended moved", "b": "ended released", "c": "ended released"}
    assert await kept(cell, raw, "abc") == ""


async def test_a_claim_between_is_forgotten_where_what_has_succeeded_it_is_given_back_by_its_chore(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """`c` was moved on to h1, as `d`, and its host has just stopped its work when `b` is released."""
    await moving.later_comes_up()
    assert (await cell.succeed("c")).outcome is Outcome.OK
    await cell.gone("h1", "a", moving.first.token, Why.RELEASED, {})
    last = await target(cell, "c", moving.later, "d", "h1")
    await arrive(cell, "d", last)
    await settle(cell)
    await moving.lost_comes_back()
    assert await moving.release_lost(whole=True) is Outcome.ENDING
    await cell.gone("h3", "c", moving.later.token, Why.RELEASED, {})
    assert (await cell.succeed("c")).outcome is Outcome.OK
    await settle(cell)
    for placed, claim_id in ((moving.lost, "b"), (last, "d")):
        await cell.gone(placed.host, claim_id, placed.token, Why.RELEASED, {})
        await settle(cell)
    assert await kept(cell, raw, "abcd") == ""


async def test_a_release_that_is_no_word_about_the_whole_leaves_the_other_one(
    cell: CellStore, raw: Any, moving: Moving
) -> None:
    """Of a target that has not come up: its move is called off."""
    await moving.lost_comes_back(ClaimStatus.STARTING)
    assert await moving.release_lost() is Outcome.ENDING
    await moving.later_comes_up()
    await settle(cell)
    assert await states(cell, "ac") == {"a": "ending moved", "c": "active"}
