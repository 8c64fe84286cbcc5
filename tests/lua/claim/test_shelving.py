"""Shelving: a claim that holds nothing is remembered until it is placed again or released."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.model import EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, Replacement
from tests.support.builders.cells import (
    IN_STATE,
    active,
    claimed,
    everything,
    fields_of,
    make_due,
    new_epoch,
    nothing_written,
)
from tests.support.builders.placements import (
    arrive,
    ask_again,
    ended,
    held,
    is_kept,
    let_settle,
    move_to,
    moved,
    roll_back,
    settle,
    shelved,
    snapshot,
    states,
    unshelved,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def is_shelved(cell: CellStore, raw: Any) -> bool:
    """Return whether claim `a` has ended as shelved, and is kept in the store and in the set of shelved claims."""
    listed = list(await cell.claims.shelved_ids()) == ["a"]
    return listed and await states(cell, "a") == {"": "ended shelved"} and await is_kept(cell, raw, "a")


@pytest.mark.parametrize(
    ("state", "outcome", "after"),
    [
        ("claimed", "OK", "ended shelved"),
        ("starting", "ENDING", "ending shelved"),
        ("active", "ENDING", "ending shelved"),
        ("ending", "ENDED", "ending released"),
        ("ended", "ENDED", "ended released"),
    ],
)
async def test_shelving_in_every_state(cell: CellStore, raw: Any, state: str, outcome: str, after: str) -> None:
    placed = await IN_STATE[state](cell, "a")
    before = await everything(raw)
    answer = await cell.claims.shelve("h1", "a", placed.token)
    assert (answer.outcome, set((await states(cell, "a")).values())) == (outcome, {after})
    assert (await everything(raw) == before) == (outcome == "ENDED")
    assert list(await cell.claims.shelved_ids()) == ([] if outcome == "ENDED" else ["a"])
    async with nothing_written(raw):
        again = await cell.claims.shelve("h1", "a", placed.token)
        assert again.outcome == ("ALREADY_DONE" if outcome == "OK" else outcome)
        assert (await cell.claims.shelve("h1", "nothing", placed.token)).outcome is Outcome.UNKNOWN
        if after.startswith("ending"):
            assert (await cell.claims.shelve("h1", "a", placed.token + "1")).outcome is Outcome.STALE


async def test_it_holds_nothing_and_is_not_forgotten(cell: CellStore, raw: Any) -> None:
    await shelved(cell, "a", await active(cell, "a"))
    assert await is_shelved(cell, raw)
    assert (await claimed(raw, cell), await cell.hosts.claim_ids("h1")) == (0, set())
    assert not await raw.exists(cell.keys.reconcile)


async def test_its_host_is_to_stop_what_it_brings_back_of_it(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await shelved(cell, "a", placed)
    await cell.hosts.attest("h1", await new_epoch(cell), held=[held("a", placed)])
    assert await states(cell, "a") == {"h1": "ending shelved"}
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await is_shelved(cell, raw)


async def test_it_is_placed_again_as_a_new_line_of_its_own(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    closed = await shelved(cell, "a", first)
    second = await move_to(cell, "a", first, end_reason=EndReason.SHELVED)
    assert (list(await cell.claims.shelved_ids()), await states(cell, "a")) == ([], {"h2": "claimed"})
    async with nothing_written(raw):
        again = await ask_again(cell, "a", "h3", Replacement("h1", first.token, EndReason.SHELVED))
    assert (again.outcome, again.placed[0].token) == (Outcome.ALREADY_DONE, second.token)
    await arrive(cell, "a", second)
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.host, claim.placements[0].root, claim.closed) == ("h2", second.token, closed)
    await shelved(cell, "a", second)
    assert await is_shelved(cell, raw)
    await unshelved(cell, "a", second, "h3")
    assert await states(cell, "a") == {"h3": "active"}


@pytest.mark.parametrize("end", ["expire", "fail", "fail by host"])
async def test_it_stays_shelved_when_its_new_place_comes_to_nothing(cell: CellStore, raw: Any, end: str) -> None:
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    second = await move_to(cell, "a", first, end_reason=EndReason.SHELVED)
    if end == "expire":
        await make_due(raw, cell, "a")
        await cell.claims.reconcile(["a"])
    else:
        await cell.claims.fail("h2", "a", second.token, by_host=end == "fail by host")
    assert await is_shelved(cell, raw)
    third = await move_to(cell, "a", second, "h3", EndReason.SHELVED)
    await arrive(cell, "a", third)
    await cell.claims.fail("h3", "a", third.token, by_host=True)
    assert await states(cell, "a") == {"": "ended failed"}, "it had come up"


async def test_it_can_only_be_placed_again_by_its_last_token(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    async with nothing_written(raw):
        answer = await ask_again(cell, "a", "h2", Replacement("h1", f"{first.token}1", EndReason.SHELVED))
        assert answer.outcome is Outcome.STALE
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", first.token, EndReason.MOVED))
        ).outcome is Outcome.ENDED
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", first.token, EndReason.FAILED))
        ).outcome is Outcome.ENDED


@pytest.mark.parametrize("state", ["claimed", "starting", "active", "ending", "ended"])
async def test_what_is_not_shelved_is_not_unshelved(cell: CellStore, raw: Any, state: str) -> None:
    placed = await IN_STATE[state](cell, "a")
    async with nothing_written(raw):
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", placed.token, EndReason.SHELVED))
        ).outcome is Outcome.ENDED


@pytest.mark.parametrize("has_place", [False, True])
async def test_one_that_is_not_wanted_any_more_is_forgotten_in_its_time(
    cell: CellStore, raw: Any, has_place: bool
) -> None:
    placed = await active(cell, "a")
    await shelved(cell, "a", placed)
    if has_place:
        await move_to(cell, "a", placed, end_reason=EndReason.SHELVED)
    assert (await cell.claims.release("", "a")).outcome is Outcome.OK
    assert (await states(cell, "a"), list(await cell.claims.shelved_ids())) == ({"": "ended released"}, [])
    assert not await is_kept(cell, raw, "a")
    async with nothing_written(raw):
        assert (await cell.claims.release("", "a")).outcome is Outcome.ALREADY_DONE
        assert (await cell.claims.shelve("", "a", "")).outcome is Outcome.ENDED


@pytest.mark.parametrize("how", [ReleaseMode.ASK, ReleaseMode.FORCE])
async def test_what_is_being_shelved_is_released_though_its_host_still_stops_it(
    cell: CellStore, raw: Any, how: ReleaseMode
) -> None:
    placed = await active(cell, "a")
    await cell.claims.shelve("h1", "a", placed.token)
    outcome = (await cell.claims.release("h1", "a", placed.token, how)).outcome
    assert (outcome, list(await cell.claims.shelved_ids())) == (
        Outcome.ENDING if how is ReleaseMode.ASK else Outcome.OK,
        [],
    )
    if how is ReleaseMode.ASK:
        assert await states(cell, "a") == {"h1": "ending released"}
        await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await states(cell, "a") == {"": "ended released"}
    assert not await is_kept(cell, raw, "a")


@pytest.mark.parametrize("end", ["its host fails it", "its host is removed", "its host is written off"])
async def test_what_is_being_shelved_ends_as_that_whatever_its_host_says(cell: CellStore, raw: Any, end: str) -> None:
    placed = await active(cell, "a")
    await cell.claims.shelve("h1", "a", placed.token)
    if end == "its host fails it":
        assert (await cell.claims.fail("h1", "a", placed.token, by_host=True, retry=True)).outcome is Outcome.OK
    elif end == "its host is removed":
        await cell.hosts.forget("h1", force=True)
    else:
        await cell.hosts.write_off("h1", force=True)
        await cell.claims.reconcile(["a"])
    assert await is_shelved(cell, raw)
    await move_to(cell, "a", placed, end_reason=EndReason.SHELVED)


@pytest.mark.parametrize("comes", ["claimed", "starting", "active"])
async def test_shelving_ends_a_move_that_is_under_way(cell: CellStore, raw: Any, comes: str) -> None:
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    if comes == "starting":
        await cell.claims.accept("h2", "a", second.token, 60)
    elif comes == "active":
        await arrive(cell, "a", second)
    assert (await cell.claims.shelve("h1", "a", "")).outcome is Outcome.ENDING
    expected = {"h1": "ending shelved"} | ({} if comes == "claimed" else {"h2": "ending shelved"})
    assert await states(cell, "a") == expected
    await cell.claims.gone("h1", "a", first.token, EndReason.RELEASED, {})
    await cell.claims.gone("h2", "a", second.token, EndReason.RELEASED, {})
    assert await is_shelved(cell, raw)
    last = (await cell.claims.read("a"))["a"].token
    assert (await ask_again(cell, "a", "h3", Replacement("", last, EndReason.SHELVED))).outcome is Outcome.OK


async def test_a_pending_claim_can_be_shelved(cell: CellStore, raw: Any) -> None:
    """Also while its last host still stops the failed placement."""
    placed = await active(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=False, retry=True)
    assert await states(cell, "a") == {"h1": "ending failed", "": "pending"}
    assert (await cell.claims.shelve("h1", "a", "")).outcome is Outcome.ENDING
    assert (
        await ask_again(cell, "a", "h2", Replacement("h1", placed.token, EndReason.FAILED))
    ).outcome is Outcome.STALE
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await is_shelved(cell, raw)


async def test_shelved_local_work_that_its_host_runs_again_is_not_shelved(cell: CellStore) -> None:
    token = (await cell.claims.report_local("h1", "console", {"VCPU": 1})).facts[0]
    await cell.claims.shelve("h1", "console", token)
    await cell.claims.gone("h1", "console", token, EndReason.RELEASED, {})
    assert (await cell.claims.report_local("h1", "console", {"VCPU": 1}, token=token)).outcome is Outcome.OK
    assert (list(await cell.claims.shelved_ids()), await states(cell, "console")) == ([], {"h1": "active"})


# After a loss of data


async def test_what_was_unshelved_comes_back_with_its_group(cell: CellStore, raw: Any) -> None:
    """The store has kept only a few fields of an ended claim."""
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    before = await snapshot(raw)
    second = await unshelved(cell, "a", first)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h2", epoch, held=[held("a", second, group="web", counted={"zone": "default"})])
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.state, claim.server_group, claim.placements[0].counted) == ("active", "web", {"zone": "default"})
    assert list(await cell.claims.shelved_ids()) == []


async def test_shelving_again_what_the_store_takes_for_shelved_reaches_its_host(cell: CellStore, raw: Any) -> None:
    """The store has lost that it was unshelved."""
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    before = await snapshot(raw)
    second = await unshelved(cell, "a", first)
    epoch = await roll_back(cell, raw, before)
    assert (await cell.claims.shelve("", "a", "")).outcome is Outcome.OK
    await cell.hosts.attest("h2", epoch, held=[held("a", second)])
    assert await states(cell, "a") == {"h2": "ending shelved"}
    await cell.claims.gone("h2", "a", second.token, EndReason.RELEASED, {})
    assert await is_shelved(cell, raw)


async def test_it_is_not_placed_again_before_all_hosts_have_been_heard(cell: CellStore, raw: Any) -> None:
    """One of them may run it already, after an unshelving that the store has lost."""
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    before = await snapshot(raw)
    second = await unshelved(cell, "a", first)
    epoch = await roll_back(cell, raw, before)
    for host in ("h1", "h3"):
        await cell.hosts.attest(host, epoch)
    async with nothing_written(raw):
        answer = await ask_again(cell, "a", "h3", Replacement("h1", first.token, EndReason.SHELVED))
    assert answer.outcome is Outcome.SETTLING
    await cell.hosts.attest("h2", epoch, held=[held("a", second)])
    assert (
        await ask_again(cell, "a", "h3", Replacement("h1", first.token, EndReason.SHELVED))
    ).outcome is Outcome.ENDED
    assert await states(cell, "a") == {"h2": "active"}


async def test_of_two_unshelvings_the_later_one_is_left(cell: CellStore, raw: Any) -> None:
    """The cell was settled by time, without the host that has the first."""
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    before = await snapshot(raw)
    second = await unshelved(cell, "a", first)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, ended=[ended("a", first.token)])
    await cell.hosts.attest("h3", epoch)
    await let_settle(cell, raw)
    third = await unshelved(cell, "a", first, "h3")
    await cell.hosts.attest("h2", epoch, held=[held("a", second)])
    await settle(cell)
    assert await states(cell, "a") == {"h2": "ending moved", "h3": "active"}
    await cell.claims.gone("h2", "a", second.token, EndReason.RELEASED, {})
    assert (await fields_of(raw, cell.keys.claim("a")))["token"] == third.token


async def test_a_claim_that_has_moved_is_shelved_whole(cell: CellStore, raw: Any) -> None:
    second = await moved(cell, "a", await active(cell, "a"))
    await shelved(cell, "a", second)
    assert await is_shelved(cell, raw)
    await unshelved(cell, "a", second, "h3")
