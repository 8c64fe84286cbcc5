"""Declared objects are written to their cells, read back unchanged, and deleted while in use only by force."""

import pytest

from redsched.errors import ClaimState, NotFound, Settling
from redsched.model import Aggregate, GroupPolicy, Inventory, ServerGroup, SharedPool
from redsched.scheduler import Scheduler
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import call_of, member, new_epoch

GROUP = ServerGroup("web", GroupPolicy.ANTI_AFFINITY, count_by=("label:rack",))
SEATS = SharedPool("seats", {"CUSTOM_SEAT": Inventory(10)})


async def join(scheduler: Scheduler, cell: str, host: str, claim_id: str, group: str = "web") -> None:
    """Place a claim on a host as a member of a server group."""
    store = scheduler.cells.named(cell).store
    asked = member(claim_id, host, VCPU=1)
    answer = await store.claims.place(call_of(await store.tick(), type(asked)(asked.id, asked.candidates, group)))
    assert answer.outcome is Outcome.OK


async def test_an_aggregate_is_put_into_every_cell(two_cells: Scheduler) -> None:
    """It contains hosts of both cells, and each cell stores its metadata."""
    found, new = await two_cells.aggregates.put(Aggregate("ssd", {"disk": "nvme"}, frozenset(("a1", "b2"))))
    assert (found.hosts, found.metadata, new) == (("a1", "b2"), {"disk": "nvme"}, True)
    for cell in two_cells.cells:
        assert cell.updater.columns.declared.aggregates["ssd"].metadata == {"disk": "nvme"}
    assert (await two_cells.hosts.get("b2")).aggregates == {"ssd"}
    assert (await two_cells.hosts.get("b1")).aggregates == frozenset()


async def test_putting_an_aggregate_again_replaces_it_whole(two_cells: Scheduler) -> None:
    await two_cells.aggregates.put(Aggregate("ssd", {"disk": "nvme", "old": "1"}, frozenset(("a1", "b2"))))
    found, new = await two_cells.aggregates.put(Aggregate("ssd", {"disk": "sata"}, frozenset(("b1",))))
    assert (found.hosts, found.metadata, new) == (("b1",), {"disk": "sata"}, False)
    assert (await two_cells.hosts.get("a1")).aggregates == frozenset()


async def test_a_host_that_never_reported_is_named_and_nothing_is_written(two_cells: Scheduler) -> None:
    with pytest.raises(NotFound, match="b7"):
        await two_cells.aggregates.put(Aggregate("ssd", {}, frozenset(("a1", "b7"))))
    with pytest.raises(NotFound):
        await two_cells.aggregates.get("ssd")
    assert (await two_cells.hosts.get("a1")).aggregates == frozenset()


async def test_an_aggregate_with_hosts_goes_by_force_alone(two_cells: Scheduler) -> None:
    await two_cells.aggregates.put(Aggregate("ssd", {}, frozenset(("a1",))))
    with pytest.raises(ClaimState, match="1 hosts"):
        await two_cells.aggregates.delete("ssd")
    assert (await two_cells.aggregates.get("ssd")).hosts == ("a1",)
    await two_cells.aggregates.delete("ssd", force=True)
    assert (await two_cells.hosts.get("a1")).aggregates == frozenset()
    with pytest.raises(NotFound):
        await two_cells.aggregates.delete("ssd")


async def test_members_of_a_server_group_are_counted_over_all_cells(two_cells: Scheduler) -> None:
    """They are always counted by host and by zone, and by the labels in `count_by`."""
    found, new = await two_cells.server_groups.put(GROUP)
    assert (found.group, found.members, new) == (GROUP, 0, True)
    await join(two_cells, "a", "a1", "one")
    await join(two_cells, "b", "b1", "two")
    found = await two_cells.server_groups.get("web")
    assert found.members == 2
    counts = {by: dict(counted) for by, counted in found.counts.items()}
    assert counts == {"host": {"a1": 1, "b1": 1}, "zone": {"default": 2}, "label:rack": {}}


async def test_a_server_group_with_members_keeps_its_frame(two_cells: Scheduler) -> None:
    """Only max_per_host may change; a refused change is written in no cell."""
    await two_cells.server_groups.put(GROUP)
    await join(two_cells, "b", "b1", "one")
    other = ServerGroup("web", GroupPolicy.AFFINITY, count_by=("label:rack",))
    before = [await cell.store.declared.read(Kind.SERVER_GROUP, ["web"]) for cell in two_cells.cells]
    with pytest.raises(ClaimState, match="1 members"):
        await two_cells.server_groups.put(other)
    assert before == [await cell.store.declared.read(Kind.SERVER_GROUP, ["web"]) for cell in two_cells.cells]
    wider = ServerGroup("web", GroupPolicy.ANTI_AFFINITY, max_per_host=2, count_by=("label:rack",))
    found, new = await two_cells.server_groups.put(wider)
    assert (found.group.max_per_host, found.members, new) == (2, 1, False)


async def test_a_server_group_with_members_goes_by_force_alone(two_cells: Scheduler) -> None:
    """If one cell refuses the deletion, the group is deleted in none."""
    await two_cells.server_groups.put(GROUP)
    await join(two_cells, "b", "b1", "one")
    with pytest.raises(ClaimState, match="1 members"):
        await two_cells.server_groups.delete("web")
    for cell in two_cells.cells:
        assert "web" in cell.updater.columns.declared.groups
    await two_cells.server_groups.delete("web", force=True)
    with pytest.raises(NotFound):
        await two_cells.server_groups.get("web")


async def test_a_server_group_does_not_come_back_with_members_that_it_does_not_count(two_cells: Scheduler) -> None:
    """Deletion by force keeps the members; this one is on a host without a rack, so label:rack does not count it."""
    await two_cells.server_groups.put(GROUP)
    await join(two_cells, "b", "b1", "one")
    await two_cells.server_groups.delete("web", force=True)
    with pytest.raises(ClaimState, match="not all of them are counted by label:rack"):
        await two_cells.server_groups.put(GROUP)
    by_host = ServerGroup("web", GroupPolicy.AFFINITY)
    found, _ = await two_cells.server_groups.put(by_host)
    assert (found.group, found.members) == (by_host, 1)


async def test_a_shared_pool_lies_in_one_cell(two_cells: Scheduler) -> None:
    found, new = await two_cells.shared_pools.put(SEATS, "b")
    assert (found.cell, found.slots["CUSTOM_SEAT"].free, new) == ("b", 10, True)
    with pytest.raises(ClaimState, match="cell b"):
        await two_cells.shared_pools.put(SEATS, "a")
    with pytest.raises(NotFound, match="no cell 'c'"):
        await two_cells.shared_pools.put(SEATS, "c")
    assert await two_cells.shared_pools.put(SEATS, "b") == (found, False)


async def test_a_shared_pool_that_is_claimed_from_goes_by_force_alone(two_cells: Scheduler) -> None:
    """Claimed amounts survive a new declaration, and prevent a deletion without force."""
    await two_cells.shared_pools.put(SEATS, "b")
    store = two_cells.cells.named("b").store
    call = call_of(await store.tick(), member("one", "b1", **{"VCPU": 1, "pool:seats/CUSTOM_SEAT": 4}))
    assert (await store.claims.place(call)).outcome is Outcome.OK
    found, _ = await two_cells.shared_pools.put(SharedPool("seats", {"CUSTOM_SEAT": Inventory(20)}), "b")
    slot = found.slots["CUSTOM_SEAT"]
    assert (slot.total, slot.claimed, slot.free) == (20, 4, 16)
    with pytest.raises(ClaimState, match="CUSTOM_SEAT"):
        await two_cells.shared_pools.delete("seats")
    await two_cells.shared_pools.delete("seats", force=True)
    with pytest.raises(NotFound):
        await two_cells.shared_pools.get("seats")


async def test_lists_come_in_pages_by_name(two_cells: Scheduler) -> None:
    """Each object is listed once, whatever the page size and the cell of the object."""
    for number, cell in ((3, "a"), (1, "b"), (2, "a")):
        await two_cells.shared_pools.put(SharedPool(f"p{number}", {"CUSTOM_SEAT": Inventory(number)}), cell)
        await two_cells.server_groups.put(ServerGroup(f"g{number}", GroupPolicy.SOFT_AFFINITY))
        await two_cells.aggregates.put(Aggregate(f"x{number}"))
    first = await two_cells.shared_pools.list(limit=2)
    rest = await two_cells.shared_pools.list(limit=2, after=first.next or "")
    assert [one.name for one in first.items + rest.items] == ["p1", "p2", "p3"]
    assert (first.next, rest.next) == ("p2", None)
    assert [one.group.name for one in (await two_cells.server_groups.list()).items] == ["g1", "g2", "g3"]
    assert [one.name for one in (await two_cells.aggregates.list(after="x1")).items] == ["x2", "x3"]


async def test_while_a_cell_settles_unknown_is_not_said(two_cells: Scheduler) -> None:
    """A missing object may be restored before the cell has settled."""
    await new_epoch(two_cells.cells.named("b").store)
    for service in (two_cells.aggregates, two_cells.server_groups, two_cells.shared_pools):
        with pytest.raises(Settling, match="cell b"):
            await service.get("none")
    with pytest.raises(Settling):
        await two_cells.aggregates.put(Aggregate("ssd", {}, frozenset(("b9",))))
