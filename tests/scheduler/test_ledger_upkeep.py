"""What an audit looks for in the ledgers of quotas, each broken by hand, is found, mended and told; nothing else is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from redsched.errors import QuotaExceeded, RedschedError
from redsched.model import Quota, Request
from redsched.scheduler import AuditReport, Scheduler, UsageBy, audit_ledgers
from redsched.scheduler.upkeep import Upkeep
from redsched.settings import Settings
from redsched.store import CellStore, Taking
from redsched.store.keys import LedgerKeys
from tests.scheduler.conftest import ONE_AT_A_TIME
from tests.support.cells import State, everything, raw_client
from tests.support.ledgers import settle_all

QUOTA = Quota("web", {"VCPU": 20, "claims": 10})
KEYS = LedgerKeys("web")
SOUND = {"VCPU": 5, "claims": 2}


@dataclass(frozen=True, slots=True)
class Broken:
    """The store under test: project web has a quota, and claims a (2 VCPU) and b (3 VCPU)."""

    scheduler: Scheduler
    raw: Any

    @property
    def store(self) -> CellStore:
        return next(iter(self.scheduler._cells)).store

    async def found(self) -> set[tuple[str, str]]:
        """What is wrong with ledgers, by thing and what it is about."""
        return {(one.thing, one.what) for one in (await self.scheduler.audit()).problems if one.invariant != 10}

    async def used(self) -> dict[str, int]:
        """What is used, as the ledger says."""
        return {name: amount for name, amount in (await self.scheduler.quotas.get("web")).used.items() if amount}


@pytest.fixture
async def broken(scheduler: Scheduler, clean_store: str) -> AsyncIterator[Broken]:
    # What it does by itself now and then would mend some of it first.
    await scheduler._quotas.stop()
    await scheduler.quotas.put(QUOTA)
    for name, vcpu in (("a", 2), ("b", 3)):
        await scheduler.select(Request({"VCPU": vcpu}, project="web", claim_ids=(name,)))
    await asyncio.gather(*scheduler._quotas._later)
    async with raw_client(clean_store) as raw:
        yield Broken(scheduler, raw)


Breaking = Callable[[Broken], Awaitable[Any]]


async def sums(it: Broken) -> None:
    await it.raw.hset(KEYS.ledger, mapping={"used.VCPU": "7", "used.claims": "many", "used.CUSTOM_OLD": "3"})


async def sums_lost(it: Broken) -> None:
    await it.raw.hdel(KEYS.ledger, "used.VCPU")


async def entry_of_no_claim(it: Broken) -> None:
    fields = {"state": "held", "by": "x", "claim": "nix", "cell": "c1", "amount.VCPU": "4", "amount.claims": "1"}
    await it.raw.hset(KEYS.claim("nix"), mapping=fields)
    await it.raw.sadd(KEYS.claims, "nix")
    await it.raw.hincrby(KEYS.ledger, "used.VCPU", 4)
    await it.raw.hincrby(KEYS.ledger, "used.claims", 1)


async def entry_lost(it: Broken) -> None:
    """The ledger knows nothing of a claim which a quota counts."""
    await it.raw.delete(KEYS.claim("b"))
    await it.raw.srem(KEYS.claims, "b")
    await it.raw.hset(KEYS.ledger, mapping={"used.VCPU": "2", "used.claims": "1"})


async def other_amounts(it: Broken) -> None:
    await it.raw.hset(KEYS.claim("a"), "amount.VCPU", "1")


async def unreadable_amounts(it: Broken) -> None:
    await it.raw.hset(KEYS.claim("a"), "amount.VCPU", "much")


async def not_listed(it: Broken) -> None:
    await it.raw.srem(KEYS.claims, "a")


async def nothing_listed(it: Broken) -> None:
    await it.raw.sadd(KEYS.claims, "nix")


async def no_state(it: Broken) -> None:
    await it.raw.hset(KEYS.claim("a"), "state", "whatever")


async def lease_of_nothing(it: Broken) -> None:
    await it.raw.zadd(KEYS.deadlines, {"nix": 2**50, "a": 2**50})


async def lease_lost(it: Broken) -> None:
    await it.raw.hset(KEYS.claim("a"), "state", "reserved")


async def lease_long_over(it: Broken) -> None:
    """Nobody has settled what was reserved."""
    await it.raw.hset(KEYS.claim("a"), "state", "reserved")
    await it.raw.zadd(KEYS.deadlines, {"a": 1})


async def mark_lost(it: Broken) -> None:
    await it.raw.hdel(it.store.keys.claim("a"), "quota")


async def limits(it: Broken) -> None:
    """Who changed them died before the ledger heard of it."""
    await it.store.put_quota(replace(QUOTA, limits={"VCPU": 30}))


async def no_quota(it: Broken) -> None:
    """Who took it back died before the ledger went."""
    await it.scheduler._store.ledgers.drop("web")
    await it.store.delete_quota("web")
    await it.raw.hset(KEYS.ledger, "limit.VCPU", "1")
    await it.raw.hset(KEYS.claim("nix"), "state", "held")


BREAKINGS: dict[Breaking, set[tuple[str, str]]] = {
    sums: {("quota:web VCPU", "used"), ("quota:web claims", "used"), ("quota:web CUSTOM_OLD", "used")},
    sums_lost: {("quota:web VCPU", "used")},
    entry_of_no_claim: {("quota:web nix", "counted")},
    entry_lost: {("quota:web b", "counted")},
    other_amounts: {("quota:web a", "counted"), ("quota:web VCPU", "used")},
    unreadable_amounts: {("quota:web a", "counted"), ("quota:web VCPU", "used")},
    not_listed: {("quota:web a", "listed")},
    nothing_listed: {("quota:web nix", "listed")},
    no_state: {
        ("quota:web a", "entry"),
        ("quota:web a", "listed"),
        ("quota:web a", "counted"),
        ("quota:web VCPU", "used"),
        ("quota:web claims", "used"),
    },
    lease_of_nothing: {("quota:web nix", "deadline"), ("quota:web a", "deadline")},
    lease_lost: {("quota:web a", "deadline")},
    lease_long_over: {("quota:web a", "lease")},
    mark_lost: {("quota:web a", "mark of its claim")},
    limits: {("quota:web", "limits")},
    no_quota: {("quota:web", "key")},
}


async def ledger(raw: Any) -> State:
    """All keys of the ledger."""
    return {key: value for key, value in (await everything(raw)).items() if key.startswith(KEYS.ledger)}


@pytest.mark.parametrize("breaking", BREAKINGS, ids=lambda one: one.__name__)
async def test_what_is_broken_is_found_and_mended(broken: Broken, breaking: Breaking) -> None:
    """All of it and nothing else, and an audit writes nothing; what is left is exact, and ends with its claims."""
    assert await broken.found() == set()
    await breaking(broken)
    before = await ledger(broken.raw)
    assert await broken.found() == BREAKINGS[breaking]
    assert await ledger(broken.raw) == before
    report = await broken.scheduler.repair()
    assert {(one.thing, one.what) for one in report.problems if one.mended and one.invariant != 10} == BREAKINGS[
        breaking
    ]
    assert report.broken == ()
    if breaking is lease_lost:  # now it has one, and that runs out
        await broken.scheduler._quotas.settler.settle("web", ["a"])
    if breaking is no_quota:
        assert await ledger(broken.raw) == {}
    else:
        assert await broken.used() == SOUND
        await broken.scheduler.claims.release("a")
        await broken.scheduler.claims.release("b")
        assert await broken.used() == {}
    assert await broken.found() == set()


async def test_a_repair_is_told_in_the_log_with_its_reason(broken: Broken) -> None:
    """Once for each thing that was done, though it put several things right."""
    await sums_lost(broken)
    await not_listed(broken)
    await mark_lost(broken)
    await broken.scheduler.repair()
    told = [fields for _, fields in await broken.raw.xrange(broken.store.keys.events) if fields["kind"] == "mended"]
    assert [(one["thing"], one["project"], one.get("claim")) for one in told] == [
        ("quota:web", "web", None),
        ("quota:web", "web", "a"),
    ]
    assert told[1]["reason"] == "mark of its claim of quota:web a was none"
    events = await broken.scheduler.events.newest()
    assert [one.facts["thing"] for one in events if one.kind == "mended"] == ["quota:web"] * 2


async def test_the_check_now_and_then_mends_ledgers_too(broken: Broken) -> None:
    """That of the first cell."""
    await entry_of_no_claim(broken)
    report = await Upkeep(next(iter(broken.scheduler._cells)), Settings(), broken.scheduler._ledgers).check()
    assert [(one.thing, one.mended) for one in report.problems] == [("quota:web nix", True)]
    assert await broken.used() == SOUND


async def test_a_large_ledger_is_held_to_the_cells_alone(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """No script may look at all of it at once."""
    monkeypatch.setattr(audit_ledgers, "MOST_ENTRIES", 1)
    await entry_of_no_claim(broken)
    await sums(broken)
    assert await broken.found() == {("quota:web nix", "counted")}


async def test_of_a_quota_that_was_taken_back_freed_ids_may_be_remembered(broken: Broken) -> None:
    await broken.scheduler.claims.release("a")
    await broken.scheduler.quotas.delete("web")
    assert set(await ledger(broken.raw)) == {KEYS.claim("a")}
    assert await broken.found() == set()


async def test_what_is_on_its_way_is_no_fault(broken: Broken) -> None:
    """A reservation whose lease runs; the end of a claim that has not been told yet; a ledger that is to be counted."""
    await broken.scheduler._quotas.reserve("web", [Taking("c", {"VCPU": 1}, "c", "c1")])
    await broken.store.release("h1", "a")
    assert await broken.found() == set()
    await broken.raw.hset(KEYS.ledger, mapping={"used.VCPU": "1", "epoch.c1": "1-other"})
    assert await broken.found() == set()


async def test_a_host_s_own_claims_are_counted_and_stay_so(broken: Broken) -> None:
    """As it says of them, and whatever it says later; nobody asks the quota."""
    token = (await broken.store.claim_local("h3", "own", {"VCPU": 1}, project="web")).facts[0]
    await worked_off(broken)
    assert await broken.used() == {"VCPU": 6, "claims": 3}
    await broken.store.claim_local("h3", "own", {"VCPU": 4}, project="web", token=token)
    await worked_off(broken)
    assert await broken.used() == {"VCPU": 9, "claims": 3}
    assert await broken.found() == set()
    await broken.scheduler.claims.release("own", force=True)
    await worked_off(broken)
    assert await broken.used() == SOUND


async def worked_off(broken: Broken) -> None:
    """Sweep until no chore is left."""
    await settle_all(broken.scheduler, broken.raw, leases=False)


async def test_nothing_is_found_on_a_sound_store_that_works(broken: Broken, clean_store: str) -> None:
    """Two schedulers claim, resize, move and release within the quota all the while."""
    ended = asyncio.Event()
    refused: list[str] = []

    async def traffic(scheduler: Scheduler, number: int) -> int:
        rounds = 0
        while not ended.is_set():
            claim_id = f"busy-{number}-{rounds}"
            try:
                asked = Request({"VCPU": 1}, project="web", claim_ids=(claim_id,))
                one = (await scheduler.select(asked)).selections[0]
                if rounds % 3 == 1:
                    await scheduler.claims.resize(claim_id, str(one.token), {}, {"VCPU": 2})
                if rounds % 3 == 2:
                    await scheduler.claims.move(claim_id, str(one.token))
                await scheduler.claims.release(claim_id, force=True)
            except QuotaExceeded:
                raise
            except RedschedError as error:
                refused.append(error.detail)
            rounds += 1
        return rounds

    async with Scheduler.connect(clean_store, ONE_AT_A_TIME) as other:
        busy = [asyncio.create_task(traffic(one, n)) for n, one in enumerate((broken.scheduler, other, other))]
        reports: list[AuditReport] = [await broken.scheduler.repair() for _ in range(15)]
        ended.set()
        assert min(await asyncio.gather(*busy)) > 0
    assert [one.problems for one in reports] == [()] * len(reports)
    await worked_off(broken)
    [row] = await broken.scheduler.usage((UsageBy.CLASS,))
    assert await broken.used() == row.used
