"""shelve, forget_shelved: a claim that holds nothing, and is not forgotten until it is placed again or not wanted."""

from typing import Any

import pytest

from redsched.model import Why
from redsched.store import CellStore, Giving, Outcome, Placed
from tests.support.cells import (
    IN_STATE,
    active,
    claim_on,
    claimed,
    everything,
    make_due,
    new_epoch,
    nothing_written,
)
from tests.support.succession import arrive, held, kept, moved, settle, states, target

pytestmark = pytest.mark.usefixtures("three_hosts")


async def shelved(cell: CellStore, claim_id: str = "a", placed: Placed | None = None) -> Placed:
    """A claim that was active, and whose host has stopped its work."""
    placed = placed or await active(cell, claim_id)
    assert (await cell.shelve(placed.host, claim_id, placed.token)).outcome is Outcome.ENDING
    assert (await cell.gone(placed.host, claim_id, placed.token, Why.RELEASED, {})).outcome is Outcome.OK
    await settle(cell)
    return placed


@pytest.mark.parametrize(
    ("state", "outcome", "after"),
    [
        ("claimed", "OK", "ended shelved"),
        ("starting", "ENDING", "ending shelved"),
        ("active", "ENDING", "ending shelved"),
        ("ending", "GONE", "ending released"),
        ("ended", "GONE", "ended released"),
    ],
)
async def test_shelving_in_every_state(cell: CellStore, raw: Any, state: str, outcome: str, after: str) -> None:
    placed = await IN_STATE[state](cell, "a")
    before = await everything(raw)
    answer = await cell.shelve("h1", "a", placed.token)
    assert (answer.outcome, await states(cell, "a")) == (outcome, {"a": after})
    assert (await everything(raw) == before) == (outcome == "GONE")
    assert await cell.shelved_ids() == ([] if outcome == "GONE" else ["a"])
    async with nothing_written(raw):
        again = await cell.shelve("h1", "a", placed.token)
        assert again.outcome == ("SAME" if outcome == "OK" else outcome)
        assert (await cell.shelve("h1", "a", placed.token + "1")).outcome is Outcome.STALE
        assert (await cell.shelve("h1", "nothing", placed.token)).outcome is Outcome.UNKNOWN


async def test_what_is_shelved_is_not_forgotten_and_does_not_come_back_by_itself(cell: CellStore, raw: Any) -> None:
    placed = await shelved(cell)
    assert (await claimed(raw, cell), await kept(cell, raw, "a")) == (0, "a")
    answer = await cell.attest("h1", await new_epoch(cell), None, [held("a", placed)])
    assert (answer.drop, await states(cell, "a")) == (("a",), {"a": "ended shelved"})


async def test_what_is_said_to_fail_while_it_is_being_shelved_can_be_placed_again(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.shelve("h1", "a", placed.token)
    async with nothing_written(raw):
        assert (await cell.fail("h1", "a", placed.token, by_host=False)).outcome is Outcome.ENDING
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await arrive(cell, "b", await target(cell, "a", placed, why=Why.SHELVED))
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ended moved", "b": "active"}


async def test_it_is_placed_again_by_a_claim_that_succeeds_it(cell: CellStore, raw: Any) -> None:
    placed = await shelved(cell)
    found = await target(cell, "a", placed, why=Why.SHELVED)
    assert (await cell.succeed("b")).outcome is Outcome.EARLY
    assert await cell.shelved_ids() == ["a"]
    await arrive(cell, "b", found)
    await settle(cell)
    assert (await cell.shelved_ids(), await states(cell, "ab")) == ([], {"a": "ended moved", "b": "active"})
    assert ((await cell.read_claims("a"))["a"].next, await kept(cell, raw, "a")) == ("b", "a")
    again = await shelved(cell, "b", found)
    assert (await cell.shelved_ids(), await kept(cell, raw, "ab")) == (["b"], "ab")
    await arrive(cell, "c", await target(cell, "b", again, "c", "h3", Why.SHELVED))
    await settle(cell)
    assert (await cell.read_claims("a"))["a"].next == "c"
    assert (await cell.shelved_ids(), await kept(cell, raw, "ab")) == ([], "a")


async def test_it_stays_shelved_when_its_new_place_comes_to_nothing(cell: CellStore, raw: Any) -> None:
    placed = await shelved(cell)
    await target(cell, "a", placed, why=Why.SHELVED)
    await make_due(raw, cell, "b")
    await cell.expire([("b", "h2")])
    await settle(cell)
    assert (await cell.shelved_ids(), (await cell.read_claims("a"))["a"].next) == (["a"], "")
    assert await kept(cell, raw, "ab") == "a"
    await target(cell, "a", placed, "c", "h3", Why.SHELVED)


@pytest.mark.parametrize("has_place", [False, True])
async def test_one_that_is_not_wanted_any_more_is_forgotten(cell: CellStore, raw: Any, has_place: bool) -> None:
    placed = await shelved(cell)
    if has_place:
        await target(cell, "a", placed, why=Why.SHELVED)
    assert (await cell.forget_shelved("a")).outcome is Outcome.OK
    assert (await cell.forget_shelved("a")).outcome is Outcome.SAME
    assert (await cell.forget_shelved("nothing")).outcome is Outcome.UNKNOWN
    await settle(cell)
    assert (await cell.shelved_ids(), await kept(cell, raw, "ab")) == ([], "")
    assert await states(cell, "ab") == {"a": "ended released", **({"b": "ended released"} if has_place else {})}


async def test_one_that_is_being_shelved_can_be_given_up_too(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.shelve("h1", "a", placed.token)
    assert (await cell.forget_shelved("a")).outcome is Outcome.ENDING
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    assert (await states(cell, "a"), await kept(cell, raw, "a")) == ({"a": "ended released"}, "")


@pytest.mark.parametrize("end", ["its host fails it", "its host is removed", "its host is written off"])
async def test_what_is_being_shelved_ends_as_that_whatever_its_host_says(cell: CellStore, raw: Any, end: str) -> None:
    placed = await active(cell, "a")
    await cell.shelve("h1", "a", placed.token)
    if end == "its host fails it":
        assert (await cell.fail("h1", "a", placed.token, by_host=True)).outcome is Outcome.OK
    elif end == "its host is removed":
        await cell.forget("h1", force=True)
    else:
        await cell.write_off("h1")
        await cell.fail("h1", "a", placed.token, by_host=False)
    assert (await states(cell, "a"), await cell.shelved_ids()) == ({"a": "ended shelved"}, ["a"])
    assert await kept(cell, raw, "a") == "a"
    await target(cell, "a", placed, why=Why.SHELVED)


async def test_what_is_being_shelved_is_released_though_its_host_still_stops_it(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.shelve("h1", "a", placed.token)
    assert (await cell.release("h1", "a", placed.token)).outcome is Outcome.ENDING
    assert (await states(cell, "a"), await cell.shelved_ids()) == ({"a": "ending released"}, [])
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    assert (await states(cell, "a"), await kept(cell, raw, "a")) == ({"a": "ended released"}, "")


async def test_what_is_being_shelved_is_released_by_force(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.shelve("h1", "a", placed.token)
    assert (await cell.release("h1", "a", placed.token, Giving.FORCE)).outcome is Outcome.OK
    assert (await states(cell, "a"), await cell.shelved_ids()) == ({"a": "ended released"}, [])
    assert await kept(cell, raw, "a") == ""


async def test_shelved_local_work_that_its_host_runs_again_is_not_shelved(cell: CellStore) -> None:
    token = (await cell.claim_local("h1", "console", {"VCPU": 1})).facts[0]
    await cell.shelve("h1", "console", token)
    await cell.gone("h1", "console", token, Why.RELEASED, {})
    assert (await cell.claim_local("h1", "console", {"VCPU": 1}, token=token)).outcome is Outcome.OK
    assert await cell.shelved_ids() == []


async def test_an_owners_id_is_kept_while_its_claim_is_shelved(cell: CellStore, raw: Any) -> None:
    second = await moved(cell, "a", await active(cell, "a"))
    await shelved(cell, "b", second)
    assert await kept(cell, raw, "ab") == "ab"
    await cell.forget_shelved("b")
    await settle(cell)
    assert await kept(cell, raw, "ab") == ""


async def test_shelving_ends_a_move_that_is_under_way(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await target(cell, "a", placed)
    async with nothing_written(raw):
        assert (await cell.shelve("h2", "b", found.token)).outcome is Outcome.MOVING
    await cell.shelve("h1", "a", placed.token)
    await cell.gone("h1", "a", placed.token, Why.RELEASED, {})
    await settle(cell)
    assert await states(cell, "ab") == {"a": "ended shelved", "b": "ended released"}
    assert (await cell.shelved_ids(), (await cell.read_claims("a"))["a"].next) == (["a"], "")
    assert await claim_on(cell, "c", "h2", VCPU=8)


async def test_what_is_shelved_once_its_target_is_active_stays_shelved(cell: CellStore) -> None:
    """Nobody had come to give the first one back as moved. The target goes, and not what is shelved with it."""
    first = await active(cell, "a")
    second = await target(cell, "a", first)
    await arrive(cell, "b", second)
    assert (await cell.shelve("h1", "a", first.token)).outcome is Outcome.ENDING
    await settle(cell)
    assert (await cell.gone("h2", "b", second.token, Why.RELEASED, {})).outcome is Outcome.OK
    assert (await cell.gone("h1", "a", first.token, Why.RELEASED, {})).outcome is Outcome.OK
    await settle(cell)
    assert (await states(cell, "a"))["a"] == "ended shelved"
    assert (await cell.read_claims("a"))["a"].next == ""
