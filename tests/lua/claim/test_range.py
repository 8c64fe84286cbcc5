"""Sums stay in the range in which they are exact, up to 2^53-1: what would go beyond is refused and writes nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from redsched.model import ClaimStatus, Inventory, SharedPool
from redsched.model.validation import MAX_AMOUNT
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import (
    active,
    call_of,
    claim_on,
    fields_of,
    member,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)
from tests.support.builders.placements import held_claim

HALF = 5 * 10**15
"""Twice this is above the range."""
SEAT = "pool:lic/CUSTOM_SEAT"


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """Three hosts with as much VCPU as can be, and an ordinary one."""
    for host in ("h1", "h2", "h3"):
        await open_host(cell, host, VCPU=MAX_AMOUNT)
    await open_host(cell, "h4", VCPU=8)
    return cell


async def used(raw: Any, cell: CellStore) -> str | None:
    value: str | None = await raw.hget(cell.keys.quota("project"), "used.VCPU")
    return value


async def test_a_claim_beyond_the_range_of_what_its_project_uses_is_refused(cell: CellStore, raw: Any) -> None:
    """A quota need not be declared. Less is granted, up to the very last unit."""
    await claim_on(cell, "a", "h1", VCPU=HALF)
    async with nothing_written(raw):
        refused = await cell.claims.place(call_of(await cell.tick(), member("b", "h2", VCPU=HALF)))
        assert refused.outcome is Outcome.OVER_QUOTA
        [over] = refused.over
        assert (over.resource, over.limit, over.used, over.asked) == ("VCPU", MAX_AMOUNT, HALF, HALF)
    await claim_on(cell, "b", "h2", VCPU=MAX_AMOUNT - HALF)
    assert await used(raw, cell) == str(MAX_AMOUNT)
    async with nothing_written(raw):
        one_more = await cell.claims.place(call_of(await cell.tick(), member("c", "h3", VCPU=1)))
        assert one_more.outcome is Outcome.OVER_QUOTA


async def test_the_places_of_one_call_count_together_and_so_do_the_pools_of_one_claim(
    cell: CellStore, raw: Any
) -> None:
    async with nothing_written(raw):
        both = (member("a", "h1", VCPU=HALF), member("b", "h2", VCPU=HALF))
        assert (await cell.claims.place(call_of(await cell.tick(), *both))).outcome is Outcome.OVER_QUOTA


async def test_a_resize_beyond_it_is_refused(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "a", "h1", VCPU=HALF)
    one = await claim_on(cell, "b", "h2", VCPU=1)
    async with nothing_written(raw):
        answer = await cell.claims.resize("h2", "b", one.token, {"VCPU": HALF}, {"quota:project"})
        assert answer.outcome is Outcome.OVER_QUOTA
    assert await used(raw, cell) == str(HALF + 1)


async def test_local_work_beyond_it_is_refused(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "a", "h1", VCPU=HALF)
    async with nothing_written(raw):
        answer = await cell.claims.report_local("h2", "console", {"VCPU": HALF}, "project")
        assert (answer.outcome, answer.facts) == (Outcome.FULL, ("used.VCPU",))


@pytest.mark.parametrize("project", ["project", ""], ids=["quota", "pool"])
async def test_a_host_does_not_attest_to_what_takes_a_sum_beyond_it(cell: CellStore, raw: Any, project: str) -> None:
    """That of a shared pool, or of what a project uses. The host stays closed, and the status names it."""
    await cell.declared.put_pool(SharedPool("lic", {"CUSTOM_SEAT": Inventory(MAX_AMOUNT)}))
    amounts = {"VCPU": HALF} if project else {"VCPU": 1, SEAT: HALF}
    epoch = await new_epoch(cell)
    first = held_claim("a", f"{epoch}.1", ClaimStatus.ACTIVE, amounts, project)
    assert (await cell.hosts.attest("h1", "", held=[first])).outcome is Outcome.OK
    second = held_claim("b", f"{epoch}.2", ClaimStatus.ACTIVE, amounts, project)
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h2", "", held=[second])).outcome is Outcome.CONFLICT
    kept = await fields_of(raw, cell.keys.quota("project") if project else cell.keys.pool("lic"))
    assert kept["used.VCPU" if project else "claimed.CUSTOM_SEAT"] == str(HALF)


async def exported(raw: Any, cell: CellStore, claim: str) -> Mapping[str, str]:
    return await fields_of(raw, cell.keys.claim(claim))


@pytest.mark.parametrize("same_host", [True, False], ids=["host", "quota"])
async def test_an_import_beyond_it_restores_nothing(cell: CellStore, raw: Any, same_host: bool) -> None:
    """Of a file that was edited: what several claims add counts together, on a host and in a quota."""
    await active(cell, "a", "h1", VCPU=HALF)
    await active(cell, "b", "h2", VCPU=1)
    claims = {one: dict(await exported(raw, cell, one)) for one in "ab"}
    claims["b"] |= {"amount.VCPU": str(HALF)} | ({"host": "h1", "project": ""} if same_host else {})
    await raw.flushall()
    await cell.init()
    for host in ("h1", "h2"):
        await cell.hosts.report(report_of(host, VCPU=MAX_AMOUNT))
    async with nothing_written(raw):
        assert (await cell.repair.restore(claims)).outcome is Outcome.CONFLICT
    assert (await cell.repair.restore({"a": claims["a"]})).outcome is Outcome.OK


async def test_a_repair_writes_no_sum_beyond_it(cell: CellStore, raw: Any) -> None:
    """Of claims that an earlier release has let in: it would find the same again each time."""
    await claim_on(cell, "a", "h1", VCPU=HALF)
    await claim_on(cell, "b", "h2", VCPU=1)
    await raw.hset(cell.keys.claim("b"), "amount.VCPU", HALF)
    key = cell.keys.quota("project")
    await raw.hset(key, "used.VCPU", MAX_AMOUNT)
    seq = (await fields_of(raw, key))["seq"]
    async with nothing_written(raw):
        assert (await cell.repair.counts("quota:project", seq, "wrong", ["a", "b"])).outcome is Outcome.CONFLICT
