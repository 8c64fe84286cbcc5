"""Services: reading claims and hosts, verbs on them, following changes, and the audit."""

import asyncio

import pytest

from redsched.errors import ClaimState, InvalidRequest, NotFound, OtherAgent, Settling, StaleToken
from redsched.model import AgentStamp, Candidate, ClaimStatus, HostStatus, Request
from redsched.model.records.changes import Change, Reset
from redsched.scheduler import Scheduler
from redsched.store.codec.replies import Member
from tests.scheduler.conftest import report_of
from tests.support.builders.cells import new_epoch, raw_client
from tests.support.builders.counted_claims import SEAT, given, group, joining, pool
from tests.support.waiting import patience_s

OLD_TOKEN = "1-a.1"
REPLICA = 10
"""The invariant of replicas, which a test breaks when it writes to the store without a change in the feed."""


async def claim(scheduler: Scheduler, claim_id: str = "mine", vcpu: int = 1) -> str:
    """Claim this much VCPU under this id, and return the token."""
    return (await scheduler.select(Request({"VCPU": vcpu}, claim_ids=(claim_id,)))).selections[0].token or ""


async def test_claims_are_listed_in_pages_and_by_filter(scheduler: Scheduler) -> None:
    """Every claim is listed once, in order of host and id, whatever the page size."""
    for number in range(7):
        request = Request({"VCPU": 2}, claim_ids=(f"id-{number}",), project=f"p{number % 2}")
        await scheduler.select(request)
    seen: list[tuple[str, str]] = []
    after: str | None = ""
    while after is not None:
        page = await scheduler.claims.list(limit=2, after=after)
        seen += [(one.host, one.claim_id) for one in page.items]
        after = page.next
    assert seen == sorted(seen)
    assert len(seen) == 7
    assert len((await scheduler.claims.list(project="p1")).items) == 3
    assert {one.host for one in (await scheduler.claims.list(host="h2")).items} == {"h2"}
    assert (await scheduler.claims.list(state=ClaimStatus.ACTIVE)).items == ()
    with pytest.raises(InvalidRequest):
        await scheduler.claims.list(after="nonsense")


async def test_a_claim_is_confirmed_and_released_by_its_token(scheduler: Scheduler) -> None:
    """A wrong token is refused; releasing an active claim asks its host to stop it, and frees it only with force."""
    token = await claim(scheduler)
    with pytest.raises(StaleToken):
        await scheduler.claims.confirm("mine", OLD_TOKEN)
    with pytest.raises(InvalidRequest, match="lease_s must be a whole number from 1"):
        await scheduler.claims.renew("mine", token, 0)
    renewed = await scheduler.claims.renew("mine", token, 600)
    assert (await scheduler.claims.confirm("mine", token)).state is ClaimStatus.ACTIVE
    assert renewed.expires_at_ms is not None
    with pytest.raises(StaleToken):
        await scheduler.claims.release("mine", OLD_TOKEN)
    assert not await scheduler.claims.release("mine", token)
    assert not await scheduler.claims.release("mine")
    with pytest.raises(ClaimState):
        await scheduler.claims.confirm("mine", token)
    assert await scheduler.claims.release("mine", force=True)
    assert await scheduler.claims.release("mine")
    assert (await scheduler.claims.get("mine")).state is ClaimStatus.ENDED


async def test_a_failed_claim_frees_its_place(scheduler: Scheduler) -> None:
    """A claim that no host has accepted is freed at once."""
    token = await claim(scheduler, vcpu=8)
    assert (await scheduler.claims.fail("mine", token, ())).end_reason == "failed"
    await claim(scheduler, "another", vcpu=8)


async def test_unknown_objects_are_unknown(scheduler: Scheduler) -> None:
    """Every call that names a claim or host that never existed is refused."""
    for call in (
        scheduler.claims.get("none"),
        scheduler.claims.release("none"),
        scheduler.hosts.get("none"),
        scheduler.hosts.heartbeat("none", 30),
        scheduler.hosts.inbox("none"),
        scheduler.hosts.drain("none"),
        scheduler.hosts.write_off("none"),
        scheduler.hosts.remove("none"),
        scheduler.explain(Request({"VCPU": 1}), "none"),
    ):
        with pytest.raises(NotFound):
            await call


async def test_nothing_is_unknown_while_hosts_attest(scheduler: Scheduler) -> None:
    """In a new epoch a host may still restore a missing claim; a known host is shown as not attested."""
    await new_epoch(scheduler.cells.named("c1").store)
    with pytest.raises(Settling):
        await scheduler.claims.get("none")
    with pytest.raises(Settling):
        await scheduler.select(Request({"VCPU": 1}))
    assert not (await scheduler.hosts.get("h1")).attested


async def test_hosts_are_listed_in_pages_and_by_filter(scheduler: Scheduler) -> None:
    """Hosts are listed by name, and the filter sees a status that was just set."""
    first = await scheduler.hosts.list(limit=2)
    assert [one.name for one in first.items] == ["h1", "h2"]
    assert [one.name for one in (await scheduler.hosts.list(after=first.next or "")).items] == ["h3"]
    await scheduler.hosts.drain("h2")
    assert [one.name for one in (await scheduler.hosts.list(status=HostStatus.DRAINING)).items] == ["h2"]
    assert (await scheduler.hosts.list(zone="nowhere")).items == ()


async def test_a_host_shows_what_it_holds(scheduler: Scheduler) -> None:
    """free = capacity - claimed - external."""
    await claim(scheduler, vcpu=3)
    slot = (await scheduler.hosts.get("h1")).slots["VCPU"]
    assert (slot.total, slot.capacity, slot.claimed, slot.external, slot.free) == (8, 8, 3, 0, 5)


async def test_a_host_with_claims_is_forgotten_only_by_force(scheduler: Scheduler) -> None:
    """With force its claims end too."""
    await claim(scheduler, vcpu=8)
    with pytest.raises(ClaimState):
        await scheduler.hosts.remove("h1")
    await scheduler.hosts.remove("h1", force=True)
    assert (await scheduler.claims.get("mine")).end_reason == "void"
    with pytest.raises(NotFound):
        await scheduler.hosts.get("h1")


async def test_two_agents_do_not_speak_for_one_host(scheduler: Scheduler) -> None:
    """The second agent is refused when it reports and when it sends a heartbeat."""
    one, two = AgentStamp("journal-1", "n", 1), AgentStamp("journal-2", "n", 1)
    await scheduler.hosts.report(report_of("h9", VCPU=1), one)
    with pytest.raises(OtherAgent):
        await scheduler.hosts.report(report_of("h9", VCPU=64), two)
    with pytest.raises(OtherAgent):
        await scheduler.hosts.heartbeat("h9", 30, two)
    assert (await scheduler.hosts.get("h9")).slots["VCPU"].total == 1


async def test_changes_are_followed_and_resumed(scheduler: Scheduler) -> None:
    """After a given change the later ones come once and in order; after an unknown one comes a reset."""
    cell = scheduler.cells.named("c1")
    await cell.updater.catch_up()
    start = cell.updater.seq
    await claim(scheduler)
    await scheduler.hosts.drain("h3")
    await cell.updater.catch_up()
    async with asyncio.timeout(patience_s(20)):
        followed = scheduler.changes(f"c1:{cell.updater.epoch}:{start}")
        found = [await anext(followed), await anext(followed)]
        await followed.aclose()  # type: ignore[attr-defined]
        assert [(one.seq, one.op) for one in found if isinstance(one, Change)] == [
            (start + 1, "claimed"),
            (start + 2, "status"),
        ]
        far = scheduler.changes(f"c1:{cell.updater.epoch}:999999")
        assert await anext(far) == Reset("c1", start + 2)
        await far.aclose()  # type: ignore[attr-defined]


async def test_the_audit_is_clean_and_sees_damage(scheduler: Scheduler, clean_store: str) -> None:
    """Each invariant that is broken by hand is reported by its number."""
    await claim(scheduler, vcpu=8)
    await claim(scheduler, "other", vcpu=6)
    assert (await scheduler.audit()).problems == ()
    cell = scheduler.cells.named("c1").store
    async with raw_client(clean_store) as raw:
        await raw.hset(cell.keys.host("h1"), "capacity.VCPU", "7")
        await raw.hset(cell.keys.host("h2"), "claimed.VCPU", "5")
        await raw.zrem(cell.keys.deadlines, "other")
        await raw.hset(cell.keys.claim("stray"), mapping={"host": "h1", "state": "active", "token": OLD_TOKEN})
    found = {(one.invariant, one.thing) for one in (await scheduler.audit()).problems if one.invariant != REPLICA}
    assert found == {(1, "h1 VCPU"), (2, "h2 VCPU"), (5, "other"), (5, "stray")}


async def test_the_audit_compares_counts_of_hosts_groups_and_pools(scheduler: Scheduler, clean_store: str) -> None:
    """They are compared with the claims; a pool that its operator shrank is reported as over, not as a problem."""
    cell = scheduler.cells.named("c1").store
    await group(cell, count_by=("label:rack",))
    await pool(cell)
    amounts = {"VCPU": 1, SEAT: 3}
    await given(cell, *(Member(one, (Candidate("h1", amounts),), "web") for one in "ab"))
    await cell.claims.release("h1", "b")
    await given(cell, Member("c", (Candidate("h2", amounts),), "web"))
    assert (await scheduler.audit()).problems == ()
    await pool(cell, CUSTOM_SEAT=5)
    assert ((await scheduler.audit()).problems, (await scheduler.audit()).over) == ((), ("pool:lic",))
    async with raw_client(clean_store) as raw:
        await raw.hset(cell.keys.host("h1"), mapping={"claims": "7", "starting": "x"})
        await raw.hset(cell.keys.server_group("web"), mapping={"members": "3", "count.zone=az9": "1"})
        await raw.hdel(cell.keys.pool("lic"), "over.CUSTOM_SEAT")
        await raw.hset(cell.keys.claim("c"), f"amount.{SEAT}", "4")
    found = {(one.invariant, one.thing) for one in (await scheduler.audit()).problems if one.invariant != REPLICA}
    assert found == {
        (2, "h1 claims"),
        (2, "quota:project used.CUSTOM_SEAT"),
        (2, "h1 starting"),
        (2, "server-group:web members"),
        (2, "server-group:web count.zone=az9"),
        (2, "pool:lic claimed.CUSTOM_SEAT"),
        (2, "quota:project used.CUSTOM_SEAT"),
        (1, "pool:lic CUSTOM_SEAT"),
    }


async def test_claims_of_a_group_and_a_pool_that_are_gone_are_found(scheduler: Scheduler, clean_store: str) -> None:
    cell = scheduler.cells.named("c1").store
    await group(cell)
    await given(cell, joining("a", "h1"))
    async with raw_client(clean_store) as raw:
        await raw.delete(cell.keys.server_group("web"))
    found = {one.thing for one in (await scheduler.audit()).problems}
    assert {"server-group:web members", "server-group:web count.host=h1"} <= found


async def test_a_host_that_shrank_is_no_fault(scheduler: Scheduler) -> None:
    """It is reported as over; only a claim that exceeded the capacity would be a problem."""
    await claim(scheduler, vcpu=8)
    await scheduler.hosts.report(report_of("h1", VCPU=4, MEMORY_MB=8192))
    found = await scheduler.audit()
    assert (found.problems, found.over) == ((), ("h1",))


async def test_a_lease_on_a_host_that_was_not_heard_is_no_leak(scheduler: Scheduler, clean_store: str) -> None:
    """In a new epoch no claim expires on a host that has not attested."""
    await claim(scheduler)
    cell = scheduler.cells.named("c1").store
    async with raw_client(clean_store) as raw:
        await raw.zadd(cell.keys.deadlines, {"mine": 1})
        await raw.hset(cell.keys.claim("mine"), "expires_at_ms", "1")
        await new_epoch(cell)
        assert (await scheduler.audit()).problems == ()


async def test_one_damaged_host_costs_that_host(scheduler: Scheduler, clean_store: str) -> None:
    """Lists still work, and the audit names the damaged objects."""
    await claim(scheduler, vcpu=8)
    cell = scheduler.cells.named("c1").store
    async with raw_client(clean_store) as raw:
        await raw.hset(cell.keys.host("h2"), mapping={"claimed.VCPU": "nan", "version": "x", "status": "?"})
        await raw.hset(cell.keys.claim("mine"), "amount.VCPU", "much")
    assert len((await scheduler.hosts.list()).items) == 3
    assert (await scheduler.hosts.get("h2")).slots["VCPU"].free < 0
    assert (await scheduler.claims.get("mine")).slots == {"VCPU": 0}
    found = {one.thing for one in (await scheduler.audit()).problems if one.invariant != REPLICA}
    assert found == {"h1 VCPU", "h2 VCPU"}


async def test_a_lapsed_lease_is_found_after_time_went_back(scheduler: Scheduler, clean_store: str) -> None:
    """A sweeper that has seen a later time still examines earlier deadlines."""
    cell = scheduler.cells.named("c1")
    sweeper = scheduler.tasks["c1"].sweeper
    sweeper._swept_until_ms = 2**50
    async with raw_client(clean_store) as raw:
        await raw.hset(cell.store.keys.host("h1"), "alive_until_ms", "1")
        await raw.zadd(cell.store.keys.hosts, {"h1": (await cell.store.tick()).now_ms})
        await sweeper.sweep()
        assert not (await scheduler.hosts.get("h1")).alive


async def test_a_claim_shows_why_it_failed_and_not_why_another_by_its_id_did(
    scheduler: Scheduler, clean_store: str
) -> None:
    store = scheduler.cells.named("c1").store
    for claim_id in ("mine", "other"):
        await scheduler.select(Request({"VCPU": 1}, claim_ids=(claim_id,), hosts=frozenset({"h1"})))
    claim = await scheduler.claims.get("mine")
    await store.claims.confirm("h1", "mine", claim.token)
    await store.claims.work_ended("h1", "mine", claim.token, "no process 7 is left")
    shown = await scheduler.claims.get("mine")
    assert shown.reason is not None
    assert (shown.reason.text, shown.reason.token) == ("no process 7 is left", claim.token)
    listed = {one.claim_id: one.reason for one in (await scheduler.claims.list()).items}
    assert listed == {"mine": shown.reason, "other": None}
    async with raw_client(clean_store) as raw:
        await raw.hset(store.keys.reason("mine"), "at_ms", str((claim.claimed_at_ms or 0) - 1))
    assert (await scheduler.claims.get("mine")).reason is None, "it is older than the claim"
