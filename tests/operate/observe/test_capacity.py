"""Capacity: sums over hosts and shared pools, and the largest place."""

from dataclasses import replace

import pytest

from redsched.model import Aggregate, HostReport, Inventory, Pool, Request, SharedPool
from redsched.model.records.capacity import CapacityBy, ClassCapacity
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from tests.scheduler.conftest import report_all
from tests.support.store_users import url_as

GPU = "CUSTOM_GPU_MILLI"
QUIET = Settings(events_keep_s=0, check_s=0, pick_from=1)
REPORTS = [
    HostReport(
        "h1",
        {"VCPU": Inventory(8)},
        zone="az1",
        external={"VCPU": 1},
        pools={f"gpu{one}": Pool({GPU: Inventory(1000)}) for one in range(2)},
        lease_s=3600,
    ),
    HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", lease_s=3600),
    HostReport("h3", {"VCPU": Inventory(16)}, zone="az2", lease_s=3600),
]


@pytest.fixture
async def filled(clean_store: str) -> str:
    """Return a store in which h1 has claims of web and db, and h3 is disabled."""
    async with Scheduler.connect(clean_store, QUIET) as scheduler:
        await scheduler.init()
        await report_all(scheduler, REPORTS)
        await scheduler.aggregates.put(Aggregate("ssd", {}, frozenset({"h1", "h2"})))
        await scheduler.aggregates.put(Aggregate("gpu", {}, frozenset({"h1"})))
        await scheduler.shared_pools.put(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5)}))
        await scheduler.select(Request({"VCPU": 2, GPU: 600}, project="web", hosts=frozenset({"h1"})))
        await scheduler.select(Request({"VCPU": 1}, project="db", hosts=frozenset({"h1"})))
        await scheduler.hosts.disable("h3")
    return clean_store


async def of(url: str, by: CapacityBy | None = None) -> dict[str, dict[str, ClassCapacity]]:
    """Return the capacity as a reader without a replica sees it."""
    async with Scheduler.connect(url_as(url, StoreRole.READER), QUIET, read_only=True) as reader:
        return {row.name: dict(row.classes) for row in await reader.capacity(by)}


async def test_all_of_it(filled: str) -> None:
    """A host that takes no claims has its free amounts apart."""
    (everything,) = (await of(filled)).values()
    assert everything.keys() == {"VCPU", GPU, "CUSTOM_SEAT"}
    assert replace(everything["VCPU"], largest_at="") == ClassCapacity(28, 3, 1, 8, 16, 4)
    assert everything["CUSTOM_SEAT"] == ClassCapacity(5, 0, 0, 5, 0, 5, "pool:licences")
    gpus = everything[GPU]
    assert (gpus.total, gpus.claimed, gpus.free, gpus.largest) == (2000, 600, 1400, 1000)
    assert gpus.largest_at in ("h1 gpu0", "h1 gpu1")


async def test_the_largest_amount_is_one_that_a_claim_can_take(filled: str) -> None:
    """At most max_unit, and in its steps, however much more is free."""
    inventory = Inventory(100, max_unit=10, step_size=4)
    async with Scheduler.connect(filled, QUIET) as scheduler:
        await report_all(scheduler, [HostReport("large", {"VCPU": inventory, "MEMORY_MB": inventory}, lease_s=3600)])
        await scheduler.shared_pools.put(SharedPool("licences", {"CUSTOM_SEAT": Inventory(5, max_unit=2)}))
        claimed = await scheduler.select(Request({"MEMORY_MB": 8}))
        assert claimed.selections[0].host == "large"
    (found,) = (await of(filled)).values()
    assert (found["VCPU"].largest, found["VCPU"].largest_at) == (8, "large")
    assert (found["MEMORY_MB"].free, found["MEMORY_MB"].largest) == (92, 8)
    assert (found["CUSTOM_SEAT"].free, found["CUSTOM_SEAT"].largest) == (5, 2)


async def test_what_is_kept_for_requests_that_wait_counts_apart(filled: str) -> None:
    """As far as it is free: h1 has 4 of its 8 VCPU left, and all of gpu1 is kept."""
    async with Scheduler.connect(filled, QUIET) as scheduler:
        cell = scheduler.cells.named("c1").store
        await cell.reservations.put("h1", "r1", {"VCPU": 8, f"gpu1/{GPU}": 1000}, 60_000, 0, 9)
    (found,) = (await of(filled)).values()
    assert replace(found["VCPU"], largest_at="") == ClassCapacity(28, 3, 1, 4, 16, 4, kept=4)
    gpus = found[GPU]
    assert gpus.claimed + gpus.kept + gpus.free == gpus.total == 2000
    assert (gpus.external, gpus.kept + gpus.free) == (0, 1400)
    assert gpus.kept in (400, 1000), "gpu1 may be the one with the claim"


async def test_by_zone(filled: str) -> None:
    zones = await of(filled, CapacityBy.ZONE)
    assert {zone: classes["VCPU"].total for zone, classes in zones.items()} == {"az1": 8, "az2": 20}
    assert zones["az2"]["VCPU"] == ClassCapacity(20, 0, 0, 4, 16, 4, "h2")


async def test_by_aggregate(filled: str) -> None:
    """A host in two aggregates counts in both; those in none are under ''."""
    found = await of(filled, CapacityBy.AGGREGATE)
    assert {name: classes["VCPU"].total for name, classes in found.items()} == {"ssd": 12, "gpu": 8, "": 16}


async def test_by_project(filled: str) -> None:
    found = await of(filled, CapacityBy.PROJECT)
    assert found["web"] == {
        "VCPU": ClassCapacity(total=28, claimed=2),
        GPU: ClassCapacity(total=2000, claimed=600),
    }
    assert found["db"] == {"VCPU": ClassCapacity(total=28, claimed=1)}


async def test_a_replica_gives_the_same(filled: str) -> None:
    async with Scheduler.connect(filled, QUIET) as scheduler:
        for by in (None, *CapacityBy):
            rows = {row.name: dict(row.classes) for row in await scheduler.capacity(by)}
            apart = await of(filled, by)
            assert {of_: {name: one.total for name, one in classes.items()} for of_, classes in rows.items()} == {
                of_: {name: one.total for name, one in classes.items()} for of_, classes in apart.items()
            }


async def test_an_empty_cell(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, QUIET) as scheduler:
        await scheduler.init()
    assert await of(clean_store) == {"": {}}
    assert await of(clean_store, CapacityBy.ZONE) == {}
    assert await of(clean_store, CapacityBy.PROJECT) == {}
