"""Server groups whose hosts are written off or drained: how their members are moved, and where they end up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from redsched.errors import NoValidHost
from redsched.model import ClaimStatus, GroupPolicy, HostReport, Inventory, OnExit, Request
from redsched.scheduler import Scheduler
from tests.scheduler.working import QUICK, Work, at_work, empty
from tests.support.builders.counted_claims import group, pool
from tests.support.waiting import wait_until

AFFINITY = GroupPolicy.AFFINITY


@asynccontextmanager
async def in_zones(url: str, *hosts: tuple[int, str]) -> AsyncIterator[Work]:
    """Yield hosts h0, h1 ... at work, each with its VCPU in its zone."""
    async with at_work(url, *(vcpu for vcpu, _ in hosts)) as work:
        for one, (vcpu, zone) in zip(work.hosts, hosts, strict=True):
            one.report = HostReport(one.name, {"VCPU": Inventory(vcpu)}, zone=zone, lease_s=3600)
            await one.speak()
        yield work


async def members(work: Work, host: int, **vcpus: int) -> None:
    """Have members of group web run on a host, given as `id=vcpu`; their requests use the policy `pack`."""
    others = frozenset(one.name for one in work.hosts if one.name != f"h{host}")
    await asyncio.gather(*(work.scheduler.hosts.disable(name) for name in others))
    for claim_id, vcpu in vcpus.items():
        await work.active(Request({"VCPU": vcpu}, server_group="web", claim_ids=(claim_id,), policy="pack"), host)
    await asyncio.gather(*(work.scheduler.hosts.enable(name) for name in others))


async def lose(work: Work, *numbers: int) -> None:
    """Write these hosts off and have them evacuated."""
    for number in numbers:
        await work.scheduler.hosts.write_off(f"h{number}", evacuate=True, force=True)
    work.hosts = [one for one in work.hosts if one.name not in {f"h{number}" for number in numbers}]


async def where(work: Work, *ids: str) -> list[str]:
    """Return the hosts on which these claims are active."""
    found = [await work.scheduler.claims.get(claim_id) for claim_id in ids]
    assert {one.state for one in found} == {ClaimStatus.ACTIVE}, found
    return [one.host for one in found]


async def drain(work: Work, *numbers: int) -> None:
    """Drain these hosts, which are up, with moves."""
    for number in numbers:
        await work.scheduler.hosts.drain(f"h{number}", move=True)


@pytest.mark.parametrize("helpers", [0, 2])
@pytest.mark.parametrize("leave", [lose, drain])
async def test_a_whole_affinity_group_goes_to_one_host_that_has_room_for_all(
    clean_store: str, leave: Callable[..., Awaitable[None]], helpers: int
) -> None:
    """Alone, each member would be packed onto h1, which fits only two of them; other schedulers may take part."""
    async with at_work(clean_store, 9, 8, 16) as work, AsyncExitStack() as stack:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4, three=1)
        for _ in range(helpers):
            await stack.enter_async_context(Scheduler.connect(clean_store, QUICK))
        await leave(work, 0)
        await empty(work, "h0")
        await work.settle()
        assert await where(work, "one", "two", "three") == ["h2"] * 3
        assert (await work.scheduler.server_groups.get("web")).counts["host"] == {"h2": 3}
        new = Request({"VCPU": 1}, server_group="web")
        assert (await work.scheduler.select(new)).selections[0].host == "h2"
        await work.is_sound()


async def test_a_group_for_all_of_which_no_host_has_room_goes_where_some_of_it_does(clean_store: str) -> None:
    """The other member is unmovable, with the reason, until the group's new host has enough capacity."""
    async with at_work(clean_store, 8, 6, 6) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4)
        await lose(work, 0)
        await work.settle()
        [left] = await work.store.hosts.claim_ids("h0")
        moved = await work.scheduler.claims.get("two" if left == "one" else "one")
        [unmovable] = (await work.scheduler.hosts.get("h0")).unmovable
        reason = unmovable.reason
        assert unmovable.claim_id == left
        assert f"nearest {moved.host}: 2 VCPU less" in reason
        with pytest.raises(NoValidHost, match="server_group"):
            await work.scheduler.select(Request({"VCPU": 1}, server_group="web"))
        grown = next(one for one in work.hosts if one.name == moved.host)
        grown.report = HostReport(grown.name, {"VCPU": Inventory(8)}, lease_s=3600)
        await grown.speak()
        await empty(work, "h0")
        await work.settle()
        assert await where(work, "one", "two") == [moved.host] * 2
        await work.is_sound()


async def test_a_group_counts_on_the_drained_host_too_until_its_work_runs_elsewhere(clean_store: str) -> None:
    """One sweep places all members on the target while the drained host still holds them."""
    async with at_work(clean_store, 9, 8, 16) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4, three=1)
        await drain(work, 0)
        await work.sweep()
        assert await work.held() == {"h0": ["one", "three", "two"], "h2": ["one", "three", "two"]}


async def test_a_group_that_no_host_has_room_for_stays_together_on_the_drained_host(clean_store: str) -> None:
    """The host is up, so the group is not split. It moves as soon as one host has capacity for all members."""
    async with at_work(clean_store, 8, 6, 6) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4)
        await work.scheduler.hosts.drain("h0", move=True)
        await work.settle()
        assert await work.held() == {"h0": ["one", "two"]}
        unmovable = (await work.scheduler.hosts.get("h0")).unmovable
        assert [one.claim_id for one in unmovable] == ["one", "two"]
        assert all("server group web moves as a whole, 2 members: " in one.reason for one in unmovable)
        work.hosts[1].report = HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600)
        await work.hosts[1].speak()
        await empty(work, "h0")
        await work.settle()
        assert await where(work, "one", "two") == ["h1", "h1"]
        await work.is_sound()


async def test_one_whose_move_with_its_group_fails_follows_the_others(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4)
        await work.scheduler.hosts.drain("h0", move=True)
        await work.sweep()
        target = (await work.scheduler.claims.get("one")).target
        assert target is not None
        await work.store.claims.fail("h1", "one", target.token, by_host=True)
        assert await work.held() == {"h0": ["one", "two"], "h1": ["two"]}
        await empty(work, "h0")
        await work.settle()
        assert await where(work, "one", "two") == ["h1", "h1"]
        await work.is_sound()


async def test_members_of_different_requests_keep_what_these_say(clean_store: str) -> None:
    """They are moved in one call, which is based on neither request."""
    async with at_work(clean_store, 8, 8) as work:
        await group(work.store, policy=AFFINITY)
        asked = Request({"VCPU": 1}, server_group="web")
        await work.active(replace(asked, claim_ids=("kept",), on_exit=OnExit.KEEP, max_attempts=5))
        await work.active(replace(asked, claim_ids=("placed",), on_exit=OnExit.REPLACE, max_attempts=1))
        before = [await work.scheduler.claims.get(one) for one in ("kept", "placed")]
        await work.scheduler.hosts.drain("h0", move=True)
        await empty(work, "h0")
        after = [await work.scheduler.claims.get(one) for one in ("kept", "placed")]
        said = [[(one.host, one.digest, one.on_exit, one.max_attempts) for one in some] for some in (before, after)]
        assert said[1] == [("h1", *rest) for _, *rest in said[0]]
        assert [one[2:] for one in said[1]] == [(OnExit.KEEP, 5), (OnExit.REPLACE, 1)]


async def test_one_is_moved_off_a_host_that_was_written_off_and_not_off_one_that_works(clean_store: str) -> None:
    """Moving by hand follows the rules of evacuation; on a host that is up, affinity keeps each member there."""
    async with at_work(clean_store, 8, 8, 8) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=1, two=1)
        claim = await work.scheduler.claims.get("one")
        with pytest.raises(NoValidHost, match="by server_group"):
            await work.scheduler.claims.move("one", claim.token)
        await work.scheduler.hosts.write_off("h0", force=True)
        dead = work.hosts.pop(0)
        target = await work.scheduler.claims.move("one", claim.token, hosts=("h2",))
        assert target.host == "h2"
        await work.settle()
        assert (await where(work, "one"), await work.store.hosts.claim_ids(dead.name)) == (["h2"], {"two"})


async def test_one_that_is_moved_off_a_dead_host_waits_for_room(clean_store: str) -> None:
    """While the move is queued, the members left on the dead host do not tie the claim to that host."""
    async with at_work(clean_store, 8, 8) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4)
        claim = await work.scheduler.claims.get("one")
        blocks = Request({"VCPU": 6}, hosts=frozenset({"h1"}))
        full = (await work.scheduler.select(blocks)).selections[0].claim_id or ""
        await work.scheduler.hosts.write_off("h0", force=True)
        moving = asyncio.create_task(work.scheduler.claims.move("one", claim.token, queue_timeout_s=60))
        await wait_until(lambda: len(work.scheduler._selector._wait_queue._waiters) == 1, what="it waits")
        await work.scheduler.claims.release(full)
        target = await moving
        assert target.host == "h1"


async def test_what_comes_back_in_the_middle_stays_where_it_is(clean_store: str) -> None:
    """The returning host stops only what has moved. The group is split, and takes no new member until reunited."""
    async with at_work(clean_store, 8, 4, 16) as work:
        await group(work.store, policy=AFFINITY)
        await members(work, 0, one=4, two=4)
        dead, claim = work.hosts.pop(0), await work.scheduler.claims.get("one")
        await work.scheduler.hosts.write_off("h0", force=True)
        await work.scheduler.claims.move("one", claim.token, hosts=("h2",))
        await work.settle()
        await dead.speak()
        await dead.work()
        assert {one.id for one in dead.held.values()} == {"two"}
        assert (await work.scheduler.server_groups.get("web")).counts["host"] == {"h0": 1, "h2": 1}
        await work.scheduler.hosts.enable("h0")
        with pytest.raises(NoValidHost, match="3 by server_group"):
            await work.scheduler.select(Request({"VCPU": 1}, server_group="web"))
        await lose(work, 0)
        await work.settle()
        assert await where(work, "one", "two") == ["h2", "h2"]
        await work.is_sound()


@pytest.mark.parametrize(
    ("policy", "hosts", "dead", "expected"),
    [
        (AFFINITY, [(4, "az1"), (4, "az1"), (4, "az2"), (5, "az3"), (5, "az3")], (0, 1), {"h3", "h4"}),
        (AFFINITY, [(4, "az1"), (4, "az1"), (4, "az2"), (8, "az1")], (0,), {"h3", "h1"}),
        (GroupPolicy.ANTI_AFFINITY, [(4, "az1"), (4, "az2"), (4, "az1"), (4, "az2")], (0,), {"h2", "h1"}),
    ],
    ids=[
        "together: to a zone with room for all when all of its hosts are dead",
        "together: in its zone while any of it lives",
        "apart: to another host of the same zone, for it does not count against itself",
    ],
)
async def test_a_group_by_zone_keeps_its_policy_when_hosts_die(
    clean_store: str, policy: GroupPolicy, hosts: list[tuple[int, str]], dead: tuple[int, ...], expected: set[str]
) -> None:
    async with in_zones(clean_store, *hosts) as work:
        await group(work.store, policy=policy, by="zone")
        await members(work, 0, one=4)
        await members(work, 1, two=4)
        await lose(work, *dead)
        await work.settle()
        assert set(await where(work, "one", "two")) == expected
        await work.is_sound()


async def test_what_takes_from_a_full_shared_pool_is_stuck(clean_store: str) -> None:
    """The source keeps its amount until the target is active, so the move needs a larger pool."""
    async with at_work(clean_store, 8, 8) as work:
        await pool(work.store, CUSTOM_SEAT=3)
        await work.active(Request({"VCPU": 1, "CUSTOM_SEAT": 2}, claim_ids=("seated",)))
        await lose(work, 0)
        await work.settle()
        assert "CUSTOM_SEAT" in (await work.scheduler.hosts.get("h0")).unmovable[0].reason
        await pool(work.store, CUSTOM_SEAT=4)
        await empty(work, "h0")
        await work.settle()
        assert await where(work, "seated") == ["h1"]
