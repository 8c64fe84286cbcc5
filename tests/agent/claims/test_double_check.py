"""The double check: a host fails claims by what it measures, but must not count its claims' work as foreign."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from redsched.agent.claims.capacity_check import missing_capacity
from redsched.agent.collectors.base import Named, Observation, Work
from redsched.model import ClaimStatus, EndReason, HostReport, Inventory, Pool
from redsched.store.codec.replies import ScriptResult
from redsched.store.commands.claims import ClaimCommands
from tests.agent.conftest import H1, StartProcess, World
from tests.support.waiting import wait_until

HOST = HostReport(
    "h1",
    {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192, reserved=192)},
    external={"MEMORY_MB": 3000, "gpu0/CUSTOM_GPU_MILLI": 500},
    pools={"gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)})},
)


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ({"VCPU": 6}, ""),
        ({"VCPU": 7}, "it needs 7 VCPU: of 8 its other claims hold 2, and 0 are in use by work that no claim explains"),
        ({"MEMORY_MB": 4000}, ""),
        ({"MEMORY_MB": 4001}, "it needs 4001 MEMORY_MB: of 8000 its other claims hold 1000, and 3000"),
        (
            {"gpu0/CUSTOM_GPU_MILLI": 501},
            "it needs 501 gpu0/CUSTOM_GPU_MILLI: of 1000 its other claims hold 0, and 500",
        ),
        ({"gpu1/CUSTOM_GPU_MILLI": 1}, "the host has no gpu1/CUSTOM_GPU_MILLI"),
        ({"pool:lic/CUSTOM_SEAT": 10**9}, ""),
    ],
)
def test_what_is_missing_is_reported_with_the_numbers(amounts: dict[str, int], said: str) -> None:
    found = missing_capacity(HOST, [{"VCPU": 2}, {"MEMORY_MB": 1000}], amounts)
    assert found.startswith(said)
    assert bool(found) == bool(said)


class Machine:
    """Measures memory: the foreign amount that a test sets, and 1000 MB for each running work.

    Work without a name cannot be told from foreign work, as on a real machine.
    """

    name, cell = "h1", "c1"

    def __init__(self, period_s: float | None = 600) -> None:
        self.foreign_mb = 0
        self.period_s = period_s
        self.running: set[str] = set()
        self.works: Sequence[Work] = ()
        self.looks = 0

    def look(self, works: Sequence[Work]) -> Observation:
        self.works = works
        self.looks += 1
        named = {work.claim_id for work in works if work.named is not None}
        complete = len(named) == len(works)
        used_mb = self.foreign_mb + 1000 * len(self.running - named)
        return Observation(H1, {"MEMORY_MB": used_mb}, frozenset({"MEMORY_MB"} if complete else ()))


ALL = {"MEMORY_MB": 8192}


@pytest.fixture
def looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every start measure the host again, however slow the machine under test is."""
    monkeypatch.setattr("redsched.agent.monitor.FRESH_S", 0.0)
    monkeypatch.setattr("redsched.agent.monitor.CHEAP_S", 3600.0)


NAMES_ITSELF = "echo cgroup: a.slice"


@pytest.mark.usefixtures("looks_anew")
async def test_what_has_come_since_the_last_report_fails_a_claim(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store still shows an empty host, since the last measurement is ten minutes old."""
    machine = Machine()
    await world.start([machine], hook=world.hook)
    machine.foreign_mb = 640
    await world.place("a", ALL)
    assert (await world.reaches("a", ClaimStatus.ENDED)).end_reason is EndReason.FAILED
    assert world.calls() == []
    assert "8192 MEMORY_MB: of 8192 its other claims hold 0, and 640" in capsys.readouterr().out
    await world.place("b", {"MEMORY_MB": 8192 - 640})
    await world.reaches("b", ClaimStatus.ACTIVE)


async def test_a_look_that_takes_long_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.agent.monitor.FRESH_S", 0.0)
    monkeypatch.setattr("redsched.agent.monitor.CHEAP_S", -1.0)
    machine = Machine()
    await world.start([machine], hook=world.hook)
    looks, machine.foreign_mb = machine.looks, 640
    await world.place("a", ALL)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert machine.looks == looks


async def test_claims_that_start_together_share_a_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.agent.monitor.FRESH_S", 3600.0)
    machine = Machine()
    await world.start([machine], hook=world.hook)
    looks = machine.looks
    for number in range(5):
        await world.place(f"a{number}", {"VCPU": 1})
    for number in range(5):
        await world.reaches(f"a{number}", ClaimStatus.ACTIVE)
    assert machine.looks == looks


@pytest.mark.usefixtures("looks_anew")
async def test_a_claim_that_was_released_before_it_was_accepted_fails_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has given its amounts to another claim while its host waits for the reply to `accept`."""
    asked, replies, accept = asyncio.Event(), asyncio.Event(), ClaimCommands.accept

    async def accept_late(self: ClaimCommands, host: str, claim_id: str, *rest: Any) -> ScriptResult:
        if claim_id != "a":
            return await accept(self, host, claim_id, *rest)
        await self.release(host, claim_id)
        asked.set()
        await replies.wait()
        return await accept(self, host, claim_id, *rest)

    monkeypatch.setattr(ClaimCommands, "accept", accept_late)
    machine = Machine()
    await world.start([machine], hook=world.hook)
    await world.place("a", ALL)
    await asked.wait()
    looks = machine.looks
    await world.place("b", ALL)
    await wait_until(lambda: machine.looks > looks + 1)
    replies.set()
    await world.reaches("b", ClaimStatus.ACTIVE)


@pytest.mark.usefixtures("looks_anew")
async def test_the_work_of_other_claims_is_not_foreign(world: World) -> None:
    world.on("start", NAMES_ITSELF)
    machine = Machine()
    await world.start([machine], hook=world.hook)
    await world.place("a", {"MEMORY_MB": 1000})
    await world.reaches("a", ClaimStatus.ACTIVE)
    machine.running.add("a")
    await world.place("b", {"MEMORY_MB": 8192 - 1000})
    await world.reaches("b", ClaimStatus.ACTIVE)
    assert [work.claim_id for work in machine.works] == ["a"], "of b nothing was there to be measured"
    assert [work.named for work in machine.works] == [Named(cgroup="a.slice")]


async def test_a_claims_own_work_from_before_a_crash_is_not_foreign_to_it(
    world: World, start_process: StartProcess
) -> None:
    """Its hook was interrupted after it had begun the work, so the second start finds that work running."""
    world.on("start", "sleep 60")
    agent = await start_process(world)
    await world.place("a", {"MEMORY_MB": 8000}, lease_s=60)
    await wait_until(lambda: bool(world.calls("start")))
    agent.kill()
    world.on("start", NAMES_ITSELF)
    machine = Machine()
    machine.running.add("a")
    await world.start([machine], hook=world.hook)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert (await world.host()).get("external.MEMORY_MB", "0") == "0"


async def test_work_whose_journal_was_lost_is_not_foreign_to_its_claims(world: World) -> None:
    """The new journal is empty, and the work fills the host: counted as foreign, it would fail its own claim."""
    world.on("start", NAMES_ITSELF)
    machine = Machine()
    agent = await world.start([machine], hook=world.hook)
    await world.place("a", {"MEMORY_MB": 8000})
    await world.reaches("a", ClaimStatus.ACTIVE)
    machine.running.add("a")
    await world.stop(agent)
    await world.lapse()
    await world.cell.raise_epoch((await world.cell.tick()).epoch)
    await world.start([machine], hook=world.hook, journal="new.sqlite")
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert (await world.host()).get("external.MEMORY_MB", "0") == "0"
    await world.cell.claims.release("h1", "a")
    machine.running.clear()
    machine.foreign_mb = 128
    await world.reaches("a", ClaimStatus.ENDED)
    assert (await world.host())["external.MEMORY_MB"] == "128", "and once it has gone, all is measured again"


async def test_a_host_that_shrank_fails_what_it_cannot_hold_any_more(world: World) -> None:
    await world.start(hook=world.hook)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.hset("rs:{c1}:host:h1", mapping={"capacity.VCPU": "100", "max.VCPU": "100"})
    await world.place("large", {"VCPU": 9})
    assert (await world.reaches("large", ClaimStatus.ENDED)).end_reason is EndReason.FAILED
