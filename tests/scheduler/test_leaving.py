"""Hosts that are to be emptied: drained with moves, and evacuated. Their claims keep their constraints."""

from redsched.model import ClaimStatus, GroupPolicy, HostStatus, Quota, Request, Why
from redsched.scheduler import Scheduler
from tests.scheduler.working import QUICK, at_work, empty
from tests.support.cells import raw_client
from tests.support.company import group
from tests.support.waiting import wait_until


async def test_a_drained_host_is_emptied(clean_store: str) -> None:
    """All of its claims go elsewhere, each once, although three schedulers are at it; nothing new comes to it."""
    async with (
        at_work(clean_store, 8, 8, 8) as work,
        Scheduler.connect(clean_store, QUICK),
        Scheduler.connect(clean_store, QUICK),
    ):
        one = Request({"VCPU": 1}, hosts=frozenset({"h0", "h1", "h2"}))
        for number in range(6):
            there = Request({"VCPU": 1}, claim_ids=(f"id{number}",), weights={})
            await work.scheduler.select(there)
        await work.work()
        before = await work.held()
        await work.scheduler.hosts.set_status("h0", HostStatus.DRAINING, move=True)
        await empty(work, "h0")
        await work.settle()
        after = await work.held()
        assert "h0" in before
        assert sum(map(len, after.values())) == 6
        for number in range(6):
            claim = await work.scheduler.claims.get(f"id{number}")
            assert (claim.state, claim.host != "h0") == (ClaimStatus.ACTIVE, True)
        assert (await work.scheduler.select(one)).selections[0].host != "h0"
        assert (await work.scheduler.hosts.get("h0")).leaving == "move"
        await work.scheduler.hosts.set_status("h0", HostStatus.ENABLED)
        assert (await work.scheduler.hosts.get("h0")).leaving == ""
        await work.is_sound()


async def test_a_plain_drain_moves_nothing(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 1}))
        await work.scheduler.hosts.set_status("h0", HostStatus.DRAINING)
        await work.settle()
        assert await work.held() == {"h0": [claim.id]}


async def test_a_dead_host_is_evacuated_and_drops_what_it_had_when_it_comes_back(clean_store: str) -> None:
    """Anti-affinity is kept: the third host is the only one left. What it is given after that is its own."""
    async with at_work(clean_store, 8, 6, 4) as work:
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        one = await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("one",)))
        await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("two",)), host=1)
        dead = work.hosts[0]
        work.hosts.remove(dead)
        await work.scheduler.hosts.lost("h0", evacuate=True, force=True)
        await work.settle()
        now = await work.scheduler.claims.get("one")
        assert (now.host, now.id, now.state) == ("h2", "one", ClaimStatus.ACTIVE)
        assert not await work.store.held_ids("h0")
        assert (await work.scheduler.hosts.get("h0")).leaving == "evacuate"
        assert [one.id for one in dead.held.values()] == ["one"]
        await dead.speak()
        await dead.work()
        assert dead.held == {}
        assert await work.store.held_ids("h0") == set()
        assert (await work.scheduler.hosts.get("h0")).leaving == ""
        assert (await work.scheduler.claims.get("one")).token == now.token
        assert one.token != now.token
        await work.scheduler.hosts.set_status("h0", HostStatus.ENABLED)
        work.hosts.insert(0, dead)
        await work.active(Request({"VCPU": 8}))
        await work.is_sound()


async def test_what_was_ending_on_a_dead_host_has_ended_when_it_is_evacuated(clean_store: str) -> None:
    """Nobody is left to stop it: quota, group and host are free, each ends as what it was to end as."""
    async with at_work(clean_store, 16, 8) as work:
        claims = work.scheduler.claims
        await work.scheduler.select(Request({"VCPU": 6}, hosts=frozenset({"h1"})))
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        await work.scheduler.quotas.put(Quota("web", {"VCPU": 6}))
        await work.active(Request({"VCPU": 3}, claim_ids=("gone",), project="web", server_group="web"))
        shelved = await work.active(Request({"VCPU": 1}, claim_ids=("shelved",), project="web"))
        moved = await work.active(Request({"VCPU": 1}, claim_ids=("moved",)))
        await claims.move("moved", moved.token)
        await work.work([1])
        await work.sweep()
        assert not await claims.release("gone")
        await claims.shelve("shelved", shelved.token)
        dead = work.hosts.pop(0)
        await work.store.write_off(dead.name, evacuate=True, force=True)  # whoever said so died before he ended them
        await work.settle()
        assert not await work.store.held_ids("h0")
        assert (await claims.get("gone")).why is Why.RELEASED
        assert (await claims.get("shelved")).why is Why.SHELVED
        now = await claims.get("moved")
        assert (now.host, now.state, now.id) == ("h1", ClaimStatus.ACTIVE, "moved")

        async def is_free() -> bool:
            await work.sweep()
            return (await work.scheduler.quotas.get("web")).used.get("VCPU", 0) == 0

        await wait_until(is_free, what="the quota is free")
        await work.scheduler.hosts.forget("h0")
        assert await work.store.leaving_hosts() == {}
        again = Request({"VCPU": 1}, server_group="web", hosts=frozenset({"h1"}))
        assert (await work.scheduler.select(again)).selections[0].host == "h1"
        await work.is_sound()


async def test_what_is_not_active_yet_is_not_moved_off_a_host_that_works(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        await work.scheduler.hosts.set_status("h0", HostStatus.DRAINING, move=True)
        await work.sweep()
        assert await work.held() == {"h0": ["mine"]}
        await work.work()
        await empty(work, "h0")
        assert (await work.scheduler.claims.get("mine")).host == "h1"


async def test_what_finds_no_place_is_shown_with_the_reason_and_tried_again(clean_store: str) -> None:
    async with at_work(clean_store, 8, 4) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("small",)))
        large = await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.set_status("h0", HostStatus.DRAINING, move=True)
        await work.settle()
        assert await work.store.held_ids("h0") == {"large"}
        stuck = (await work.scheduler.hosts.get("h0")).stuck
        assert list(stuck) == ["large"]
        assert "6 VCPU" in stuck["large"]
        async with raw_client(clean_store) as raw:
            await raw.delete(work.store.keys.request(large.digest))
        assert "is not known" in (await work.scheduler.hosts.get("h0")).stuck["large"]


async def test_what_could_not_be_moved_moves_when_there_is_room(clean_store: str) -> None:
    """With a pause that grows, so it is not tried each second."""
    async with at_work(clean_store, 8, 4, 6) as work:
        other = (await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h2"})))).selections[0]
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.set_status("h0", HostStatus.DRAINING, move=True)
        tries = []
        read_request = work.store.read_request

        async def counted(digest: str) -> str | None:
            tries.append(digest)
            return await read_request(digest)

        work.store.read_request = counted  # type: ignore[method-assign]
        for _ in range(5):
            await work.sweep()
        assert 1 <= len(tries) < 5
        await work.scheduler.claims.release(other.claim_id or "")
        await empty(work, "h0")
        assert (await work.scheduler.claims.get("large")).host == "h2"
