"""Claims on pools, on their host: from the store through the journal to the hook, and restored after a wipe."""

import json
from collections.abc import Sequence

from redsched.agent.collectors.base import Observation, Work
from redsched.model import ClaimStatus, GroupPolicy, HostReport, Inventory, Pool, ServerGroup, SharedPool
from redsched.store.codec.keys import Kind
from tests.agent.conftest import LEASE_S, World
from tests.support.waiting import wait_until

REPORT = HostReport(
    "h1",
    {"DISK_GB": Inventory(100)},
    zone="az1",
    labels={"rack": "r4"},
    lease_s=LEASE_S,
    pools={
        "numa0": Pool({"PCPU": Inventory(4), "MEMORY_MB": Inventory(8192)}),
        "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, "numa0", frozenset({"CUSTOM_GPU_T4"})),
    },
)
LICENCES = SharedPool("lic", {"CUSTOM_SEAT": Inventory(5)})
SLOTS = {"numa0/PCPU": 2, "gpu0/CUSTOM_GPU_MILLI": 250, "pool:lic/CUSTOM_SEAT": 1}


async def test_a_claim_on_pools_reaches_the_hook_with_its_slots(world: World) -> None:
    await world.cell.declared.put_pool(LICENCES)
    world.on("start", f"cat > {world.folder}/told")
    await world.start([REPORT], hook=world.hook)
    await world.place("a", SLOTS)
    await world.reaches("a", ClaimStatus.ACTIVE)
    told = json.loads((world.folder / "told").read_text())
    assert (told["verb"], told["host"], told["slots"]) == ("start", "h1", SLOTS)
    host = await world.host()
    assert (host["claimed.gpu0/CUSTOM_GPU_MILLI"], host["claimed.numa0/PCPU"]) == ("250", "2")


async def test_what_came_back_to_a_store_that_forgot_holds_its_pools_and_counts_in_its_group(world: World) -> None:
    group = ServerGroup("db", GroupPolicy.ANTI_AFFINITY, count_by=("label:rack",))
    await world.cell.declared.put_pool(LICENCES)
    await world.cell.declared.put_group(group)
    await world.start([REPORT])
    await world.place("a", SLOTS, group="db")
    claim = await world.reaches("a", ClaimStatus.ACTIVE)
    assert (claim.server_group, dict(claim.counted)) == ("db", {"zone": "az1", "label:rack": "r4"})
    world.flush()
    back = await world.reaches("a", ClaimStatus.ACTIVE)
    assert (dict(back.slots), back.server_group, dict(back.counted)) == (SLOTS, claim.server_group, dict(claim.counted))
    assert (await world.host())["claimed.gpu0/CUSTOM_GPU_MILLI"] == "250"
    await world.cell.declared.put_pool(LICENCES)
    await world.cell.declared.put_group(group)
    groups = await world.cell.declared.read(Kind.SERVER_GROUP, ["db"])
    pools = await world.cell.declared.read(Kind.POOL, ["lic"])
    assert groups["db"]["count.label:rack=r4"] == "1"
    assert pools["lic"]["claimed.CUSTOM_SEAT"] == "1"


class Measured:
    """Host h1, with external usage of its GPU that the test sets."""

    name, cell = "h1", "c1"

    def __init__(self) -> None:
        self.period_s: float | None = 0.02
        self.held = 0

    def look(self, works: Sequence[Work]) -> Observation:
        slot = "gpu0/CUSTOM_GPU_MILLI"
        return Observation(REPORT, {slot: self.held}, frozenset({slot}))


async def test_external_usage_of_a_pool_reaches_the_store(world: World) -> None:
    collector = Measured()
    await world.start([collector])
    collector.held = 333

    async def is_there() -> bool:
        return (await world.host()).get("external.gpu0/CUSTOM_GPU_MILLI") == "350"

    await wait_until(is_there, what="external usage, in steps of 50")
