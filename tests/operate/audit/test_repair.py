"""Each fault that an audit looks for is made by hand, found, repaired and reported; nothing else is reported."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.model import Candidate, ClaimStatus, EndReason, Request
from redsched.model.records.audit import AuditReport
from redsched.operate.audit.audit import repair_cell
from redsched.operate.audit.cache import cache_problems
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Member
from tests.support.builders.cells import State, everything, new_epoch, raw_client
from tests.support.builders.counted_claims import SEAT, given, group, pool
from tests.support.waiting import wait_until

TOKEN = "1-a.1"


@dataclass(frozen=True, slots=True)
class Broken:
    """The store under test: hosts h1 to h3, claims a (active) and b (claimed) on h1, in group web and pool lic."""

    scheduler: Scheduler
    cell: Cell
    raw: Any

    @property
    def store(self) -> CellStore:
        return self.cell.store

    async def found(self) -> set[str]:
        """Return the objects that an audit reports, except where only the replica differs."""
        problems = (await self.scheduler.audit()).problems
        return {one.thing for one in problems if one.invariant != 10}

    async def feed(self) -> list[dict[str, str]]:
        return [fields for _, fields in await self.raw.xrange(self.store.keys.changes)]

    async def told(self) -> list[dict[str, str]]:
        """Return the entries of the event log about repairs."""
        return [fields for _, fields in await self.raw.xrange(self.store.keys.events) if fields["kind"] == "repaired"]


@pytest.fixture
async def broken(scheduler: Scheduler, clean_store: str) -> AsyncIterator[Broken]:
    cell = scheduler.cells.named("c1")
    await group(cell.store, count_by=("label:rack",))
    await pool(cell.store)
    for name in ("a", "b"):
        await given(cell.store, Member(name, (Candidate("h1", {"VCPU": 2, SEAT: 3}),), "web"))
    token = (await cell.store.claims.read(["a"]))["a"].token
    await cell.store.claims.accept("h1", "a", token, 3600)
    await cell.store.claims.confirm("h1", "a", token)
    async with raw_client(clean_store) as raw:
        yield Broken(scheduler, cell, raw)


Breaking = Callable[[Broken], Awaitable[Any]]


async def sums(it: Broken) -> None:
    await it.raw.hset(it.store.keys.host("h1"), mapping={"claimed.VCPU": "7", "claims": "9", "starting": "x"})
    await it.raw.hset(it.store.keys.host("h2"), mapping={"claimed.VCPU": "1", "claimed.CUSTOM_OLD": "3"})


async def lost_from_set(it: Broken) -> None:
    await it.raw.srem(it.store.keys.claims("h1"), "a")


async def nothing_in_set(it: Broken) -> None:
    await it.raw.sadd(it.store.keys.claims("h2"), "nix", "a")


async def no_deadline(it: Broken) -> None:
    await it.raw.zrem(it.store.keys.deadlines, "b")


async def deadlines_of_nothing(it: Broken) -> None:
    await it.raw.zadd(it.store.keys.deadlines, {"nix": 2**50, "a": 2**50})
    await it.raw.zadd(it.store.keys.reconcile, {"nix": 2**50})


async def counts(it: Broken) -> None:
    await it.raw.hset(it.store.keys.server_group("web"), mapping={"members": "9", "count.zone=az9": "1"})
    await it.raw.hdel(it.store.keys.server_group("web"), "count.host=h1")
    await it.raw.hset(it.store.keys.pool("lic"), "claimed.CUSTOM_SEAT", "much")


async def moved_without_recount(it: Broken) -> None:
    """Leave what earlier releases left when a host reported another zone and no rack: claims and group agree."""
    for one in ("a", "b"):
        await it.raw.hset(it.store.keys.claim(one), mapping={"counted.zone": "az9", "counted.label:rack": "r9"})
    version = await it.store.audit.version_of(Kind.SERVER_GROUP, "web")
    assert (await it.store.repair.counts("server-group:web", version, "before", ["a", "b"])).outcome is Outcome.OK


async def counted_elsewhere(it: Broken) -> None:
    await it.raw.hset(it.store.keys.claim("a"), "counted.zone", "az9")


async def group_without_key(it: Broken) -> None:
    await it.raw.delete(it.store.keys.pool("lic"))


async def host_not_listed(it: Broken) -> None:
    await it.raw.zrem(it.store.keys.hosts, "h2")


async def leftovers(it: Broken) -> None:
    keys = it.store.keys
    await it.raw.hset(keys.attributes("gone"), "label.rack", "r1")
    await it.raw.xadd(keys.inbox("gone"), {"op": "claim"})
    await it.raw.zadd(keys.hosts, {"gone": 1})
    fields = {"host": "gone", "state": "claimed", "token": TOKEN, "amount.VCPU": "1"}
    await it.raw.hset(keys.claim("orphan"), mapping=fields)
    await it.raw.hset(keys.claim("hidden"), mapping=fields)
    await it.raw.sadd(keys.claims("gone"), "orphan")
    await it.raw.zadd(keys.deadlines, {"orphan": 2**50})


async def gangs(it: Broken) -> None:
    keys = it.store.keys
    await it.raw.hset(keys.gang("nix"), mapping={"member.nix": "h1", "waiting": "1"})
    await it.raw.hset(keys.gang("a"), mapping={"member.a": "h1", "member.b": "h1", "waiting": "2"})
    await it.raw.hset(keys.gang("b"), mapping={"member.b": "h1", "member.nix": "h1", "waiting": "1"})
    await it.raw.hset(keys.gang("active"), mapping={"member.a": "h1", "waiting": "0"})


async def ended_claims(it: Broken) -> None:
    ended = {"host": "h1", "state": "ended", "token": TOKEN}
    keys = it.store.keys
    await it.raw.hset(keys.claim("moved"), mapping={**ended, "end_reason": "moved"})
    await it.raw.hset(keys.claim("kept"), mapping={**ended, "end_reason": "released"})
    await it.raw.hset(keys.claim("shelved"), mapping={**ended, "end_reason": "shelved"})
    await it.raw.sadd(keys.shelved, "nix", "a")


async def not_noted(it: Broken) -> None:
    token = (await it.store.claims.read(["a"]))["a"].token
    await it.raw.hset(it.store.keys.claim("a"), mapping={"closed": token, "closed_reason": "released"})


async def stopped_forget(it: Broken) -> None:
    """Leave what a stopped script of 0.1 could leave while a slot moved: claims no longer counted, one hash deleted."""
    keys = it.store.keys
    await it.raw.delete(keys.claim("a"))
    await it.raw.hset(keys.server_group("web"), mapping={"members": "0", "version": 2**40})
    await it.raw.hdel(keys.server_group("web"), "count.host=h1", "count.zone=default")
    await it.raw.hset(keys.pool("lic"), mapping={"claimed.CUSTOM_SEAT": "0", "version": 2**40})


async def stopped_local(it: Broken) -> None:
    """Leave another such state: the host counts a claim that has no hash and is not in its set."""
    await it.raw.hset(it.store.keys.host("h1"), mapping={"claims": "3", "claimed.VCPU": "5"})


async def stopped_expiry(it: Broken) -> None:
    """Leave another such state: the claim is due to end, but neither its inbox entry nor its state was written."""
    await it.raw.hset(it.store.keys.host("h1"), "starting", "0")
    await it.raw.hdel(it.store.keys.claim("b"), "expires_at_ms")
    await it.raw.zrem(it.store.keys.deadlines, "b")


BREAKINGS: dict[Breaking, set[str]] = {
    sums: {"h1 VCPU", "h1 claims", "h1 starting", "h2 VCPU", "h2 CUSTOM_OLD"},
    lost_from_set: {"a", "h1 VCPU", "h1 claims"},
    nothing_in_set: {"nix", "a"},
    no_deadline: {"b"},
    deadlines_of_nothing: {"nix", "a", "reconcile nix"},
    moved_without_recount: {"a zone", "b zone", "a label:rack", "b label:rack"},
    counted_elsewhere: {"a zone", "server-group:web count.zone=az9", "server-group:web count.zone=default"},
    counts: {
        "server-group:web members",
        "server-group:web count.zone=az9",
        "server-group:web count.host=h1",
        "pool:lic claimed.CUSTOM_SEAT",
    },
    group_without_key: {"pool:lic claimed.CUSTOM_SEAT"},
    host_not_listed: {"hosts h2"},
    leftovers: {"orphan", "hidden", "claims:gone", "attributes:gone", "inbox:gone", "hosts gone"},
    gangs: {"gang:nix", "gang:a", "gang:b", "gang:active"},
    stopped_forget: {
        "a",
        "h1 VCPU",
        "h1 claims",
        "server-group:web members",
        "server-group:web count.host=h1",
        "server-group:web count.zone=default",
        "pool:lic claimed.CUSTOM_SEAT",
        "quota:project used.CUSTOM_SEAT",
        "quota:project used.claims",
        "quota:project used.VCPU",
    },
    stopped_local: {"h1 VCPU", "h1 claims"},
    stopped_expiry: {"h1 starting", "b"},
    ended_claims: {"moved", "kept", "shelved", "shelved nix", "shelved a"},
    not_noted: {"reconcile a"},
}


@pytest.mark.parametrize("breaking", BREAKINGS, ids=lambda one: one.__name__)
async def test_what_is_broken_is_found_and_repaired(broken: Broken, breaking: Breaking) -> None:
    """Exactly these faults are found; the repair of the periodic check fixes them, and the next audit finds none."""
    assert await broken.found() == set()
    await breaking(broken)
    wanted = BREAKINGS[breaking] - ({"orphan"} if breaking is leftovers else set())
    assert await broken.found() == wanted
    report = await repair_cell(broken.cell, operator=False)
    assert {one.thing for one in report.problems if one.repaired and one.invariant != 10} == wanted
    assert report.broken == ()
    assert await broken.found() == set()
    await caches_follow(broken)


async def caches_follow(broken: Broken) -> None:
    """Check that this scheduler's replica got the repairs from the feed, without another snapshot."""
    snapshots = broken.cell.updater.stats.snapshots

    async def follow() -> bool:
        await broken.cell.updater.catch_up()
        fresh = await take_snapshot(broken.store)
        return difference(broken.cell.updater.columns, fresh.columns) == []

    # More than once: the scheduler reconciles the repaired claims meanwhile.
    await wait_until(follow)
    assert broken.cell.updater.stats.snapshots == snapshots == 1


async def test_a_repair_is_in_the_feed_with_its_reason(broken: Broken) -> None:
    await sums(broken)
    await counts(broken)
    await broken.scheduler.repair()
    told = {(one["kind"], one["name"]): one for one in await broken.feed() if one["op"] == "repaired"}
    assert told.keys() == {("host", "h1"), ("host", "h2"), ("server-group", "web"), ("pool", "lic")}
    assert all(one["reason"] for one in told.values())
    assert told["host", "h1"]["reason"] == "claimed of h1 VCPU was 7"
    assert (told["host", "h1"]["claimed.VCPU"], told["host", "h2"]["claimed.CUSTOM_OLD"]) == ("4", "")


async def test_a_repair_that_no_cache_needs_is_logged(broken: Broken) -> None:
    await deadlines_of_nothing(broken)
    await ended_claims(broken)
    await gangs(broken)
    await broken.scheduler.repair()
    told = {one["claim"]: one["reason"] for one in await broken.told()}
    assert told.keys() == {"nix", "a", "b", "active", "moved", "kept", "shelved"}
    assert all(told.values())


async def test_what_may_still_run_is_ended_by_an_operator_alone(broken: Broken) -> None:
    """The host's key was deleted by hand; the host may still exist and run the work."""
    await broken.raw.delete(broken.store.keys.host("h1"))
    left = await repair_cell(broken.cell, operator=False)
    assert {one.thing for one in left.broken} >= {"claims:h1"}
    assert any("--repair" in one.advice for one in left.broken)
    claims = await broken.store.claims.read(["a", "b"])
    assert {name: one.state for name, one in claims.items()} == {"a": ClaimStatus.ACTIVE, "b": ClaimStatus.ENDED}
    assert (await broken.scheduler.repair()).broken == ()
    ended = (await broken.store.claims.read(["a"]))["a"]
    assert (ended.state, ended.end_reason) == (ClaimStatus.ENDED, EndReason.VOID)
    assert "h1" not in broken.cell.updater.columns
    assert (await broken.raw.hget(broken.store.keys.server_group("web"), "members")) == "0"


async def test_a_claim_whose_host_is_silent_is_no_fault(broken: Broken) -> None:
    await broken.raw.hset(broken.store.keys.host("h1"), mapping={"alive_until_ms": "1", "alive": "0"})
    await broken.raw.zadd(broken.store.keys.hosts, {"h1": 1})
    await broken.scheduler.repair()
    assert (await broken.store.claims.read(["a"]))["a"].state is ClaimStatus.ACTIVE


async def test_hosts_that_have_not_attested_are_left_alone(broken: Broken) -> None:
    """Attesting recomputes their sums; until all have attested, the right counts of a group are unknown."""
    await sums(broken)
    await counts(broken)
    await leftovers(broken)
    await broken.store.raise_epoch((await broken.store.tick()).epoch)
    before = await written(broken)
    report = await broken.scheduler.repair()
    assert {"h1 VCPU", "server-group:web members", "attributes:gone"} <= {one.thing for one in report.broken}
    assert any("attested" in one.advice for one in report.broken)
    assert await written(broken) == before


async def written(broken: Broken) -> State:
    """Return all that the store holds, except the event log that a scheduler writes by itself."""
    own = (broken.store.keys.events, broken.store.keys.recorder, broken.store.keys.duty("record"))
    return {key: value for key, value in (await everything(broken.raw)).items() if key not in own}


async def test_a_replica_that_differs_is_read_again(broken: Broken) -> None:
    """Differences at the same version are found, and objects that only one side has."""
    await broken.cell.updater.catch_up()
    columns = broken.cell.updater.columns
    row = columns.row("h1")
    assert row is not None
    columns.amounts["claimed"]["VCPU"][row] += 1
    columns.remove("h2")
    columns.declared.remove(Kind.POOL, "lic")
    found = {(one.invariant, one.thing) for one in (await broken.scheduler.audit()).problems}
    assert found == {(10, "cache h1"), (10, "cache h2"), (10, "cache pool lic")}
    report = await broken.scheduler.repair()
    assert (len(report.problems), report.broken) == (3, ())


async def test_what_a_failover_has_lost_is_no_difference_of_the_replica(broken: Broken) -> None:
    """The replica is ahead by the reply to a lost claim, and nobody has written to the new primary."""
    await broken.cell.updater.catch_up()
    columns = broken.cell.updater.columns
    row = columns.row("h1")
    assert row is not None
    columns.versions[row] += 1
    assert [one.thing for one in await cache_problems(broken.cell.updater)] == ["cache h1"]
    await broken.raw.hset(broken.store.keys.meta, mapping={"replid": "0" * 40, "run_id": "0" * 40})
    assert await cache_problems(broken.cell.updater) == []


async def test_nothing_is_found_on_a_sound_store_that_works(broken: Broken) -> None:
    """Claims are placed, accepted, confirmed and released all the while."""
    ended = asyncio.Event()

    async def traffic(number: int) -> int:
        rounds = 0
        while not ended.is_set():
            claim_id = f"busy-{number}-{rounds}"
            request = Request({"VCPU": 1, "CUSTOM_SEAT": 1}, claim_ids=(claim_id,), server_group="web")
            chosen = (await broken.scheduler.select(request)).selections[0]
            assert chosen.token
            if rounds % 2:
                await broken.store.claims.accept(chosen.host, claim_id, chosen.token, 60)
                await broken.store.claims.confirm(chosen.host, claim_id, chosen.token)
            await broken.scheduler.claims.release(claim_id, force=True)
            rounds += 1
        return rounds

    busy = [asyncio.create_task(traffic(number)) for number in range(3)]
    reports: list[AuditReport] = [await broken.scheduler.repair() for _ in range(15)]
    ended.set()
    assert min(await asyncio.gather(*busy)) > 0
    assert [one.problems for one in reports] == [()] * len(reports)


async def test_what_is_ending_on_a_host_that_was_written_off_is_found_and_ends(broken: Broken) -> None:
    """The scheduler that wrote the host off did not end the claim."""
    await broken.scheduler.claims.release("a")
    await broken.store.hosts.write_off("h1", force=True)
    assert await broken.found() == {"a"}
    report = await broken.scheduler.repair()
    assert [(one.thing, one.repaired) for one in report.problems if one.invariant != 10] == [("a", True)]
    assert (await broken.store.claims.read(["a"]))["a"].end_reason is EndReason.RELEASED
    assert await broken.store.hosts.claim_ids("h1") == {"b"}


async def test_requests_that_claims_name_are_kept(broken: Broken) -> None:
    """Requests of live and of shelved claims are kept; others expire in time."""
    keys = broken.store.keys
    await broken.raw.hset(keys.claim("a"), "digest", "named")
    shelved = {"host": "h1", "state": "ended", "token": TOKEN, "end_reason": "shelved", "digest": "shelved"}
    await broken.raw.hset(keys.claim("later"), mapping=shelved)
    await broken.raw.sadd(keys.shelved, "later")
    for digest in ("named", "shelved", "other"):
        await broken.raw.set(keys.request(digest), "{}", ex=100)
    assert (await broken.scheduler.repair()).problems == ()
    ends = {digest: await broken.raw.ttl(keys.request(digest)) for digest in ("named", "shelved", "other")}
    assert ends["named"] > 1000 < ends["shelved"]
    assert ends["other"] <= 100


async def test_a_failed_gang_whose_chore_was_lost_is_ended(broken: Broken) -> None:
    """A script stopped after it had listed a claim in `reconcile` and deleted that claim."""
    keys = broken.store.keys
    await broken.raw.hset(keys.gang("nix"), mapping={"member.a": "h1", "waiting": "0", "end_reason": "failed"})
    await broken.raw.hset(keys.claim("a"), "gang", "nix")
    await broken.raw.zadd(keys.reconcile, {"nix": 2**50})  # far ahead, so that no sweep handles it before the audit
    assert await broken.found() == {"gang:nix", "reconcile nix"}
    report = await broken.scheduler.repair()
    assert {one.thing for one in report.problems if one.repaired and one.invariant != 10} == {
        "gang:nix",
        "reconcile nix",
    }
    assert (await broken.store.claims.read(["a"]))["a"].state is ClaimStatus.ENDING
    assert await broken.found() == set()


async def test_a_failed_gang_that_has_a_chore_is_no_fault(broken: Broken) -> None:
    keys = broken.store.keys
    await broken.raw.hset(keys.gang("nix"), mapping={"member.a": "h1", "waiting": "0", "end_reason": "failed"})
    await broken.raw.hset(keys.claim("a"), "gang", "nix")
    ended = {"host": "h1", "state": "ended", "end_reason": "failed", "token": TOKEN, "gang": "nix"}
    await broken.raw.hset(keys.claim("nix"), mapping=ended)
    await broken.raw.zadd(keys.reconcile, {"nix": 2**50})
    assert await broken.found() == set()


async def test_what_a_stopped_attestation_left_is_repaired_by_the_next_one(broken: Broken) -> None:
    """The hash of a claim that the host's journal lacks is deleted, but its id is still in the host's set."""
    epoch = await new_epoch(broken.store)
    await broken.raw.delete(broken.store.keys.claim("a"))
    assert "a" in await broken.found()
    assert "a" in {one.thing for one in (await broken.scheduler.repair()).broken}
    for host in ("h1", "h2", "h3"):
        assert (await broken.store.hosts.attest(host, epoch)).outcome is Outcome.OK
    assert await broken.store.hosts.claim_ids("h1") == {"b"}
    await broken.scheduler.repair()
    assert await broken.found() == set()
