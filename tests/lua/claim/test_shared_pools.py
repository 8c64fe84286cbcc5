"""claim.lua on shared pools: the same fit rule as on hosts, in the same script, for all hosts that use them."""

from typing import Any

import pytest

from redsched.model import Candidate, Inventory, SharedPool
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Member
from tests.support.builders.cells import claimed, fields_of, known, new_epoch, nothing_written, open_host
from tests.support.builders.counted_claims import SEAT, ask, causes, drawing, given, pool, seats


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with two hosts and a pool of 10 seats."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await pool(cell)
    return cell


async def test_an_amount_is_taken_from_the_pool_together_with_the_host(cell: CellStore, raw: Any) -> None:
    clock = await cell.tick()
    version = int(await raw.hget(cell.keys.pool("lic"), "version"))
    answer = await ask(cell, drawing("a", "h1", seats=4))
    assert answer.outcome is Outcome.OK
    assert (await seats(raw, cell), await claimed(raw, cell)) == (4, 1)
    host = await fields_of(raw, cell.keys.host("h1"))
    assert not [field for field in host if "pool:" in field]
    assert (await cell.claims.read("a"))["a"].slots == {"VCPU": 1, SEAT: 4}
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    assert [(one.kind, one.name, one.more) for one in entries] == [("host", "h1", 1), ("pool", "lic", 0)]
    assert (dict(entries[1].fields), entries[1].version) == ({"claimed.CUSTOM_SEAT": "4"}, version + 1)
    (thing,) = answer.objects
    assert (thing.kind, thing.name, thing.version, dict(thing.fields)) == (
        "pool",
        "lic",
        version + 1,
        entries[1].fields,
    )
    async with nothing_written(raw):
        again = await ask(cell, drawing("a", "h1", seats=4))
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(*answer.placed))


async def test_a_pool_is_filled_to_the_last_unit_whichever_host_draws(cell: CellStore, raw: Any) -> None:
    await given(cell, drawing("a", "h1", seats=7))
    async with nothing_written(raw):
        refused = await ask(cell, drawing("b", "h1", "h2", seats=4))
    assert causes(refused) == {"h1": SEAT, "h2": SEAT}
    await given(cell, drawing("b", "h2", seats=3))
    assert await seats(raw, cell) == 10


async def test_members_of_one_call_see_what_the_others_take(cell: CellStore, raw: Any) -> None:
    """All of them or none; the feed has one entry for the pool, with what is claimed of it after the call."""
    async with nothing_written(raw):
        refused = await ask(cell, *(drawing(one, "h1", "h2", seats=4) for one in "abc"))
    assert refused.outcome is Outcome.FULL
    seq = (await cell.tick()).seq
    await given(cell, *(drawing(one, "h1", "h2", seats=5) for one in "ab"))
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq and one.kind == "pool"]
    assert [dict(one.fields) for one in entries] == [{"claimed.CUSTOM_SEAT": "10"}]


async def test_another_pool_is_tried_where_the_first_has_no_room(cell: CellStore, raw: Any) -> None:
    """Candidates may name one host with other pools, and one candidate may use several."""
    await pool(cell, "small", CUSTOM_SEAT=1)
    await pool(cell, "disk", DISK_GB=100)
    slots = ("pool:small/CUSTOM_SEAT", SEAT)
    candidates = tuple(Candidate("h1", {"VCPU": 1, slot: 2, "pool:disk/DISK_GB": 60}) for slot in slots)
    answer = await ask(cell, Member("a", candidates))
    assert [(one.host, one.candidate) for one in answer.placed] == [("h1", 1)]
    assert (await seats(raw, cell), await seats(raw, cell, "small")) == (2, 0)
    assert {one.name for one in answer.objects} == {"lic", "disk"}
    refused = await ask(cell, Member("b", candidates))
    assert causes(refused) == {"h1": "pool:disk/DISK_GB"}


@pytest.mark.parametrize(("amount", "fits"), [(1, False), (2, True), (3, False), (6, True), (8, False)])
async def test_amounts_keep_to_min_max_and_step_of_the_pool(cell: CellStore, amount: int, fits: bool) -> None:
    inventory = Inventory(10, min_unit=2, max_unit=6, step_size=2)
    await cell.declared.put_pool(SharedPool("lic", {"CUSTOM_SEAT": inventory}))
    answer = await ask(cell, drawing("a", "h1", seats=amount))
    assert (answer.outcome is Outcome.OK) == fits


async def test_an_undeclared_pool_is_unknown_and_a_class_that_it_lacks_is_full(cell: CellStore, raw: Any) -> None:
    await raw.hset(cell.keys.pool("left"), mapping={"version": "3", "claimed.CUSTOM_SEAT": "2"})
    async with nothing_written(raw):
        unknown = await ask(cell, drawing("a", "h1", slot="pool:left/CUSTOM_SEAT"))
        lacking = await ask(cell, drawing("a", "h1", slot="pool:lic/CUSTOM_DONGLE"))
    assert (unknown.outcome, unknown.unknown) == (Outcome.UNKNOWN, ("pool:left",))
    assert causes(lacking) == {"h1": "pool:lic/CUSTOM_DONGLE"}


async def test_a_pool_waits_for_all_hosts(cell: CellStore) -> None:
    """A host that has not attested may hold amounts of it that the store has lost."""
    await ask(cell, drawing("a", "h1"))
    await cell.hosts.attest("h1", await new_epoch(cell))
    assert (await ask(cell, drawing("b", "h1"))).outcome is Outcome.SETTLING
    assert (await ask(cell, drawing("a", "h1"))).outcome is Outcome.ALREADY_DONE
    await open_host(cell, "h2")
    await given(cell, drawing("b", "h1"))


@pytest.mark.parametrize("value", ["nan", "-1", "2.5", "abc", "99999999999999999999"])
@pytest.mark.parametrize("kind", ["capacity", "claimed", "external", "min", "max", "step"])
async def test_a_damaged_pool_admits_nothing(cell: CellStore, raw: Any, kind: str, value: str) -> None:
    await raw.hset(cell.keys.pool("lic"), f"{kind}.CUSTOM_SEAT", value)
    async with nothing_written(raw):
        assert causes(await ask(cell, drawing("a", "h1"))) == {"h1": SEAT}


async def test_a_pool_that_shrank_gives_no_more(cell: CellStore, raw: Any) -> None:
    await given(cell, drawing("a", "h1", seats=6))
    await pool(cell, CUSTOM_SEAT=5)
    assert causes(await ask(cell, drawing("b", "h1"))) == {"h1": SEAT}
    assert await seats(raw, cell) == 6
