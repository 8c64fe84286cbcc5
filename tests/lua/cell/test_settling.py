"""Which hosts a cell waits for in a new epoch, and what it answers meanwhile about unknown ids."""

from typing import Any

from redsched.model import ClaimStatus
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import call_of, claim_on, fields_of, member, new_epoch, open_host, report_of
from tests.support.builders.placements import held_claim


async def unattested(raw: Any, cell: CellStore) -> int:
    return int((await fields_of(raw, cell.keys.meta))["unattested"])


async def test_a_wiped_cell_waits_by_time_through_further_epochs(cell: CellStore, raw: Any) -> None:
    """The epochs that follow a wipe know no more about the hosts than the first one did."""
    await open_host(cell)
    await raw.flushall()
    assert not (await cell.tick()).settled
    await new_epoch(cell)
    assert not (await cell.tick()).settled
    assert await unattested(raw, cell) == -1


async def test_a_host_that_had_only_reported_is_waited_for(cell: CellStore, raw: Any) -> None:
    """The host was known when the epoch was minted, though it never attested to the former one; it settles the cell."""
    await cell.hosts.report(report_of("h1"))
    epoch = await new_epoch(cell)
    assert await unattested(raw, cell) == 1
    await cell.hosts.attest("h1", epoch)
    assert (await cell.tick()).settled


async def test_a_host_that_came_later_is_not_waited_for(cell: CellStore, raw: Any) -> None:
    """Neither its attestation nor its removal or write-off counts as that of a host that was known before."""
    await open_host(cell, "old")
    await new_epoch(cell)
    for name in ("new-1", "new-2", "new-3"):
        await cell.hosts.report(report_of(name))
    await open_host(cell, "new-1")
    await cell.hosts.forget("new-2")
    await cell.hosts.write_off("new-3", force=True)
    assert not (await cell.tick()).settled
    await open_host(cell, "old")
    assert (await cell.tick()).settled


async def test_a_mix_of_ids_is_not_judged_before_all_hosts_are_heard(cell: CellStore, raw: Any) -> None:
    """One claim of a request is known again, the other is on a host that has not attested: SETTLING, not CONFLICT."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    one = await claim_on(cell, "a", "h1")
    await new_epoch(cell)
    await raw.delete(cell.keys.claim("b"))
    held = held_claim("a", one.token, ClaimStatus.ACTIVE, {"VCPU": 1}, digest="digest")
    await cell.hosts.attest("h1", "", held=[held])
    again = call_of(await cell.tick(), member("a", "h1"), member("b", "h2"), fresh=False)
    assert (await cell.claims.place(again)).outcome is Outcome.SETTLING
    await open_host(cell, "h2")
    again = call_of(await cell.tick(), member("a", "h1"), member("b", "h2"), fresh=False)
    assert (await cell.claims.place(again)).outcome is Outcome.CONFLICT
