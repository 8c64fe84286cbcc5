"""Many hosts in one process, and the effects of a host's own measurements, against real servers."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from redsched.agent import agent as agent_module, host_session
from redsched.agent.agent import Agent
from redsched.agent.collectors.base import Observation, Work
from redsched.agent.collectors.fleet import simulated
from redsched.agent.host_session import BEATS_IN_LEASE
from redsched.agent.inbox import FEW
from redsched.agent.journal.file import JournalBroken
from redsched.agent.journal.journal import Journal
from redsched.agent.machine.collector import MachineCollector
from redsched.agent.rest import heartbeats
from redsched.agent.rest.heartbeats import GATHERED_IN_LEASE
from redsched.agent.run import default_journal, run
from redsched.errors import InvalidRequest
from redsched.model import ClaimStatus, HostReport
from redsched.settings import Settings
from redsched.store.client.script_client import ScriptClient
from redsched.store.commands.hosts import HostCommands
from tests.agent.conftest import H1, World, quick
from tests.support.waiting import wait_until

FLEET = simulated(20)
SHORT_LEASES = simulated(20, lease_s=6)


async def place_on_each(world: World, prefix: str) -> list[str]:
    ids = [f"{prefix}{number}" for number in range(len(FLEET))]
    for claim_id, report in zip(ids, FLEET, strict=True):
        await world.place(claim_id, {"VCPU": 1}, host=report.name)
    return ids


async def all_are(world: World, ids: list[str], state: ClaimStatus) -> None:
    others: list[str] = []

    async def are() -> bool:
        claims = await world.cell.claims.read(ids)
        found = {one: claims[one].state if one in claims else "unknown" for one in ids}
        others[:] = [f"{one} is {its_state}" for one, its_state in found.items() if its_state is not state]
        return not others

    try:
        await wait_until(are, timeout=80, what=f"all are {state}")
    except AssertionError as error:
        raise AssertionError(f"{error}; {others}") from None


async def test_a_fleet_accepts_and_ends_claims(world: World) -> None:
    assert len(FLEET) > FEW
    await world.start(FLEET)
    ids = await place_on_each(world, "a")
    await all_are(world, ids, ClaimStatus.ACTIVE)
    for claim_id, report in zip(ids, FLEET, strict=True):
        await world.cell.claims.release(report.name, claim_id)
    await all_are(world, ids, ClaimStatus.ENDED)


@pytest.mark.parametrize("world", ["redis"], indirect=True)  # the API reads the inboxes of all hosts that wait
async def test_hosts_without_notifications_are_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.start(FLEET, compare_s=600)
    await all_are(world, await place_on_each(world, "first"), ClaimStatus.ACTIVE)
    names: list[str] = []
    inboxes = HostCommands.inboxes

    async def noted(self: HostCommands, hosts: Sequence[str], after: str = "0-0") -> object:
        names.extend(hosts)
        return await inboxes(self, hosts, after)

    monkeypatch.setattr(HostCommands, "inboxes", noted)
    await world.place("a", {"VCPU": 1}, host=FLEET[7].name)
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert set(names) == {FLEET[7].name}


async def test_hosts_without_claims_open_with_two_calls_each(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their claims nor their tombstones are read: the script and the journal know that there are none."""
    calls = list[str]()
    run_script, read_journal = ScriptClient.run, Journal._read

    async def noted(self: ScriptClient, name: str, *arguments: object, **options: object) -> object:
        calls.append(name)
        return await run_script(self, name, *arguments, **options)  # type: ignore[arg-type]

    async def noted_read(self: Journal, read: object) -> object:
        calls.append("journal")
        return await read_journal(self, read)  # type: ignore[arg-type]

    async def noted_ids(self: HostCommands, host: str) -> object:
        calls.append("ids")
        return await claim_ids(self, host)

    claim_ids = HostCommands.claim_ids
    monkeypatch.setattr(ScriptClient, "run", noted)
    monkeypatch.setattr(Journal, "_read", noted_read)
    monkeypatch.setattr(HostCommands, "claim_ids", noted_ids)
    await world.start(FLEET)
    assert [calls.count(one) for one in ("report", "attest", "journal", "ids")] == [len(FLEET), len(FLEET), 0, 0]


async def test_a_fleet_comes_back_after_a_flush(world: World) -> None:
    await world.start(FLEET)
    ids = await place_on_each(world, "a")
    await all_are(world, ids, ClaimStatus.ACTIVE)
    world.flush()
    await all_are(world, ids, ClaimStatus.ACTIVE)
    more = await place_on_each(world, "b")
    await all_are(world, more, ClaimStatus.ACTIVE)


async def test_a_fleet_lives_on_its_heartbeats(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the usual rate, over both links."""
    monkeypatch.setattr(host_session, "BEATS_IN_LEASE", BEATS_IN_LEASE)
    monkeypatch.setattr(heartbeats, "GATHERED_IN_LEASE", GATHERED_IN_LEASE)
    await world.start(SHORT_LEASES)
    first = {report.name: int((await world.host(report.name))["alive_until_ms"]) for report in SHORT_LEASES}

    async def all_outlived_their_first_lease() -> bool:
        await world.sweep()
        now_ms = (await world.cell.tick()).now_ms
        return all(now_ms > until_ms for until_ms in first.values())

    await wait_until(all_outlived_their_first_lease, timeout=30)
    assert {(await world.host(report.name))["alive"] for report in SHORT_LEASES} == {"1"}


@pytest.mark.parametrize("world", ["redis"], indirect=True)  # this process would run tasks of the API too
async def test_an_ended_agent_leaves_no_task_behind(world: World) -> None:
    before = asyncio.all_tasks()
    agent = await world.start(FLEET)
    await place_on_each(world, "a")
    await world.stop(agent)
    assert asyncio.all_tasks() - before == set()


async def test_a_journal_that_breaks_ends_the_agent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await world.start()

    def refuse(self: Journal, statements: object) -> None:
        self._connection.execute("PRAGMA query_only = 1")
        self._connection.execute("DELETE FROM meta")

    monkeypatch.setattr(Journal, "_transaction", refuse)
    await world.place("a")
    with pytest.raises(JournalBroken, match="cannot be written"):
        await agent


async def test_a_broken_loop_ends_the_agent_rather_than_living_on_by_half(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(self: Agent) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(Agent, "_compare", break_down)
    with pytest.raises(ValueError, match="a mistake"):
        await run(quick(), world.url, [H1], world.folder / "journal.sqlite")


class Meter:
    """A host whose measurements the test sets."""

    name, cell = "h1", "c1"
    period_s: float | None = 0.02

    def __init__(self) -> None:
        self.used_mb = 0
        self.works: Sequence[Work] = ()
        self.fails = False
        self.looks = 0

    def look(self, works: Sequence[Work]) -> Observation:
        self.works = works
        self.looks += 1
        if self.fails:
            raise OSError("the disk is gone")
        return Observation(H1, {"MEMORY_MB": self.used_mb}, frozenset({"MEMORY_MB"}) if not works else frozenset())

    async def is_looked_at(self) -> None:
        """Wait until a look at the host that began after this call has ended."""
        looks = self.looks
        await wait_until(lambda: self.looks >= looks + 2)


async def external_becomes(world: World, amount: int) -> None:
    async def is_so() -> bool:
        return int((await world.host()).get("external.MEMORY_MB", "0")) == amount

    await wait_until(is_so, what=f"external is {amount}")


async def test_what_cannot_be_attributed_keeps_the_last_measurement_even_over_a_restart(world: World) -> None:
    meter = Meter()
    agent = await world.start([meter])
    meter.used_mb = 640
    await external_becomes(world, 640)
    await world.place("a")
    await world.reaches("a", ClaimStatus.ACTIVE)
    meter.used_mb = 6400
    await meter.is_looked_at()
    assert [work.claim_id for work in meter.works] == ["a"]
    await world.stop(agent)
    await world.start([meter])
    assert (await world.host())["external.MEMORY_MB"] == "640"
    meter.used_mb = 1280
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    assert (await world.host())["external.MEMORY_MB"] == "1280", "measured anew in the script that freed the claim"


async def test_a_measurement_that_jitters_is_not_reported_each_time(world: World) -> None:
    meter = Meter()
    await world.start([meter])
    meter.used_mb = 640
    await external_becomes(world, 640)
    before = await world.host()
    for used_mb in (639, 577, 640, 520) * 2:
        meter.used_mb = used_mb
        await meter.is_looked_at()
    meter.used_mb = 700
    await external_becomes(world, 704)
    after = await world.host()
    assert int(after["version"]) == int(before["version"]) + 1
    assert int(after["agent.number"]) == int(before["agent.number"]) + 1


async def test_a_look_that_fails_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "AGAIN_S", 0.02)
    meter = Meter()
    agent = await world.start([meter])
    meter.fails = True
    await meter.is_looked_at()
    meter.fails, meter.used_mb = False, 128
    await external_becomes(world, 128)
    assert not agent.done()


HOLD = """import sys
held = bytearray(300 << 20)
held[::4096] = b"x" * len(held[::4096])
print(flush=True)
sys.stdin.read()
"""
HELD_MB = 300


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the machine run nothing but this test, its children and the listed pids, all with their real memory."""
    others: list[int] = []

    def used() -> Iterator[int]:
        me = psutil.Process()
        for pid in {me.pid, *(child.pid for child in me.children(recursive=True)), *others}:
            with contextlib.suppress(psutil.Error):
                yield psutil.Process(pid).memory_full_info().pss

    def memory() -> SimpleNamespace:
        total = 64 * 2**30
        return SimpleNamespace(total=total, available=total - sum(used()), percent=0.0)

    monkeypatch.setattr(psutil, "virtual_memory", memory)
    return others


@contextlib.asynccontextmanager
async def foreign_work() -> AsyncIterator[None]:
    """Run a real process that holds HELD_MB."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    yield
    await process.communicate(b"")


async def external_mb(world: World) -> int:
    return int((await world.host()).get("external.MEMORY_MB", "0"))


@pytest.mark.usefixtures("quiet_machine")
async def test_work_started_outside_redsched_lowers_what_is_free(world: World) -> None:
    await world.start([MachineCollector(quick(host_name="h1", reserved_memory_mb=0))])
    before = await external_mb(world)
    async with foreign_work():

        async def has_risen() -> bool:
            # Not all of it: memory that processes share counts less for each of them, the more there are.
            return await external_mb(world) >= before + HELD_MB - 64

        await wait_until(has_risen, what=f"external memory rises from {before} MB")

    async def has_fallen() -> bool:
        return await external_mb(world) < before + HELD_MB // 2

    await wait_until(has_fallen, what="external memory falls again")


class CountedLooks(MachineCollector):
    looks = 0

    def look(self, works: Sequence[Work]) -> Observation:
        self.looks += 1
        return super().look(works)


async def test_the_memory_of_a_claims_own_work_is_not_external(world: World, quiet_machine: list[int]) -> None:
    """The hook starts a real process and prints its pid."""
    code, fifo, pids = (world.folder / name for name in ("hold.py", "fifo", "pids"))
    code.write_text(HOLD)
    start = f"mkfifo {fifo}; {sys.executable} {code} <> {fifo} > {world.folder}/held &\n"
    world.on("start", f"{start}while [ ! -s {world.folder}/held ]; do sleep 0.02; done; echo pids: $! | tee {pids}")
    world.on("stop", f"kill $(cut -d' ' -f2 {pids})")
    collector = CountedLooks(quick(host_name="h1", reserved_memory_mb=0))
    await world.start([collector], hook=world.hook)
    before = await external_mb(world)
    await world.place("a", {"MEMORY_MB": 1024})
    await world.reaches("a", ClaimStatus.ACTIVE)
    quiet_machine.append(int(pids.read_text().split()[1]))
    held_mb = collector.look([]).unexplained["MEMORY_MB"]
    assert held_mb >= before + HELD_MB // 2, "without its name it would be taken for foreign"
    looks = collector.looks
    await wait_until(lambda: collector.looks >= looks + 3)
    assert await external_mb(world) < before + HELD_MB // 2
    async with foreign_work():

        async def has_risen() -> bool:
            return await external_mb(world) >= before + HELD_MB - 64

        await wait_until(has_risen, what="foreign work is seen beside the claim's own")
        assert await external_mb(world) < before + HELD_MB * 3 // 2
    await world.cell.claims.release("h1", "a")
    await world.reaches("a", ClaimStatus.ENDED)
    assert await external_mb(world) < before + HELD_MB // 2


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([], "at least one host"),
        ([H1, H1], "host 'h1' is given 2 times"),
        ([HostReport("h1", {}, cell="c7")], "add it to REDSCHED_CELLS"),
    ],
)
async def test_hosts_that_cannot_be_are_reported_at_the_start(
    hosts: list[HostReport], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match=expected):
        await run(Settings(), "unix:///nowhere", hosts, tmp_path / "j.sqlite")


def test_the_journal_lies_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    meter, other = Meter(), Meter()
    assert default_journal(Settings(), [meter]) == tmp_path / "redsched" / "h1.sqlite"
    assert default_journal(Settings(), [meter, other]) == tmp_path / "redsched" / "fleet.sqlite"
    assert default_journal(Settings(journal="/x/y"), [meter]) == Path("/x/y")
