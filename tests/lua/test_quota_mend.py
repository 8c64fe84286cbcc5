"""Looking at a ledger at one instant, and holding its sums, list and deadlines to its entries; and telling of it."""

from typing import Any

from redsched.store import CellStore, Ledgers, Outcome
from redsched.store.keys import LedgerKeys
from tests.lua.test_quota_ledger import counted, ledgers, reserve, taking, used  # noqa: F401 - two of these are fixtures
from tests.support.cells import nothing_written

KEYS = LedgerKeys("web")


async def test_a_sound_ledger_is_left_as_it_is(counted: Ledgers, raw: Any) -> None:  # noqa: F811
    await reserve(counted, "one", taking("a", 4))
    await counted.hold("web", "one", [taking("a", 3)])
    await reserve(counted, "two", taking("b", 2))
    async with nothing_written(raw):
        for write in (False, True):
            answer = await counted.mend("web", (), write)
            assert (answer.outcome, answer.facts) == (Outcome.OK, ())


async def test_what_differs_is_told_and_put_right_where_that_is_wanted(counted: Ledgers, raw: Any) -> None:  # noqa: F811
    """Ids that the ledger has come to list since are asked for."""
    await reserve(counted, "one", taking("a", 4), taking("b", 1))
    await raw.hset(KEYS.ledger, "used.VCPU", "nine")
    await raw.srem(KEYS.claims, "a")
    await raw.zadd(KEYS.deadlines, {"gone": 1})
    async with nothing_written(raw):
        answer = await counted.mend("web", (), write=False)
    faults = {tuple(answer.facts[at : at + 4]) for at in range(0, len(answer.facts), 4)}
    assert faults == {
        ("listed", "a", "no", "yes"),
        ("deadline", "gone", "a lease", "none"),
        ("used", "VCPU", "nine", "5"),
    }
    await counted.mend("web", (), write=True)
    assert await used(counted) == {"VCPU": 5, "claims": 2}
    assert (await counted.mend("web", (), write=False)).facts == ()
    assert await counted.ids("web") == {"a", "b"}


async def test_a_ledger_that_cannot_be_relied_on_is_left_to_its_count(
    counted: Ledgers,  # noqa: F811
    raw: Any,
) -> None:
    await raw.hset(KEYS.ledger, mapping={"used.VCPU": "9", "counted_in": "1-other"})
    async with nothing_written(raw):
        assert (await counted.mend("web", (), write=True)).outcome is Outcome.SETTLING
    await counted.drop("web")
    assert (await counted.mend("web", (), write=True)).outcome is Outcome.UNKNOWN
    assert await raw.exists(*KEYS.head) == 0


async def test_all_ids_are_found_by_their_keys_and_can_be_dropped(counted: Ledgers, raw: Any) -> None:  # noqa: F811
    """Those that no list has, and a ledger that is not there, too."""
    await reserve(counted, "one", taking("a"))
    await raw.hset(LedgerKeys("old").claim("x"), "state", "held")
    assert {one: set(ids) for one, ids in (await counted.all_ids()).items()} == {"web": {"a"}, "old": {"x"}}
    await counted.drop("old", {"x"})
    assert {one: set(ids) for one, ids in (await counted.all_ids()).items()} == {"web": {"a"}}
    entries = await counted.entries("web", ["a", "nix"])
    assert entries.keys() == {"a"}
    assert (entries["a"].state, entries["a"].amounts) == ("reserved", {"VCPU": 2, "claims": 1})
    assert entries["a"].until_ms == await raw.zscore(KEYS.deadlines, "a")


async def test_a_repair_is_told_once_however_often_it_is_sent(cell: CellStore, raw: Any) -> None:
    assert (await cell.told("one", "because", {"project": "web"})).outcome is Outcome.OK
    assert (await cell.told("two", "because", {})).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.told("one", "because", {"project": "web"})).outcome is Outcome.SAME
    [(_, first), _] = await raw.xrange(cell.keys.events)
    assert (first["kind"], first["reason"], first["project"]) == ("mended", "because", "web")
