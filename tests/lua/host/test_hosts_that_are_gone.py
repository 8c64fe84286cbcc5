"""Claims whose host was removed or written off, and hosts that are over capacity by their own report."""

from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason, HostReport, Inventory
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import (
    IN_STATE,
    active,
    claim_on,
    claimed,
    ended,
    fields_of,
    lapse,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)
from tests.support.builders.placements import held_claim, states


async def test_a_release_is_repeated_after_its_host_was_removed(cell: CellStore, raw: Any) -> None:
    """There is no host left to ask, and nothing to wait for: the first outcome stands."""
    await open_host(cell)
    await open_host(cell, "h2")
    one, two = await ended(cell, "a"), await claim_on(cell, "b", "h2")
    await lapse(raw, cell)
    await cell.hosts.forget("h1")
    await cell.hosts.forget("h2", force=True)
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "a", one.token)).outcome is Outcome.ALREADY_DONE
        assert (await cell.claims.confirm("h2", "b", two.token)).outcome is Outcome.ENDED
        assert (await cell.claims.release("h2", "b")).outcome is Outcome.ALREADY_DONE
    assert (await cell.claims.read(["b"]))["b"].end_reason is EndReason.VOID


@pytest.mark.parametrize("state", ["claimed", "starting", "active"])
async def test_a_claim_whose_hosts_key_was_lost_can_be_released_and_leaves_no_host(
    cell: CellStore, raw: Any, state: str
) -> None:
    """A hash with nothing but a version would count as a host, and nothing left there could be repaired."""
    await open_host(cell)
    placed = await IN_STATE[state](cell)
    await raw.delete(cell.keys.host("h1"))
    await raw.zrem(cell.keys.hosts, "h1")
    assert (await cell.claims.release("h1", "a", placed.token)).outcome is Outcome.ENDING
    assert await states(cell, "a") == {"h1": "ending released"}
    assert not await raw.exists(cell.keys.host("h1"))
    assert (await cell.repair.removed_host("h1", "audit", operator=True, suspects=["a"])).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}
    assert [key async for key in raw.scan_iter() if key.endswith(":h1")] == [cell.keys.removed("h1")]


async def test_a_host_of_which_only_a_version_is_left_is_whole_again_with_its_next_report(
    cell: CellStore, raw: Any
) -> None:
    """An earlier release of redsched wrote such a hash."""
    await raw.hset(cell.keys.host("h1"), "version", 7)
    await open_host(cell)
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert (fields["status"], fields["since"]) == ("enabled", (await cell.tick()).epoch)
    await claim_on(cell, "a", "h1")


@pytest.mark.parametrize("later", [False, True])
async def test_a_host_that_was_removed_by_force_and_comes_back_is_to_stop_what_it_had(
    cell: CellStore, raw: Any, later: bool
) -> None:
    """Also when the store has forgotten its claims, and in a later epoch; it keeps what is placed on it after that."""
    await open_host(cell)
    one = await active(cell)
    await cell.hosts.forget("h1", force=True)
    await raw.delete(cell.keys.claim("a"))
    if later:
        await new_epoch(cell)
    await cell.hosts.report(report_of())
    old = held_claim("a", one.token, ClaimStatus.ACTIVE, {"VCPU": 1}, digest="digest")
    assert (await cell.hosts.attest("h1", "", held=[old])).drop == ()
    assert await states(cell, "a") == {"h1": "ending void"}
    two = await active(cell, "b")
    await raw.delete(cell.keys.claim("b"))
    await new_epoch(cell)
    new = held_claim("b", two.token, ClaimStatus.ACTIVE, {"VCPU": 1}, digest="digest")
    assert (await cell.hosts.attest("h1", "", held=[old, new])).drop == ()
    assert (await states(cell, "a"), await states(cell, "b")) == ({"h1": "ending void"}, {"h1": "active"})
    assert [(notification.op, notification.claim_id) for notification in await cell.hosts.inbox("h1")] == [("end", "a")]


async def test_a_host_whose_key_was_lost_and_not_removed_brings_its_claims_back(cell: CellStore, raw: Any) -> None:
    """A failover may have lost all of its reports: the cell has no host to wait for, and settles."""
    await open_host(cell)
    one = await active(cell)
    await raw.delete(*[key async for key in raw.scan_iter() if key.endswith(":h1")], cell.keys.claim("a"))
    await raw.zrem(cell.keys.hosts, "h1")
    await new_epoch(cell)
    assert (await cell.tick()).settled
    await cell.hosts.report(report_of())
    held = held_claim("a", one.token, ClaimStatus.ACTIVE, {"VCPU": 1}, digest="digest")
    assert (await cell.hosts.attest("h1", "", held=[held])).drop == ()
    assert await cell.hosts.claim_ids("h1") == {"a"}


@pytest.mark.parametrize("state", ["claimed", "starting", "active", "ending"])
async def test_a_claim_on_a_written_off_host_is_released_at_once(cell: CellStore, raw: Any, state: str) -> None:
    """The host will not report: an accepted placement would otherwise be ending for ever."""
    await open_host(cell)
    await IN_STATE[state](cell)
    await cell.hosts.write_off("h1", force=True)
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.OK
    assert await claimed(raw, cell) == 0


async def test_a_damaged_lease_is_one_that_has_lapsed(cell: CellStore, raw: Any) -> None:
    """Otherwise the sweep that marks hosts down would retry it for ever, or fail."""
    for damage in ("abc", "nan", "-1"):
        await open_host(cell)
        await raw.hset(cell.keys.host("h1"), "alive_until_ms", damage)
        assert await cell.hosts.mark_down(["h1"]) == 1


async def test_a_host_that_shrinks_says_so(cell: CellStore, raw: Any) -> None:
    """The mark is set by its report, deleted by the next one with enough capacity, and never set by a claim."""
    await open_host(cell, VCPU=8)
    await active(cell, VCPU=8)
    assert "over.VCPU" not in await fields_of(raw, cell.keys.host("h1"))
    await cell.hosts.report(report_of("h1", VCPU=4))
    assert (await fields_of(raw, cell.keys.host("h1")))["over.VCPU"] == "1"
    await cell.hosts.report(report_of("h1", VCPU=8))
    assert "over.VCPU" not in await fields_of(raw, cell.keys.host("h1"))
    await cell.hosts.report(HostReport("h1", {"MEMORY_MB": Inventory(1)}, lease_s=3600))
    assert (await fields_of(raw, cell.keys.host("h1")))["over.VCPU"] == "1"


async def test_a_host_that_attests_more_than_it_has_says_so(cell: CellStore, raw: Any) -> None:
    """Restored claims are facts, and are accepted."""
    await open_host(cell, VCPU=8)
    one = await active(cell, VCPU=8)
    await new_epoch(cell)
    await cell.hosts.report(report_of("h1", VCPU=2))
    await cell.hosts.attest(
        "h1", "", held=[held_claim("a", one.token, ClaimStatus.ACTIVE, {"VCPU": 8}, digest="digest")]
    )
    assert await claimed(raw, cell) == 8
    assert (await fields_of(raw, cell.keys.host("h1")))["over.VCPU"] == "1"


async def test_a_host_that_came_back_is_asked_again(cell: CellStore, raw: Any) -> None:
    """Written off and attested since, in the same epoch: its work runs, and is not freed without the host."""
    await open_host(cell)
    one = await active(cell)
    await cell.hosts.write_off("h1", force=True)
    await cell.hosts.attest(
        "h1", "", held=[held_claim("a", one.token, ClaimStatus.ACTIVE, {"VCPU": 1}, digest="digest")]
    )
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.ENDING
    assert await claimed(raw, cell) == 1
