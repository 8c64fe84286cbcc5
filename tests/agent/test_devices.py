"""A device keeps the name of its pool, whatever number it has: a claim on it stays a claim on it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from redsched.agent.collectors.base import LocalWork, Observation
from redsched.agent.device_pools import named_devices, with_names
from redsched.agent.forget import forget_device
from redsched.agent.journal.journal import open_journal
from redsched.agent.machine.collector import MachineCollector
from redsched.agent.machine.nvidia import Gpus
from redsched.errors import ClaimState, InvalidRequest, OtherAgent
from redsched.model import ClaimStatus, EndReason, HostReport, Inventory, Pool
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from tests.agent.conftest import H1, World
from tests.agent.journal.test_journal import placing
from tests.support.fleets.nvml import GIB, StandInGpu, StandInNvml
from tests.support.waiting import wait_until

A, B, C = "GPU-aaaa", "GPU-bbbb", "GPU-cccc"
SHARE = "CUSTOM_GPU_MILLI"


def gpu(uuid: str, processes: Mapping[int, int | None] | None = None) -> StandInGpu:
    return StandInGpu(bus_id=f"00000000:{'3B' if uuid == A else '5E'}:00.0", uuid=uuid, processes=dict(processes or {}))


def machine(nvml: StandInNvml) -> MachineCollector:
    """Return the collector of this machine, as host h1 with these GPUs."""
    settings = Settings.model_validate({"host_name": "h1", "collect_s": 0.05, "lease_s": 30})
    return MachineCollector(settings, gpus=Gpus(nvml.module))


def declared(*devices: str) -> HostReport:
    """Return a host of a fleet file with these devices, by their present numbers."""
    pools = {f"gpu{number}": Pool({SHARE: Inventory(1000)}, device=one) for number, one in enumerate(devices)}
    return HostReport("h1", {"VCPU": Inventory(8)}, pools=pools, lease_s=30)


async def gpus_of(world: World) -> dict[str, tuple[str, str]]:
    """Return the device and the shares of each pool, as the store has them."""
    host = await world.host()
    pools = [name.removeprefix("pool.") for name in host if name.startswith("pool.gpu")]
    return {pool: (host.get(f"device.{pool}", ""), host.get(f"total.{pool}/{SHARE}", "")) for pool in sorted(pools)}


async def becomes(world: World, wanted: Mapping[str, tuple[str, str]]) -> None:
    async def is_so() -> bool:
        return await gpus_of(world) == wanted

    await wait_until(is_so, what=f"the GPUs are {wanted}")


async def test_a_gpu_that_falls_off_does_not_pass_its_name_to_the_next_one(world: World) -> None:
    """The driver numbers the GPUs anew: GPU 1, on which a claim runs, is number 0 from now on."""
    nvml = StandInNvml([gpu(A), gpu(B)])
    task = await world.start([machine(nvml)])
    await world.place("a", {f"gpu0/{SHARE}": 500})
    await world.place("b", {f"gpu1/{SHARE}": 1000})
    for claim_id in ("a", "b"):
        await world.reaches(claim_id, ClaimStatus.ACTIVE)
    del nvml.gpus[0]
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})
    host = await world.host()
    assert host[f"over.gpu0/{SHARE}"] == "1", "reported as hardware that shrank under its claims"
    assert f"over.gpu1/{SHARE}" not in host
    for pool in ("gpu0", "gpu1"):
        await world.place("more", {f"{pool}/{SHARE}": 1}, outcome=Outcome.FULL)
    await world.stop(task)
    await world.start([machine(nvml)])
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})
    nvml.gpus.append(gpu(A))
    await becomes(world, {"gpu0": (A, "1000"), "gpu1": (B, "1000")})
    assert f"over.gpu0/{SHARE}" not in await world.host()
    assert [(await world.reaches(one, ClaimStatus.ACTIVE)).slots for one in ("a", "b")] == [
        {f"gpu0/{SHARE}": 500},
        {f"gpu1/{SHARE}": 1000},
    ]


@pytest.mark.parametrize("world", ["redis", "rest"], indirect=True)
async def test_a_new_journal_gives_devices_the_names_that_the_store_has(world: World) -> None:
    """The journal was lost with the GPU: the claims in the store are on slots of the old names."""
    agent = await world.start([declared(A, B)])
    await world.place("b", {f"gpu1/{SHARE}": 1000})
    await world.reaches("b", ClaimStatus.ACTIVE)
    await world.stop(agent)
    await world.lapse()
    await world.start([declared(B)], journal="new.sqlite")
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})
    assert (await world.reaches("b", ClaimStatus.ACTIVE)).slots == {f"gpu1/{SHARE}": 1000}


async def test_an_agent_that_measures_asks_the_store_too(world: World) -> None:
    nvml = StandInNvml([gpu(A), gpu(B)])
    agent = await world.start([machine(nvml)])
    await world.place("b", {f"gpu1/{SHARE}": 1000})
    await world.reaches("b", ClaimStatus.ACTIVE)
    await world.stop(agent)
    await world.lapse()
    await world.start([machine(StandInNvml([gpu(B)]))], journal="new.sqlite")
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})


async def test_a_machine_that_was_replaced_without_claims_begins_with_its_own_numbers(world: World) -> None:
    agent = await world.start([declared(A, B)])
    await world.stop(agent)
    await world.lapse()
    await world.start([declared(C)], journal="new.sqlite")
    await becomes(world, {"gpu0": (C, "1000")})


async def test_the_names_of_an_earlier_release_become_those_of_the_devices(world: World) -> None:
    """It named no devices: each gets the name of the number that it has when the upgraded agent first sees it."""
    earlier = declared(A, B)
    pools = {name: Pool(pool.inventories) for name, pool in earlier.pools.items()}
    agent = await world.start([HostReport("h1", earlier.inventories, pools=pools, lease_s=30)])
    await world.place("b", {f"gpu1/{SHARE}": 1000})
    await world.reaches("b", ClaimStatus.ACTIVE)
    await world.stop(agent)
    agent = await world.start([earlier])
    await becomes(world, {"gpu0": (A, "1000"), "gpu1": (B, "1000")})
    await world.stop(agent)
    await world.start([declared(B)])
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})
    await world.reaches("b", ClaimStatus.ACTIVE)


async def test_a_process_on_a_gpu_whose_claim_holds_another_one_is_external(world: World) -> None:
    """Also right after an upgrade, before which nobody knew which GPU a claim holds."""
    me = os.getpid()
    world.on("start", f"echo pids: {me}")
    nvml = StandInNvml([gpu(A), gpu(B, {me: 4 * GIB})])
    await world.start([machine(nvml)], hook=world.hook)
    await world.place("b", {f"gpu1/{SHARE}": 600})
    await world.reaches("b", ClaimStatus.ACTIVE)

    async def externals() -> list[str]:
        host = await world.host()
        return [host.get(f"external.{pool}/{SHARE}", "0") for pool in ("gpu0", "gpu1")]

    async def is_external(wanted: list[str]) -> bool:
        return await externals() == wanted

    await wait_until(lambda: is_external(["0", "0"]), what="its own GPU")
    nvml.gpus[0].processes[me] = 4 * GIB
    await wait_until(lambda: is_external(["250", "0"]), what="a quarter of the other one is in use")


async def test_the_first_look_after_an_upgrade_knows_whose_processes_are_whose(world: World) -> None:
    me = os.getpid()
    world.on("start", f"echo pids: {me}")
    agent = await world.start([machine(StandInNvml([gpu(A)]))], hook=world.hook)
    await world.place("a", {f"gpu0/{SHARE}": 1000})
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    journal = open_journal(world.folder / "journal.sqlite")
    journal._connection.execute("DELETE FROM meta WHERE name LIKE 'devices:%'")  # as of an earlier release
    journal._connection.commit()
    await journal.close()
    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.hdel(world.cell.keys.attributes("h1"), "device.gpu0")
    await world.start([machine(StandInNvml([gpu(A, {me: 4 * GIB})]))], hook=world.hook)
    await becomes(world, {"gpu0": (A, "1000")})
    assert (await world.host()).get(f"external.gpu0/{SHARE}", "0") == "0"


async def test_hooks_learn_which_devices_a_claim_holds(world: World) -> None:
    world.on("start", f"cat > {world.folder}/order")
    world.on("stop", f"cat > {world.folder}/stopped")
    agent = await world.start([declared(A, B)], hook=world.hook)
    await world.stop(agent)
    await world.start([declared(B)], hook=world.hook)
    await world.place("b", {f"gpu1/{SHARE}": 1000, "VCPU": 1})
    await world.reaches("b", ClaimStatus.ACTIVE)
    await world.cell.claims.release("h1", "b")
    await world.reaches("b", ClaimStatus.ENDED)
    for file in ("order", "stopped"):
        assert '"devices": {"gpu1": "GPU-bbbb"}' in (world.folder / file).read_text()


async def test_a_claim_on_a_gpu_that_is_gone_fails_and_is_not_started_on_another(world: World) -> None:
    nvml = StandInNvml([gpu(A), gpu(B)])
    agent = await world.start([machine(nvml)])
    await world.stop(agent)
    del nvml.gpus[0]
    await world.place("a", {f"gpu0/{SHARE}": 1000})
    await world.start([machine(nvml)])
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.FAILED


async def test_a_device_that_was_replaced_for_good_is_forgotten(world: World) -> None:
    """Its successor has the lowest free number, and its own name once that is free."""
    settings = Settings(journal=str(world.folder / "journal.sqlite"))
    agent = await world.start([declared(A, B)])
    await world.place("a", {f"gpu0/{SHARE}": 1000})
    await world.reaches("a", ClaimStatus.ACTIVE)
    with pytest.raises(OtherAgent):
        await forget_device(settings, [H1], "gpu0")
    await world.stop(agent)
    with pytest.raises(ClaimState, match=r"1 claim holds amounts of pool gpu0, which is device GPU-aaaa: a\. Start"):
        await forget_device(settings, [H1], "gpu0")
    agent = await world.start([declared(C, B)])
    await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000"), "gpu2": (C, "1000")})
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    await world.stop(agent)
    assert await forget_device(settings, [H1], "gpu0") == A
    assert await forget_device(settings, [H1], "h1/gpu2") == C
    await world.start([declared(C, B)])
    await becomes(world, {"gpu0": (C, "1000"), "gpu1": (B, "1000")})


@pytest.mark.parametrize(
    ("hosts", "pool", "said"),
    [
        (["h1"], "gpu9", r"has no device of pool 'gpu9'; those of host h1: gpu0 \(GPU-aaaa\)$"),
        (["h1", "h2"], "gpu0", "pool 'gpu0' is of no host of this agent: use HOST/POOL, with a host such as h1"),
        (["h1"], "h3/gpu0", "pool 'h3/gpu0' is of no host"),
        (["h1", "h2"], "h2/gpu0", "those of host h2: none"),
    ],
)
async def test_what_cannot_be_forgotten_is_named(tmp_path: Path, hosts: list[str], pool: str, said: str) -> None:
    settings = Settings(journal=str(tmp_path / "j.sqlite"))
    reports = [HostReport(name, {"VCPU": Inventory(8)}) for name in hosts]
    with pytest.raises(InvalidRequest, match=r"there is no journal .*: set REDSCHED_JOURNAL"):
        await forget_device(settings, reports, f"{hosts[0]}/gpu0")
    journal = open_journal(tmp_path / "j.sqlite")
    await journal.write_devices("h1", {"gpu0": A})
    await journal.close()
    with pytest.raises(InvalidRequest, match=said):
        await forget_device(settings, reports, pool)


async def test_once_all_are_forgotten_the_store_is_not_asked_for_them(world: World) -> None:
    """It has the names of the last report, in which the forgotten device has its pool."""
    agent = await world.start([declared(A)])
    await world.place("a", {"VCPU": 1})
    await world.reaches("a", ClaimStatus.ACTIVE)
    await world.stop(agent)
    await forget_device(Settings(journal=str(world.folder / "journal.sqlite")), [H1], "gpu0")
    await world.start([declared(B)])
    await becomes(world, {"gpu0": (B, "1000")})


async def test_devices_that_are_gone_or_back_are_logged_once(world: World) -> None:
    nvml = StandInNvml([gpu(A), gpu(B)])
    with capture_logs() as logs:
        await world.start([machine(nvml)])
        first = nvml.gpus.pop(0)
        await becomes(world, {"gpu0": (A, ""), "gpu1": (B, "1000")})
        nvml.gpus.append(first)
        await becomes(world, {"gpu0": (A, "1000"), "gpu1": (B, "1000")})
    about = [(one["event"], one["pool"], one["device"]) for one in logs if "device" in one]
    assert about == [("a device is gone, its pool has nothing to give", "gpu0", A), ("a device is back", "gpu0", A)]


# -- the names


def pools(**devices: str) -> dict[str, Pool]:
    return {name: Pool({SHARE: Inventory(1000)}, device=device) for name, device in devices.items()}


@pytest.mark.parametrize(
    ("known", "reported", "named"),
    [
        ({}, {}, {}),
        ({}, {"numa0": "", "gpu0": A, "gpu1": B}, {"gpu0": A, "gpu1": B}),
        ({"gpu0": A, "gpu1": B}, {"gpu0": B}, {"gpu0": A, "gpu1": B}),
        ({"gpu0": A, "gpu1": B}, {"gpu0": B, "gpu1": A}, {"gpu0": A, "gpu1": B}),
        ({"gpu0": A}, {"gpu0": B, "gpu1": A}, {"gpu0": A, "gpu1": B}),
        ({"gpu0": A, "gpu1": B}, {"gpu0": B, "gpu1": C}, {"gpu0": A, "gpu1": B, "gpu2": C}),
        ({"gpu0": A, "gpu2": B}, {"gpu0": C}, {"gpu0": A, "gpu1": C, "gpu2": B}),
        ({"gpu0": A}, {"gpu0": B, "gpu1": C}, {"gpu0": A, "gpu1": C, "gpu2": B}),
        ({"gpu0": A}, {"gpu0": B, "gpu1": ""}, {"gpu0": A, "gpu2": B}),
        ({"gpu0": A}, {"gpu0": "", "card": A}, {"card": A}),
        ({"card": A}, {"card": B}, {"card": A, "card0": B}),
        ({"x" * 63: A}, {"x" * 63: B}, {"x" * 63: A, "x" * 62 + "0": B}),
    ],
)
def test_a_device_keeps_its_name_and_a_new_one_gets_a_free_one(
    known: dict[str, str], reported: dict[str, str], named: dict[str, str]
) -> None:
    assert named_devices(known, pools(**reported)) == named
    assert named_devices(named, pools(**reported)) == named


def test_everything_about_a_pool_follows_its_device() -> None:
    """Pools below it, usage, metrics, local work; not what belongs to pools that only begin like it."""
    report = HostReport(
        "h1",
        {"VCPU": Inventory(8)},
        pools=pools(gpu1=A, gpu10=C) | {"part": Pool({"VGPU": Inventory(4)}, "gpu1"), "numa0": Pool()},
        external={f"gpu1/{SHARE}": 5, "part/VGPU": 1, "VCPU": 1},
        metrics={"gpu1.percent": 7.0, "gpu10.percent": 9.0, "cpu.percent": 3.0},
    )
    local = LocalWork("w", {f"gpu1/{SHARE}": 10, "VCPU": 1})
    seen = Observation(report, {f"gpu1/{SHARE}": 5, "VCPU": 1}, frozenset({f"gpu1/{SHARE}", "VCPU"}), (local,))
    found = with_names(seen, {"gpu4": A, "gpu10": C, "gpu1": B})
    assert found.report == HostReport(
        "h1",
        {"VCPU": Inventory(8)},
        pools=pools(gpu4=A, gpu10=C)
        | {"part": Pool({"VGPU": Inventory(4)}, "gpu4"), "numa0": Pool(), "gpu1": Pool(device=B)},
        external={f"gpu4/{SHARE}": 5, "part/VGPU": 1, "VCPU": 1},
        metrics={"gpu4.percent": 7.0, "gpu10.percent": 9.0, "cpu.percent": 3.0},
    )
    assert found.unexplained == {f"gpu4/{SHARE}": 5, "VCPU": 1}
    assert found.trusted == {f"gpu4/{SHARE}", "VCPU"}
    assert found.local == (LocalWork("w", {f"gpu4/{SHARE}": 10, "VCPU": 1}),)


def test_an_observation_without_a_change_of_names_is_left_as_it_is() -> None:
    seen = Observation(declared(A, B))
    assert with_names(seen, {"gpu0": A, "gpu1": B}) is seen


def test_more_pools_than_a_host_may_have_leave_out_devices_that_are_gone() -> None:
    gone = {f"gpu{number}": f"GPU-{number}" for number in range(300)}
    assert len(with_names(Observation(declared(A)), gone | {"card": A}).report.pools) == 256


def test_two_pools_are_not_one_device() -> None:
    with pytest.raises(InvalidRequest, match="pools 'gpu0' and 'gpu1' are both device 'GPU-aaaa': name it in one"):
        declared(A, A)
    with pytest.raises(InvalidRequest, match="device 'GPU a' is not a device id: use its UUID or PCI address"):
        Pool(device="GPU a")


async def test_the_journal_keeps_the_names(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    await journal.write_devices("h1", {"gpu0": A, "gpu1": B})
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.devices == {"h1": {"gpu0": A, "gpu1": B}}
    work = placing("a", 7)
    held: Sequence[Any] = [
        journal.devices_of("h1", work.with_amounts(amounts, {}, {}))
        for amounts in ({}, {"VCPU": 1, f"gpu1/{SHARE}": 5}, {f"gpu0/{SHARE}": 5, f"gpu1/{SHARE}": 5}, {"gpu7/VGPU": 1})
    ]
    assert held == [{}, {"gpu1": B}, {"gpu0": A, "gpu1": B}, {}]
    assert journal.devices_of("h2", work) == {}
    assert journal.devices_of("h1", work.with_amounts({}, {f"gpu0/{SHARE}": 1}, {})) == {"gpu0": A}
    await journal.close()
