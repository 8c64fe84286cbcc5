"""An agent during an outage of the store: few attempts, nothing that grows, work left alone, and a quick recovery.

The length of an outage is counted in attempts, not in minutes: pauses are shortened, and the limits hold per attempt.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from redsched.agent import backoff
from redsched.agent.agent import MAX_AT_ONCE, Agent
from redsched.agent.backoff import StoreBackoff
from redsched.agent.collectors.base import Collector, StaticCollector
from redsched.agent.collectors.fleet import simulated
from redsched.agent.journal.journal import open_journal
from redsched.agent.link import StoreLink
from redsched.agent.run import hook_of
from redsched.aio import end
from redsched.errors import Unavailable
from redsched.model import ClaimStatus, HostReport
from redsched.settings import Settings
from redsched.store.client import batcher
from redsched.store.codec.replies import ScriptResult
from redsched.store.commands.hosts import HostCommands
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.agent.conftest import H1, SHORT_LIVED, World, quick
from tests.support.processes.connections import stop_listening
from tests.support.waiting import patience_s, wait_until

TRIES = 25
"""The length of an outage here: how often the whole agent has failed and paused."""

HOSTS = 1000


class Pauses:
    """Counts the pauses that an agent makes because the store does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(backoff, "FIRST_PAUSE_S", 0.01)
        monkeypatch.setattr(backoff, "LONGEST_PAUSE_S", 0.05)
        monkeypatch.setattr(batcher, "LONGEST_PAUSE_S", 0.05)
        failed = StoreBackoff.failed

        def counted(line: StoreBackoff, error: Unavailable) -> None:
            before = line._until_s
            failed(line, error)
            self.count += line._until_s != before

        monkeypatch.setattr(StoreBackoff, "failed", counted)

    async def pass_by(self, number: int = TRIES) -> None:
        """Wait until the agent has paused this many more times."""
        until = self.count + number
        await wait_until(lambda: self.count >= until, timeout=60, what=f"{number} more pauses")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """Shorten the pauses, and count them."""
    return Pauses(monkeypatch)


@asynccontextmanager
async def living(
    url: str, folder: Path, hosts: Sequence[HostReport | Collector] = (H1,), **changes: object
) -> AsyncIterator[Agent]:
    """Yield an agent in this process, open for claims, whose internals can be inspected."""
    settings = quick(resend_for_s=0.05, **changes)
    collectors = [StaticCollector(one) if isinstance(one, HostReport) else one for one in hosts]
    journal = open_journal(folder / "journal.sqlite")
    async with Store.connect(url, settings) as store:
        agent = Agent(StoreLink(store), journal, settings, hook_of(settings), collectors)
        task = asyncio.create_task(agent.run())
        await asyncio.wait_for(agent.ready.wait(), patience_s(60))
        yield agent
        assert not task.done(), "an outage ends no agent"
        await end(task)
    await journal.close()


@asynccontextmanager
async def world_of(server: PrivateServer, folder: Path) -> AsyncIterator[World]:
    async with Store.connect(server.url, Settings(resend_for_s=0.2)) as store:
        await store.cell("c1").init()
        yield World(server.url, store.cell("c1"), folder)


@dataclass
class Attempts:
    """The number of connection attempts while the server was down."""

    count: int = 0


@asynccontextmanager
async def away(server: PrivateServer) -> AsyncIterator[Attempts]:
    """Kill the server, and count and abort the connections made meanwhile. Then restart it with an empty store."""
    attempts, path = Attempts(), Path(urlsplit(server.url).path)

    def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.count += 1
        writer.transport.abort()

    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(path.unlink, missing_ok=True)
    listener = await asyncio.start_unix_server(count, str(path))
    try:
        yield attempts
    finally:
        await stop_listening(listener)
        await asyncio.to_thread(path.unlink, missing_ok=True)
        await asyncio.to_thread(server.restart)


def store_of(agent: Agent) -> Store:
    assert isinstance(agent.link, StoreLink)
    return agent.link.store


def sizes(agent: Agent) -> dict[str, int]:
    """Return the sizes of everything in an agent that could grow."""
    turns = {"beats": agent._beats, "looks": agent._looks, "inboxes": agent._inboxes, "compares": agent._compares}
    return {name: len(one._heap) for name, one in turns.items()} | {
        "tasks": len(asyncio.all_tasks()),
        "speaking": len(agent._turns),
        "works": sum(len(works._running) for works in agent._claim_tasks.values()),
        "calls": sum(len(one._waiting) for one in store_of(agent).runner._batchers.values()),
        "writes": len(agent.journal._next.statements) if agent.journal._next is not None else 0,
    }


@pytest.mark.parametrize("hosts", [1, HOSTS])
async def test_an_outage_costs_few_attempts_however_many_hosts_there_are(
    fresh_server: PrivateServer, tmp_path: Path, pauses: Pauses, hosts: int
) -> None:
    fleet = simulated(hosts)
    async with (
        world_of(fresh_server, tmp_path),
        living(fresh_server.url, tmp_path, fleet),
        away(fresh_server) as attempts,
    ):
        await pauses.pass_by(5)
        attempts.count = 0
        await pauses.pass_by()
        count = attempts.count
    # In each round the calls of all hosts share the writer's attempt; the watch and the comparison each have a reader
    # with three retries.
    assert TRIES <= count <= TRIES * 20, f"{count} connections for {TRIES} pauses"


async def test_nothing_grows_while_the_store_is_away(
    fresh_server: PrivateServer, tmp_path: Path, pauses: Pauses
) -> None:
    fleet = simulated(100)
    async with world_of(fresh_server, tmp_path) as world, living(fresh_server.url, tmp_path, fleet) as agent:
        for report in fleet[:20]:
            await world.place(f"on-{report.name}", {"VCPU": 1}, host=report.name)
        async with away(fresh_server):
            await pauses.pass_by(5)
            before = largest = sizes(agent)
            for _ in range(TRIES):
                await pauses.pass_by(1)
                largest = {name: max(size, largest[name]) for name, size in sizes(agent).items()}
    bound = 2 * len(fleet) + MAX_AT_ONCE
    assert all(size <= bound for size in largest.values()), f"{before} became {largest}"


async def test_work_continues_and_no_hook_is_run_again(
    fresh_server: PrivateServer, tmp_path: Path, pauses: Pauses
) -> None:
    """The server restarts empty, with one claim that was starting and one that was active."""
    async with (
        world_of(fresh_server, tmp_path) as world,
        living(fresh_server.url, tmp_path, hook=world.hook) as agent,
    ):
        await world.place("runs")
        await world.reaches("runs", ClaimStatus.ACTIVE)
        world.on("start", f"while [ ! -e {tmp_path}/may-start ]; do sleep 0.02; done")
        await world.place("starts", lease_s=600)
        await wait_until(lambda: len(world.calls("start")) == 2)
        async with away(fresh_server):
            await pauses.pass_by()
            (tmp_path / "may-start").touch()
            await wait_until(
                lambda: any(one.id == "starts" and one.is_running for one in agent.journal.pages["h1"].held.values())
            )
            await pauses.pass_by(5)
        for claim_id in ("runs", "starts"):
            await world.reaches(claim_id, ClaimStatus.ACTIVE)
        assert [call.split()[:2] for call in world.calls()] == [["start", "runs"], ["start", "starts"]]


async def test_a_server_that_hangs_for_longer_than_every_lease_is_lived_through(
    fresh_server: PrivateServer, tmp_path: Path, pauses: Pauses
) -> None:
    async with (
        world_of(fresh_server, tmp_path) as world,
        living(fresh_server.url, tmp_path, [SHORT_LIVED], hook=world.hook, lease_s=2, reply_timeout_s=2) as agent,
    ):
        await world.place_soon("a")
        await world.reaches("a", ClaimStatus.ACTIVE)
        await asyncio.to_thread(fresh_server.pause)
        await pauses.pass_by(5)  # each after a timeout
        largest = sizes(agent)
        fresh_server.resume()
        await world.place_soon("b")
        await world.reaches("b", ClaimStatus.ACTIVE)
        claim = await world.claim("a")
    assert claim is not None
    assert claim.state is ClaimStatus.ACTIVE
    assert max(largest.values()) < 50, largest
    assert [call.split()[:2] for call in world.calls()] == [["start", "a"], ["start", "b"]]


async def test_a_waiter_continues_at_once_when_anybody_has_had_an_answer() -> None:
    line = StoreBackoff()
    line.failed(Unavailable("away"))
    line._until_s += 3600
    waiting = [asyncio.create_task(line.ready()) for _ in range(1000)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    line.succeeded()
    await asyncio.wait_for(asyncio.gather(*waiting), patience_s(10))


async def test_a_fleet_comes_back_over_few_connections_and_not_all_at_once(
    fresh_server: PrivateServer, tmp_path: Path, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaking = most = 0
    attest = HostCommands.attest

    async def counted(self: HostCommands, *arguments: object) -> ScriptResult:
        nonlocal speaking, most
        speaking += 1
        most = max(most, speaking)
        try:
            return await attest(self, *arguments)  # type: ignore[arg-type, return-value]
        finally:
            speaking -= 1

    monkeypatch.setattr(HostCommands, "attest", counted)
    fleet = simulated(HOSTS)
    async with (
        world_of(fresh_server, tmp_path) as world,
        living(fresh_server.url, tmp_path, fleet) as agent,
    ):
        most = 0
        async with away(fresh_server):
            await pauses.pass_by(10)
        client = redis.Redis.from_url(fresh_server.url, protocol=2)

        async def all_are_open() -> bool:
            return all(host.epoch for host in agent.hosts.values()) and await world.host(fleet[-1].name) != {}

        await wait_until(all_are_open, timeout=60)
        with client:
            connections = client.info("stats")["total_connections_received"]
    assert 0 < most <= MAX_AT_ONCE
    # The agent has one writer and at most four readers, and so has the test's world; add the guard, and reconnects.
    # With one connection for each host that speaks, there would be hundreds.
    assert connections <= 60
