"""A project's ledger: exact, each call once, and nothing given on what it may have forgotten."""

from typing import Any

import pytest

from redsched.store import Answer, CellStore, Ledgers, Outcome, Taking
from redsched.store.keys import LedgerKeys
from tests.support.cells import nothing_written

EPOCHS = {"c1": "1-a"}
LEASE_MS = 60_000
KEYS = LedgerKeys("web")


@pytest.fixture
def ledgers(cell: CellStore) -> Ledgers:
    """The ledgers beside the cell."""
    return Ledgers(cell._url, cell._runner, cell._reader)


@pytest.fixture
async def counted(ledgers: Ledgers) -> Ledgers:
    """Project web with limits of 10 VCPU and 3 claims, and nothing taken."""
    await count(ledgers)
    return ledgers


async def count(ledgers: Ledgers, *found: Taking, name: str = "count", **limits: int) -> None:
    """Count the ledger anew: the cells hold what is `found`."""
    opened = await ledgers.open("web", name, LEASE_MS, EPOCHS, "1-a.1", limits or {"VCPU": 10, "claims": 3})
    assert opened.outcome is Outcome.OK
    assert (await ledgers.count("web", name, LEASE_MS, found)).outcome is Outcome.OK
    assert (await ledgers.close("web", name, EPOCHS)).outcome is Outcome.OK


def taking(claim_id: str, vcpu: int = 2) -> Taking:
    return Taking(claim_id, {"VCPU": vcpu, "claims": 1}, claim_id, "c1")


async def reserve(ledgers: Ledgers, by: str, *takings: Taking) -> Answer:
    return await ledgers.reserve("web", by, takings, LEASE_MS, EPOCHS)


async def used(ledgers: Ledgers) -> dict[str, int]:
    """The sums, without those of nothing."""
    return {name: amount for name, amount in (await ledgers.read(["web"]))["web"].used.items() if amount}


async def test_what_is_reserved_is_counted_and_what_would_exceed_is_refused_whole(counted: Ledgers, raw: Any) -> None:
    """With the numbers of each class that is exceeded; of a call that is refused nothing is written."""
    assert (await reserve(counted, "one", taking("a", 4), taking("b", 4))).outcome is Outcome.OK
    async with nothing_written(raw):
        refused = await reserve(counted, "two", taking("c", 1), taking("d", 2))
    assert refused.outcome is Outcome.OVER
    facts = {tuple(refused.facts[at : at + 4]) for at in range(0, len(refused.facts), 4)}
    assert facts == {("VCPU", "10", "8", "3"), ("claims", "3", "2", "2")}
    assert (await reserve(counted, "three", taking("e", 2))).outcome is Outcome.OK
    assert await used(counted) == {"VCPU": 10, "claims": 3}


async def test_a_class_without_a_limit_is_counted_and_not_limited(counted: Ledgers) -> None:
    assert (await reserve(counted, "one", Taking("a", {"MEMORY_MB": 1 << 40}))).outcome is Outcome.OK
    assert await used(counted) == {"MEMORY_MB": 1 << 40}


async def test_the_same_call_again_changes_nothing(counted: Ledgers, raw: Any) -> None:
    await reserve(counted, "one", taking("a", 6))
    async with nothing_written(raw):
        again = await reserve(counted, "one", taking("a", 6))
    assert (again.outcome, again.facts) == (Outcome.SAME, ("a", "c1"))


async def test_another_call_for_the_same_id_takes_the_larger_of_both(counted: Ledgers) -> None:
    """Only what it grows by is asked of the quota; asked for nothing it stays, and keeps its claim."""
    await reserve(counted, "one", taking("a", 6))
    assert (await reserve(counted, "two", taking("a", 9))).outcome is Outcome.OK
    assert (await reserve(counted, "three", taking("a", 2))).outcome is Outcome.OK
    marked = await reserve(counted, "four", Taking("a"))
    assert (marked.outcome, marked.facts) == (Outcome.OK, ("a", "c1"))
    assert await used(counted) == {"VCPU": 9, "claims": 1}
    grown = await reserve(counted, "five", taking("a", 11))
    assert (grown.outcome, grown.facts) == (Outcome.OVER, ("VCPU", "10", "9", "2"))


async def test_a_project_over_its_quota_may_keep_what_it_has(counted: Ledgers) -> None:
    """Limits that were lowered end nothing, and stand against nothing but growth."""
    await reserve(counted, "one", taking("a", 6))
    assert (await counted.declare("web", "1-a.2", {"VCPU": 5})).outcome is Outcome.OK
    assert (await reserve(counted, "two", taking("a", 6))).outcome is Outcome.OK
    assert (await reserve(counted, "three", Taking("b", {"claims": 1}))).outcome is Outcome.OK
    assert (await reserve(counted, "four", taking("c", 1))).outcome is Outcome.OVER


async def test_older_limits_do_not_replace_later_ones(counted: Ledgers) -> None:
    assert (await counted.declare("web", "1-a.3", {"VCPU": 5})).outcome is Outcome.OK
    for token in ("1-a.3", "1-a.2"):
        assert (await counted.declare("web", token, {"VCPU": 7})).outcome is Outcome.SAME
    assert (await counted.read(["web"]))["web"].limits == {"VCPU": 5}
    assert (await counted.declare("web", "2-b.1", {"claims": 7})).outcome is Outcome.OK
    assert (await counted.read(["web"]))["web"].limits == {"claims": 7}


async def test_what_is_held_has_no_lease_and_is_what_was_said(counted: Ledgers, raw: Any) -> None:
    await reserve(counted, "one", taking("a", 6))
    assert await raw.zrange(KEYS.deadlines, 0, -1) == ["a"]
    assert (await counted.hold("web", "one", [taking("a", 4)])).facts == ()
    assert await raw.zrange(KEYS.deadlines, 0, -1) == []
    assert await used(counted) == {"VCPU": 4, "claims": 1}
    async with nothing_written(raw):
        await counted.hold("web", "one", [taking("a", 4)])


async def test_what_is_freed_is_gone_once(counted: Ledgers, raw: Any) -> None:
    """And remembered, so that a late copy of its reservation does not bring it back."""
    await reserve(counted, "one", taking("a"), taking("b"))
    await counted.hold("web", "one", [Taking("a")])
    assert (await used(counted), await counted.ids("web")) == ({"VCPU": 2, "claims": 1}, {"b"})
    async with nothing_written(raw):
        await counted.hold("web", "one", [Taking("a")])
        assert (await reserve(counted, "one", taking("a"), taking("b"))).outcome is Outcome.LATE
    assert 0 < await raw.pttl(KEYS.claim("a")) <= 600_000


async def test_another_call_may_take_an_id_again_that_was_freed(counted: Ledgers, raw: Any) -> None:
    """A refused id has no outcome yet; and what it takes does not end with what was remembered."""
    await reserve(counted, "one", taking("a", 9))
    await counted.hold("web", "one", [Taking("a")])
    assert (await reserve(counted, "two", taking("a", 3))).outcome is Outcome.OK
    assert await used(counted) == {"VCPU": 3, "claims": 1}
    assert await raw.pttl(KEYS.claim("a")) == -1


async def test_only_who_reserved_last_may_say_what_is_held(counted: Ledgers, raw: Any) -> None:
    """Two calls for one id: the first one's word that it has ended must not free what the second relies on."""
    await reserve(counted, "one", taking("a"))
    await reserve(counted, "two", taking("a"))
    async with nothing_written(raw):
        for late in (Taking("a"), taking("a", 1)):
            assert (await counted.hold("web", "one", [late])).facts == ("a",)
    assert (await counted.hold("web", "two", [Taking("a")])).facts == ()
    assert await used(counted) == {}


async def test_a_ledger_that_is_not_there_answers_unknown_and_leaves_nothing(ledgers: Ledgers, raw: Any) -> None:
    async with nothing_written(raw):
        assert (await reserve(ledgers, "one", taking("a"))).outcome is Outcome.UNKNOWN
        assert (await ledgers.hold("web", "one", [taking("a")])).outcome is Outcome.UNKNOWN
        assert (await ledgers.declare("web", "1-a.1", {"VCPU": 1})).outcome is Outcome.UNKNOWN
        assert (await ledgers.count("web", "count", LEASE_MS, [taking("a")])).outcome is Outcome.STALE
        assert (await ledgers.close("web", "count", EPOCHS)).outcome is Outcome.STALE


async def test_until_it_is_counted_a_ledger_gives_and_frees_nothing(ledgers: Ledgers, raw: Any) -> None:
    await ledgers.open("web", "count", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
    async with nothing_written(raw):
        assert (await reserve(ledgers, "one", taking("a"))).outcome is Outcome.SETTLING
        assert (await ledgers.hold("web", "one", [taking("a")])).outcome is Outcome.SETTLING


async def test_a_ledger_counted_in_other_epochs_must_be_counted_anew(counted: Ledgers) -> None:
    """A cell lost writes; or the ledger's own server did."""
    other = await counted.reserve("web", "one", [taking("a")], LEASE_MS, {"c1": "2-b"})
    assert other.outcome is Outcome.SETTLING
    both = await counted.reserve("web", "one", [taking("a")], LEASE_MS, {**EPOCHS, "c2": "1-a"})
    assert both.outcome is Outcome.SETTLING


async def test_a_ledger_whose_server_may_have_lost_writes_must_be_counted_anew(counted: Ledgers, raw: Any) -> None:
    await reserve(counted, "one", taking("a"))
    await raw.hset(KEYS.meta, mapping={"replid": "0" * 40, "run_id": "0" * 40})
    assert (await reserve(counted, "two", taking("b"))).outcome is Outcome.SETTLING
    assert (await counted.hold("web", "one", [taking("a")])).outcome is Outcome.SETTLING
    await count(counted, taking("a"), name="again")
    assert await used(counted) == {"VCPU": 2, "claims": 1}


async def test_a_ledger_that_nobody_used_for_long_stands(counted: Ledgers, raw: Any) -> None:
    """Nobody ticks it: that time has run ahead says nothing here. That it went back does."""
    await raw.hincrby(KEYS.meta, "now_ms", -86_400_000)
    assert (await reserve(counted, "one", taking("a"))).outcome is Outcome.OK
    await raw.hincrby(KEYS.meta, "now_ms", 3_600_000)
    assert (await reserve(counted, "two", taking("b"))).outcome is Outcome.SETTLING


async def test_a_count_replaces_all_but_reservations(counted: Ledgers, raw: Any) -> None:
    """What the cells hold is held, what they do not is gone, what is reserved stays so, at the larger amounts."""
    await reserve(counted, "one", taking("kept", 1), taking("gone", 1))
    await counted.hold("web", "one", [taking("kept", 1), taking("gone", 1)])
    await reserve(counted, "two", taking("reserved", 3))
    await raw.hdel(KEYS.ledger, "counted_in")
    found = [taking("kept", 2), taking("new", 4), taking("reserved", 2), Taking("gone")]
    await count(counted, *found, name="again")
    assert await used(counted) == {"VCPU": 9, "claims": 3}
    assert await counted.ids("web") == {"kept", "new", "reserved"}
    assert await raw.zrange(KEYS.deadlines, 0, -1) == ["reserved"]
    assert (await counted.hold("web", "two", [taking("reserved", 3)])).facts == ()


async def test_a_copy_of_a_count_counts_once(ledgers: Ledgers, raw: Any) -> None:
    await ledgers.open("web", "count", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
    for _ in range(2):
        opened = await ledgers.open("web", "count", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
        assert opened.outcome is Outcome.OK
        await ledgers.count("web", "count", LEASE_MS, [taking("a"), taking("b")])
    await ledgers.close("web", "count", EPOCHS)
    assert await used(ledgers) == {"VCPU": 4, "claims": 2}
    async with nothing_written(raw):
        assert (await ledgers.close("web", "count", EPOCHS)).outcome is Outcome.SAME
        opened = await ledgers.open("web", "other", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
        assert opened.outcome is Outcome.SAME


async def test_one_count_runs_at_a_time_and_one_that_died_is_replaced(ledgers: Ledgers, raw: Any) -> None:
    await ledgers.open("web", "one", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
    await ledgers.count("web", "one", LEASE_MS, [taking("a")])
    opened = await ledgers.open("web", "two", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
    assert opened.outcome is Outcome.OTHER
    await raw.hset(KEYS.ledger, "count_until_ms", "1")
    await count(ledgers, taking("b", 5), Taking("a"), name="two")
    async with nothing_written(raw):
        assert (await ledgers.count("web", "one", LEASE_MS, [taking("c")])).outcome is Outcome.STALE
    assert (await used(ledgers), await ledgers.ids("web")) == ({"VCPU": 5, "claims": 1}, {"b"})


async def test_a_count_does_not_outlive_the_loss_of_writes(ledgers: Ledgers, raw: Any) -> None:
    """What it has said before may be gone."""
    await ledgers.open("web", "one", LEASE_MS, EPOCHS, "1-a.1", {"VCPU": 10})
    await raw.hset(KEYS.meta, mapping={"replid": "0" * 40, "run_id": "0" * 40})
    assert (await ledgers.count("web", "one", LEASE_MS, [taking("a")])).outcome is Outcome.STALE
    assert (await ledgers.close("web", "one", EPOCHS)).outcome is Outcome.STALE
    await count(ledgers, name="two")


async def test_dropping_leaves_no_key(counted: Ledgers, raw: Any) -> None:
    await reserve(counted, "one", taking("a"), taking("b"))
    await counted.drop("web")
    assert [key async for key in raw.scan_iter(match="rs:{quota:web}*")] == []


async def test_what_is_due_comes_by_project(counted: Ledgers, cell: CellStore) -> None:
    await reserve(counted, "one", taking("a"), taking("b"))
    now_ms = (await cell.tick()).now_ms
    assert await counted.due(["web", "other"], now_ms, 10) == {}
    assert await counted.due(["web", "other"], now_ms + LEASE_MS + 1000, 10) == {"web": ["a", "b"]}
    assert await counted.due(["web"], now_ms + LEASE_MS + 1000, 1) == {"web": ["a"]}


async def test_what_was_made_unreadable_by_hand_lets_nothing_in(counted: Ledgers, raw: Any) -> None:
    await raw.hset(KEYS.ledger, "used.VCPU", "nan")
    assert (await reserve(counted, "one", taking("a", 1))).outcome is Outcome.OVER
    await raw.hset(KEYS.ledger, mapping={"used.VCPU": "0", "limit.claims": "-5"})
    assert (await reserve(counted, "two", taking("a", 1))).outcome is Outcome.OVER
