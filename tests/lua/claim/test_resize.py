"""resize, resized: what a claim holds until its host has applied new amounts, what is refused, and repeated calls."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import AgentStamp, Amounts, Candidate, ClaimStatus, EndReason, HostReport, Inventory, SharedPool
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Member, Placed
from tests.support.builders.cells import (
    HOUR_S,
    IN_STATE,
    accepted_claim,
    claim_on,
    claimed,
    everything,
    fields_of,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)
from tests.support.builders.placements import arrive, held_claim, move_to, settle

SEATS = "pool:licences/CUSTOM_SEAT"
TAKEN_UP = ("starting", "active")


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host of 8 VCPU and 100 MEMORY_MB, and a claim `a` on it in most tests."""
    report = HostReport(
        "h1", {"VCPU": Inventory(8), "MEMORY_MB": Inventory(100, min_unit=10, step_size=10)}, lease_s=HOUR_S
    )
    await open_host(cell, report=report)
    return cell


async def a_claim(cell: CellStore, state: str = "active", **amounts: int) -> Placed:
    return await IN_STATE[state](cell, "a", "h1", **(amounts or {"VCPU": 2}))


async def held(cell: CellStore) -> tuple[Amounts, Amounts]:
    """Return what claim `a` holds, and what it is resized to."""
    claim = (await cell.claims.read(["a"]))["a"]
    return claim.slots, claim.resizing_to


async def test_what_no_host_has_accepted_has_its_new_amounts_at_once(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell, "claimed", VCPU=2)
    answer = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 1, "MEMORY_MB": 20})
    assert (answer.outcome, answer.facts[1]) == (Outcome.OK, "claimed")
    assert await held(cell) == ({"VCPU": 1, "MEMORY_MB": 20}, {})
    assert (await claimed(raw, cell), await claimed(raw, cell, slot="MEMORY_MB")) == (1, 20)
    (notification,) = await cell.hosts.inbox("h1")
    assert (notification.op, notification.token, notification.number) == ("claim", answer.facts[0], 2), (
        "it is to be accepted by the new token"
    )
    assert (await cell.claims.accept("h1", "a", placed.token, HOUR_S)).outcome is Outcome.STALE


@pytest.mark.parametrize("state", TAKEN_UP)
async def test_what_its_host_has_accepted_holds_the_larger_of_both_until_it_is_resized(
    cell: CellStore, raw: Any, state: str
) -> None:
    placed = await a_claim(cell, state, VCPU=4, MEMORY_MB=10)
    answer = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 3, "MEMORY_MB": 30})
    token = answer.facts[0]
    assert (answer.outcome, answer.facts[1]) == (Outcome.OK, state)
    assert await held(cell) == ({"VCPU": 4, "MEMORY_MB": 30}, {"VCPU": 3, "MEMORY_MB": 30})
    assert (await claimed(raw, cell), await claimed(raw, cell, slot="MEMORY_MB")) == (4, 30)
    (notification,) = await cell.hosts.inbox("h1")
    assert (notification.op, notification.token) == ("resize", token)

    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 3, "MEMORY_MB": 30})).outcome is Outcome.OK
    assert await held(cell) == ({"VCPU": 3, "MEMORY_MB": 30}, {})
    assert (await claimed(raw, cell), await claimed(raw, cell, slot="MEMORY_MB")) == (3, 30)
    assert await cell.hosts.inbox("h1") == []
    assert [one.op for one in await cell.feed.read("0-0", 100)][-2:] == ["resizing", "resized"]


async def test_a_host_that_could_not_resize_releases_what_was_added(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell, VCPU=2)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 8})).facts[0]
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 2})).outcome is Outcome.OK
    assert await held(cell) == ({"VCPU": 2}, {})
    assert await claimed(raw, cell) == 2
    assert (await cell.feed.read("0-0", 100))[-1].op == "resize-failed"


async def test_a_slot_that_is_named_no_more_is_released_whole(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell, VCPU=2, MEMORY_MB=20)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2})).facts[0]
    await cell.claims.resized("h1", "a", token, {"VCPU": 2})
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert {name for name in fields if name.startswith(("amount.", "resizing_to."))} == {"amount.VCPU"}
    assert await claimed(raw, cell, slot="MEMORY_MB") == 0


@pytest.mark.parametrize(
    ("amounts", "facts"),
    [
        ({"VCPU": 6}, ("VCPU", "", "5", "5", "0")),  # another claim holds 3
        ({"VCPU": 2, "MEMORY_MB": 110}, ("MEMORY_MB", "", "100", "100", "0")),
        ({"VCPU": 2, "MEMORY_MB": 15}, ("MEMORY_MB", "step_size", "10", "10", "20")),
        ({"VCPU": 2, "MEMORY_MB": 35}, ("MEMORY_MB", "step_size", "10", "30", "40")),
        ({"VCPU": 2, "DISK_GB": 1}, ("DISK_GB", "", "0", "0", "0")),  # there is no such slot
    ],
)
@pytest.mark.parametrize("state", ["claimed", "active"])
async def test_what_does_not_fit_is_refused_and_changes_nothing(
    cell: CellStore, raw: Any, state: str, amounts: dict[str, int], facts: tuple[str, ...]
) -> None:
    await claim_on(cell, "other", VCPU=3)
    placed = await a_claim(cell, state, VCPU=2, MEMORY_MB=20)
    async with nothing_written(raw):
        answer = await cell.claims.resize("h1", "a", placed.token, amounts)
    assert (answer.outcome, answer.facts) == (Outcome.FULL, facts)


async def test_it_may_take_all_that_is_free_and_what_it_holds(cell: CellStore) -> None:
    await claim_on(cell, "other", VCPU=3)
    placed = await a_claim(cell, VCPU=2)
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 5})).outcome is Outcome.OK


async def test_what_is_in_use_outside_is_not_free_for_it(cell: CellStore) -> None:
    placed = await a_claim(cell, VCPU=2)
    await cell.hosts.report(report_of("h1", {"VCPU": 4}, VCPU=8))
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 5})).outcome is Outcome.FULL
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).outcome is Outcome.OK


async def test_on_a_host_that_shrank_a_claim_can_shrink_too(cell: CellStore) -> None:
    """Even if what is left exceeds the host's capacity: by the fit rule alone nothing could ever be freed."""
    placed = await a_claim(cell, VCPU=8)
    await cell.hosts.report(report_of("h1", VCPU=4))
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 6})).outcome is Outcome.OK


@pytest.mark.parametrize("state", IN_STATE)
async def test_a_copy_learns_the_first_outcome_and_writes_nothing(cell: CellStore, raw: Any, state: str) -> None:
    placed = await a_claim(cell, state)
    first = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})
    async with nothing_written(raw):
        again = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})
    words = {"ending": Outcome.ENDING, "ended": Outcome.ENDED}
    assert again.outcome is words.get(state, Outcome.ALREADY_DONE)
    assert first.outcome is words.get(state, Outcome.OK)
    assert again.facts == first.facts


async def test_a_copy_gets_the_outcome_after_it_has_been_made_so(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    await cell.claims.resized("h1", "a", token, {"VCPU": 4})
    async with nothing_written(raw):
        again = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})
    assert (again.outcome, again.facts) == (Outcome.ALREADY_DONE, (token, "active"))
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 5})).outcome is Outcome.STALE


async def test_of_two_resizes_from_one_token_the_second_is_stale(cell: CellStore) -> None:
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 5})).outcome is Outcome.STALE
    second = await cell.claims.resize("h1", "a", token, {"VCPU": 1})
    assert second.outcome is Outcome.OK
    assert await held(cell) == ({"VCPU": 4}, {"VCPU": 1}), "what it was to have may be there already"
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 4})).outcome is Outcome.STALE
    assert len(await cell.hosts.inbox("h1")) == 1


async def test_a_host_says_its_word_once_and_never_more_than_is_held(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    async with nothing_written(raw):
        assert (await cell.claims.resized("h1", "a", token, {"VCPU": 5})).outcome is Outcome.CONFLICT
        assert (await cell.claims.resized("h1", "a", placed.token, {"VCPU": 4})).outcome is Outcome.STALE
        assert (await cell.claims.resized("h1", "b", token, {"VCPU": 4})).outcome is Outcome.UNKNOWN
    await cell.claims.resized("h1", "a", token, {"VCPU": 4})
    async with nothing_written(raw):
        assert (await cell.claims.resized("h1", "a", token, {"VCPU": 2})).outcome is Outcome.ALREADY_DONE


async def test_a_release_stops_a_resize_and_gives_all_back(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    assert (await cell.claims.release("h1", "a", token)).outcome is Outcome.ENDING
    assert [notification.op for notification in await cell.hosts.inbox("h1")] == ["end"]
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 4})).outcome is Outcome.ENDING
    assert (await cell.claims.resize("h1", "a", token, {"VCPU": 1})).outcome is Outcome.ENDING
    assert (await cell.claims.gone("h1", "a", token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await claimed(raw, cell) == 0


async def test_a_claim_that_is_being_moved_is_not_resized(cell: CellStore, raw: Any) -> None:
    """One placement will be released, and the other was chosen for these amounts. An earlier resize stays as it is."""
    await open_host(cell, "h2")
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 3})).facts[0]
    found = await move_to(cell, "a", replace(placed, token=token))
    async with nothing_written(raw):
        assert (await cell.claims.resize("h1", "a", token, {"VCPU": 4})).outcome is Outcome.MOVING
        assert (await cell.claims.resize("h2", "a", found.token, {"VCPU": 4})).outcome is Outcome.MOVING
        assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 3})).outcome is Outcome.ALREADY_DONE
    await arrive(cell, "a", found)
    assert (await cell.claims.resize("h1", "a", token, {"VCPU": 4})).outcome is Outcome.MOVING
    await settle(cell)
    assert (await cell.claims.resize("h2", "a", found.token, {"VCPU": 4})).outcome is Outcome.OK
    assert (await cell.claims.resize("h1", "a", token, {"VCPU": 4})).outcome is Outcome.ENDING


async def test_a_resize_that_was_under_way_before_a_move_is_done_all_the_same(cell: CellStore) -> None:
    await open_host(cell, "h2")
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    await move_to(cell, "a", replace(placed, token=token))
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 4})).outcome is Outcome.OK
    assert await held(cell) == ({"VCPU": 4}, {})


async def test_before_its_host_has_attested_nothing_is_resized(cell: CellStore, raw: Any) -> None:
    placed = await a_claim(cell)
    await new_epoch(cell)
    before = await everything(raw)
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).outcome is Outcome.NOT_ATTESTED
    assert (await cell.claims.resized("h1", "a", placed.token, {"VCPU": 4})).outcome is Outcome.NOT_ATTESTED
    assert await everything(raw) == before


async def seats(raw: Any, cell: CellStore) -> int:
    return int(await raw.hget(cell.keys.pool("licences"), "claimed.CUSTOM_SEAT") or 0)


async def on_seats(cell: CellStore, number: int) -> Placed:
    """Claim `a`, active, with seats of the shared pool."""
    clock = await cell.tick()
    member = Member("a", (Candidate("h1", {"VCPU": 2, SEATS: number}),))
    call = ClaimCall((member,), clock.epoch, clock.now_ms, clock.seq, "digest", True, HOUR_S * 1000)
    placed = (await cell.claims.place(call)).placed[0]
    await cell.claims.confirm("h1", "a", placed.token)
    return placed


async def test_shared_pools_are_drawn_on_and_released_likewise(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
    placed = await on_seats(cell, 2)
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2, SEATS: 6})).facts == (
        SEATS,
        "",
        "5",
        "5",
        "0",
    )
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2, SEATS: 5})).facts[0]
    assert await seats(raw, cell) == 5
    token = (await cell.claims.resize("h1", "a", token, {"VCPU": 2})).facts[0]
    assert await seats(raw, cell) == 5
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 2})).outcome is Outcome.OK
    assert await seats(raw, cell) == 0


async def test_what_counts_beyond_the_host_waits_until_the_cell_is_settled(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
    placed = await on_seats(cell, 2)
    await open_host(cell, "h2")
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2, SEATS: 3})).outcome is Outcome.SETTLING
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2, SEATS: 1})).outcome is Outcome.OK


async def test_a_pool_that_nobody_has_declared_has_no_room(cell: CellStore) -> None:
    placed = await a_claim(cell)
    answer = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2, SEATS: 1})
    assert (answer.outcome, answer.facts) == (Outcome.FULL, (SEATS, "", "0", "0", "0"))


async def test_the_journal_brings_a_half_done_resize_back(cell: CellStore, raw: Any) -> None:
    """By an attestation after a wipe: it restores the held and the new amounts, and the host continues the resize."""
    placed = await a_claim(cell)
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 4})).facts[0]
    await raw.flushall()
    said = await cell.hosts.report(report_of("h1", VCPU=8), AgentStamp("j", "n", 1))
    claim = held_claim("a", token, ClaimStatus.ACTIVE, {"VCPU": 4}, resizing_to={"VCPU": 4})
    await cell.hosts.attest("h1", said.epoch, AgentStamp("j", "n", 2), [claim])
    assert await held(cell) == ({"VCPU": 4}, {"VCPU": 4})
    assert (await cell.claims.resized("h1", "a", token, {"VCPU": 2})).outcome is Outcome.OK
    assert await claimed(raw, cell) == 2
    await accepted_claim(cell, "b", "h1", VCPU=6)
