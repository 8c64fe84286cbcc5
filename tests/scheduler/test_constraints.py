"""Constraints end to end in one process: reported, decided on, claimed by the script, and shown in replies."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.errors import ClaimIdReused, ClaimState, NotFound, NoValidHost
from redsched.model import (
    Aggregate,
    CpuPolicy,
    GangMember,
    Group,
    GroupPolicy,
    Hints,
    HostReport,
    Inventory,
    Numa,
    NumaAffinity,
    NumaCell,
    PciDevices,
    Pool,
    Relation,
    RelationType,
    Request,
    ServerGroup,
    SharedPool,
    Spread,
)
from redsched.model.records.selections import Selections
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.scheduler.conftest import report_all

SETTINGS = Settings()
HUGE = "CUSTOM_HUGE_PAGES_2048KB"


def big_host(name: str, zone: str) -> HostReport:
    """Report two NUMA nodes, each with 4 PCPU, 4 GiB of huge pages, a GPU and a NIC with two virtual functions."""
    pools = {}
    for node in ("0", "1"):
        pools[f"numa{node}"] = Pool({"PCPU": Inventory(4), HUGE: Inventory(2048)})
        pools[f"gpu{node}"] = Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, f"numa{node}", frozenset(["CUSTOM_T4"]))
        pools[f"nic{node}"] = Pool({"SRIOV_NET_VF": Inventory(2)}, f"numa{node}")
    return HostReport(
        name, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192)}, zone=zone, lease_s=3600, pools=pools,
        labels={"rack": f"r{int(name[1:]) % 2}", "ip": f"10.0.{name[1:]}.1"},
    )  # fmt: skip


@pytest.fixture
async def fleet(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over hosts h1 to h6, with zones b, c and a in turn and racks r1 and r0 in turn."""
    async with Scheduler.connect(clean_store, SETTINGS) as opened:
        await opened.init()
        await report_all(opened, [big_host(f"h{number}", "abc"[number % 3]) for number in range(1, 7)])
        yield opened


async def claims_of(scheduler: Scheduler, request: Request) -> Selections:
    """Select, and compare the reply with the store."""
    found = await scheduler.select(request)
    for one in found.selections:
        assert one.claim_id is not None
        claim = await scheduler.claims.get(one.claim_id)
        assert (claim.host, claim.slots) == (one.host, one.slots)
    assert not (await scheduler.audit()).problems
    return found


async def test_shares_of_gpus_are_packed_until_there_are_none(fleet: Scheduler) -> None:
    """Each of 12 GPUs takes two shares of 500; the slots name the GPU."""
    half = Request(groups=(Group("gpu", {"CUSTOM_GPU_MILLI": 500}, required=frozenset({"CUSTOM_T4"})),), policy="pack")
    taken: Counter[tuple[str, str]] = Counter()
    for _ in range(24):
        (one,) = (await claims_of(fleet, half)).selections
        taken.update((one.host, slot) for slot in one.slots)
    assert set(taken.values()) == {2}
    assert len(taken) == 12
    with pytest.raises(NoValidHost) as refused:
        await fleet.select(half)
    assert [one.reason for one in refused.value.facts.reasons] == ["group:gpu"]


async def test_pinned_cells_with_near_devices_lie_in_nodes_of_their_own(fleet: Scheduler) -> None:
    cells = Numa((NumaCell(2, 1024), NumaCell(2, 1024)), CpuPolicy.DEDICATED, 2048)
    near = PciDevices("SRIOV_NET_VF", 1, NumaAffinity.REQUIRED)
    (one,) = (await claims_of(fleet, Request({"VCPU": 1}, numa=cells, pci=(near,)))).selections
    assert {slot: n for slot, n in one.slots.items() if slot != "VCPU" and "VF" not in slot} == {
        "numa0/PCPU": 2, "numa1/PCPU": 2, f"numa0/{HUGE}": 512, f"numa1/{HUGE}": 512,
    }  # fmt: skip
    single = Numa((NumaCell(3, 1024),), CpuPolicy.DEDICATED, 2048)
    (other,) = (await claims_of(fleet, Request(numa=single, pci=(near,)))).selections
    node = next(slot for slot in other.slots if slot.endswith("PCPU")).partition("/")[0]
    device = next(slot for slot in other.slots if slot.endswith("SRIOV_NET_VF"))
    assert device.partition("/")[0].removeprefix("nic") == node.removeprefix("numa")


async def test_members_of_a_group_keep_apart_and_together(fleet: Scheduler) -> None:
    await fleet.server_groups.put(ServerGroup("web", GroupPolicy.ANTI_AFFINITY))
    await fleet.server_groups.put(ServerGroup("db", GroupPolicy.AFFINITY, by="zone"))
    for policy in ("pack", "spread", "pack"):
        await claims_of(fleet, Request({"VCPU": 1}, server_group="web", count=2, policy=policy))
    claims = (await fleet.claims.list()).items
    assert len({claim.host for claim in claims}) == 6
    with pytest.raises(NoValidHost) as refused:
        await fleet.select(Request({"VCPU": 1}, server_group="web"))
    assert [one.reason for one in refused.value.facts.reasons] == ["server_group"]
    places = [await claims_of(fleet, Request({"VCPU": 1}, server_group="db")) for _ in range(4)]
    zones = {(await fleet.hosts.get(one.selections[0].host)).zone for one in places}
    assert len(zones) == 1
    view = await fleet.server_groups.get("db")
    assert view.members == 4


async def test_places_spread_over_zones_and_racks_and_come_back(fleet: Scheduler) -> None:
    await fleet.server_groups.put(ServerGroup("cache", GroupPolicy.SOFT_ANTI_AFFINITY, count_by=("label:rack",)))
    spread = (Spread("zone"), Spread("label:rack"))
    found = await claims_of(fleet, Request({"VCPU": 1}, server_group="cache", spread=spread, count=6, policy="pack"))
    hosts = [await fleet.hosts.get(one.host) for one in found.selections]
    assert set(Counter(host.zone for host in hosts).values()) == {2}
    assert set(Counter(host.labels["rack"] for host in hosts).values()) == {3}
    for one in found.selections:
        assert await fleet.claims.release(str(one.claim_id))
    assert (await fleet.server_groups.get("cache")).members == 0
    alone = await claims_of(fleet, Request({"VCPU": 1}, spread=(Spread("zone"),), count=3, policy="pack"))
    zones = [(await fleet.hosts.get(one.host)).zone for one in alone.selections]
    assert sorted(zones) == ["a", "b", "c"]


async def test_a_shared_pool_is_taken_from_with_the_host(fleet: Scheduler) -> None:
    await fleet.aggregates.put(Aggregate("san", hosts=frozenset({"h1", "h2"})))
    await fleet.shared_pools.put(SharedPool("disks", {"DISK_GB": Inventory(100)}, aggregates=frozenset({"san"})), "c1")
    asked = Request({"VCPU": 1, "DISK_GB": 40})
    for _ in range(2):
        (one,) = (await claims_of(fleet, asked)).selections
        assert one.host in {"h1", "h2"}
        assert one.slots == {"VCPU": 1, "pool:disks/DISK_GB": 40}
    with pytest.raises(NoValidHost):
        await fleet.select(asked)
    assert await fleet.claims.release(str(one.claim_id))
    await claims_of(fleet, asked)


async def test_a_gang_is_placed_with_its_relations(fleet: Scheduler) -> None:
    request = Request(
        members=(
            GangMember("db", Request({"VCPU": 4}, count=3)),
            GangMember("app", Request({"VCPU": 1}, count=2)),
        ),
        relations=(Relation(RelationType.APART, ("db",)), Relation(RelationType.TOGETHER, ("app",))),
    )
    found = (await claims_of(fleet, request)).selections
    assert [one.member for one in found] == ["db", "db", "db", "app", "app"]
    assert len({one.host for one in found[:3]}) == 3
    assert len({one.host for one in found[3:]}) == 1


async def test_relocating_a_gang_is_the_same_request_while_the_old_claims_are_held(fleet: Scheduler) -> None:
    request = Request(members=(GangMember("a", Request({"VCPU": 8}, count=3)),))
    old = (await claims_of(fleet, request)).selections
    new = (await claims_of(fleet, request)).selections
    assert not {one.host for one in old} & {one.host for one in new}
    for one in old:
        assert await fleet.claims.release(str(one.claim_id))


async def test_incremental_takes_what_fits_and_says_the_same_again(fleet: Scheduler) -> None:
    ids = tuple(f"i{n}" for n in range(8))
    request = Request({"VCPU": 8}, count=8, mode="incremental", claim_ids=ids)
    found = await claims_of(fleet, request)
    assert [one.claim_id for one in found.selections] == list(ids[:6])
    again = await fleet.select(request)
    assert (again.fresh, [one.claim_id for one in again.selections]) == (False, list(ids[:6]))


async def test_hints_name_claims_and_addresses(fleet: Scheduler) -> None:
    (one,) = (await claims_of(fleet, Request({"VCPU": 1}, hosts=frozenset({"h3"})))).selections
    claim_id = str(one.claim_id)
    same = await claims_of(fleet, Request({"VCPU": 1}, hints=Hints(same_host=frozenset({claim_id}))))
    assert same.selections[0].host == "h3"
    other = await claims_of(fleet, Request({"VCPU": 1}, count=5, hints=Hints(different_host=frozenset({claim_id}))))
    assert "h3" not in {place.host for place in other.selections}
    near = Hints(build_near_host_ip="10.0.4.9", cidr="/24")
    assert (await claims_of(fleet, Request({"VCPU": 1}, hints=near))).selections[0].host == "h4"
    with pytest.raises(NotFound, match="no-such"):
        await fleet.select(Request({"VCPU": 1}, hints=Hints(same_host=frozenset({"no-such"}))))


@pytest.mark.parametrize(
    "named", [{"server_group": "gone"}, {"member_of": (frozenset({"gone"}),)}, {"not_member_of": frozenset({"gone"})}]
)
async def test_what_is_not_declared_is_never_read_as_no_rule(fleet: Scheduler, named: dict[str, Any]) -> None:
    with pytest.raises(NotFound, match="gone"):
        await fleet.select(Request({"VCPU": 1}, **named))


async def test_limits_of_claims_hold_at_once_and_in_the_replica(clean_store: str) -> None:
    settings = Settings(max_starting_per_host=2)
    async with Scheduler.connect(clean_store, settings) as opened:
        await opened.init()
        await opened.hosts.report(HostReport("h1", {"VCPU": Inventory(100)}, lease_s=3600))
        asked = [opened.select(Request({"VCPU": 1})) for _ in range(5)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        placed = [one for one in answers if isinstance(one, Selections)]
        assert len(placed) == 2
        assert all(isinstance(one, NoValidHost) for one in answers if not isinstance(one, Selections))
        first = placed[0].selections[0]
        await opened.claims.confirm(str(first.claim_id), str(first.token))
        assert (await opened.select(Request({"VCPU": 1}))).fresh


async def test_an_explanation_names_the_claim_that_stands_in_the_way(fleet: Scheduler) -> None:
    (small, big) = [
        (await claims_of(fleet, Request({"VCPU": n}, hosts=frozenset({"h1"})))).selections[0] for n in (1, 7)
    ]
    found = await fleet.explain(Request({"VCPU": 6}, hosts=frozenset({"h1"})), "h1")
    (miss,) = [miss for miss in found.nearest if miss.host == "h1"]
    assert miss.after == big.claim_id
    assert small.claim_id != big.claim_id
    assert found.checks[0].reason == "VCPU"


async def test_a_gangs_members_follow_hints_of_their_own(fleet: Scheduler) -> None:
    (one,) = (await claims_of(fleet, Request({"VCPU": 1}, hosts=frozenset({"h3"})))).selections
    claim_id = frozenset({str(one.claim_id)})
    near, far = Hints(same_host=claim_id), Hints(different_host=claim_id)
    members = (
        GangMember("near", Request({"VCPU": 1}, hints=near)),
        GangMember("far", Request({"VCPU": 1}, hints=far, count=5)),
    )
    found = (await claims_of(fleet, Request(members=members))).selections
    assert found[0].host == "h3"
    assert "h3" not in {place.host for place in found[1:]}
    with pytest.raises(NotFound, match="no-such"):
        await fleet.select(
            Request(members=(GangMember("a", Request({"VCPU": 1}, hints=Hints(frozenset({"no-such"})))),))
        )


async def test_an_id_keeps_its_outcome_when_what_its_request_relied_on_is_gone(fleet: Scheduler) -> None:
    (first,) = (await claims_of(fleet, Request({"VCPU": 1}))).selections
    hinted = Request({"VCPU": 1}, hints=Hints(same_host=frozenset({str(first.claim_id)})), claim_ids=("y",))
    (placed,) = (await claims_of(fleet, hinted)).selections
    assert await fleet.claims.release(str(first.claim_id))
    again = await fleet.select(hinted)
    assert (again.fresh, again.selections[0].host) == (False, placed.host)

    await fleet.server_groups.put(ServerGroup("g", GroupPolicy.ANTI_AFFINITY))
    grouped = Request({"VCPU": 1}, server_group="g", claim_ids=("z",))
    (placed,) = (await claims_of(fleet, grouped)).selections
    await fleet.server_groups.delete("g", force=True)
    again = await fleet.select(grouped)
    assert (again.fresh, again.selections[0].host) == (False, placed.host)
    with pytest.raises(NotFound, match="'g' is not declared"):
        await fleet.select(Request({"VCPU": 1}, server_group="g", claim_ids=("new",)))


async def test_ids_of_an_incremental_call_are_held_to_what_they_stand_for(fleet: Scheduler) -> None:
    """An id of another claim, of other content or of an ended claim is refused."""
    (other,) = (await fleet.select(Request({"VCPU": 1}, claim_ids=("k2",)))).selections
    asked = Request({"VCPU": 1}, count=3, mode="incremental", claim_ids=("k0", "k1", "k2"))
    with pytest.raises(ClaimIdReused):
        await fleet.select(asked)
    assert await fleet.claims.release(str(other.claim_id))
    mine = Request({"VCPU": 1}, count=2, mode="incremental", claim_ids=("j0", "j1"))
    await claims_of(fleet, mine)
    with pytest.raises(ClaimIdReused):
        await fleet.select(Request({"VCPU": 2}, count=2, mode="incremental", claim_ids=("j0", "j1")))
    for claim_id in ("j0", "j1"):
        assert await fleet.claims.release(claim_id)
    with pytest.raises(ClaimState):
        await fleet.select(mine)


async def test_a_shared_pool_that_is_gone_makes_way_for_another(clean_store: str) -> None:
    """Two pools offer seats; the one a stale replica would choose has been deleted."""
    slow = SETTINGS.model_copy(update={"poll_s": 1.0})
    async with Scheduler.connect(clean_store, SETTINGS) as fast, Scheduler.connect(clean_store, slow) as stale:
        await fast.init()
        await report_all(fast, [HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600)])
        await fast.shared_pools.put(SharedPool("a", {"CUSTOM_SEAT": Inventory(9)}), "c1")
        await fast.shared_pools.put(SharedPool("b", {"CUSTOM_SEAT": Inventory(5)}), "c1")
        await stale.explain(Request({"VCPU": 1}))
        await fast.shared_pools.delete("a")
        (one,) = (await stale.select(Request({"VCPU": 1, "CUSTOM_SEAT": 1}))).selections
        assert "pool:b/CUSTOM_SEAT" in one.slots


async def test_an_incremental_call_goes_to_the_cell_with_more_places(two_cells: Scheduler) -> None:
    found = await two_cells.select(Request({"VCPU": 2}, count=4, mode="incremental"))
    assert [one.cell for one in found.selections] == ["a"] * 4
