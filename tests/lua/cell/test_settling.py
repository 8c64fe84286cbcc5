"""Which hosts a cell waits for in a new epoch, and what it answers meanwhile about unknown ids."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from redsched.model import ClaimStatus
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import (
    call_of,
    claim_on,
    declared_keys_cell,
    fields_of,
    member,
    new_epoch,
    open_host,
    report_of,
)
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
    await cell.hosts.forget("new-2", force=True)
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


@asynccontextmanager
async def wiped(url: str, raw: Any, age_ms: int) -> AsyncIterator[tuple[CellStore, str]]:
    """Yield a cell whose store was wiped so long ago, and its epoch."""
    async with declared_keys_cell(url) as former:
        clock = await former.tick()
        epoch = f"{clock.now_ms - age_ms}-{clock.epoch.partition('-')[2]}"
        await raw.hset(former.keys.meta, mapping={"epoch": epoch, "began_ms": epoch.partition("-")[0]})
    async with declared_keys_cell(url) as cell:  # has not seen the later epoch
        yield cell, epoch


@pytest.mark.parametrize(("age_ms", "settles"), [(0, False), (5001, True)])
async def test_after_a_wipe_a_scheduler_that_misses_no_host_settles_the_cell(
    clean_store: str, raw: Any, age_ms: int, settles: bool
) -> None:
    """Not before others have had the time to report what they miss."""
    async with wiped(clean_store, raw, age_ms) as (cell, epoch):
        answer = await cell.report_missing(epoch, "one", 0)
        assert (answer.outcome, answer.facts) == (Outcome.OK, (str(int(settles)),))
        assert (await cell.tick()).settled is settles


async def test_after_a_wipe_every_scheduler_that_remembers_hosts_has_to_find_them(clean_store: str, raw: Any) -> None:
    async with wiped(clean_store, raw, 6000) as (cell, epoch):
        await cell.report_missing(epoch, "one", 2)
        await cell.report_missing(epoch, "two", 0)
        clock = await cell.tick()
        assert (clock.settled, clock.missing, clock.knows_hosts) == (False, 2, False)
        await cell.report_missing(epoch, "one", 0)
        assert (await cell.tick()).settled
        assert (await cell.report_missing(epoch, "two", 1)).outcome is Outcome.ALREADY_DONE
        assert (await cell.tick()).settled


async def test_what_was_missing_in_another_epoch_counts_no_longer(clean_store: str, raw: Any) -> None:
    async with wiped(clean_store, raw, 6000) as (cell, epoch):
        await cell.report_missing(epoch, "one", 2)
        now = await new_epoch(cell)
        assert (await cell.report_missing(epoch, "two", 0)).outcome is Outcome.WRONG_EPOCH
        await cell.report_missing(now, "two", 0)
        assert (await cell.tick()).missing == 0
        assert await fields_of(raw, cell.keys.missing) == {"epoch.two": now, "missing.two": "0"}


async def test_schedulers_cannot_settle_a_cell_that_knows_its_hosts(cell: CellStore) -> None:
    await open_host(cell)
    epoch = await new_epoch(cell)
    assert (await cell.report_missing(epoch, "one", 0)).outcome is Outcome.ALREADY_DONE
    clock = await cell.tick()
    assert (clock.settled, clock.missing, clock.knows_hosts) == (False, 1, True)
