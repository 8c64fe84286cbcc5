"""The store is flushed, restarted, frozen, wiped or rolled back under traffic: replicas converge to its contents.

Every case ends with the same check: once the traffic has stopped, each column of each scheduler's replica equals that
of a new snapshot, and an audit finds no host over-committed (but by restored claims) and no claim uncounted.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
import redis

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.errors import NotFound, NoValidHost, RedschedError, Unavailable
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.embedded.server import PrivateServer, ServerBinary
from redsched.store.store import Store
from tests.support.fleets.hosts import PlainHost, fleet
from tests.support.processes.racers import Racer, Racers, updater_of
from tests.support.profiles import is_long
from tests.support.servers import name_of, servers_of
from tests.support.waiting import wait_until

ROUNDS = 5 if is_long() else 1
HOSTS, VCPU = 6, 4
QUICK = Settings(
    poll_s=0.005, tick_s=0.1, reply_timeout_s=30.0, resend_for_s=60.0, catch_up_timeout_s=60.0, select_timeout_s=60.0
)
PAUSE_S = 1.5
IMPATIENT = QUICK.model_copy(update={"reply_timeout_s": 1.0})
"""For a server that is frozen for PAUSE_S: calls are to be sent again meanwhile."""
META, CHANGES = "rs:{c1}:meta", "rs:{c1}:changes"

ACCEPTED = (NoValidHost, Unavailable, NotFound)
"""The errors that a caller may get while the store has a fault; any other error is a defect."""


TRIES = 20


@dataclass(slots=True)
class World:
    """Two schedulers over one store, its hosts, and the traffic that they cause."""

    schedulers: list[Scheduler]
    cell: CellStore
    hosts: list[PlainHost]
    raw: redis.Redis
    rng: Random
    done: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    stopped: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def rest(self) -> None:
        """Stop the traffic, and wait until it has ended."""
        self.stopped = True
        await asyncio.gather(*self.tasks)

    async def traffic(self, scheduler: Scheduler) -> None:
        """Select or release at random, one call at a time, until stopped."""
        mine: list[str] = []
        while not self.stopped:
            try:
                if mine and self.rng.random() < 0.5:
                    await scheduler.claims.release(mine.pop(self.rng.randrange(len(mine))))
                    self.done["release"] += 1
                else:
                    count = self.rng.choice((1, 1, 2))
                    found = await scheduler.select(Request({"VCPU": 1}, count=count, lease_s=600))
                    mine += [str(one.claim_id) for one in found.selections]
                    self.done["select"] += 1
            except ACCEPTED as error:
                self.done[type(error).__name__] += 1
                await asyncio.sleep(0)
            except Exception as error:
                self.defects.append(repr(error))

    async def work(self) -> None:
        """Let the hosts report, attest, accept placements and end claims, until stopped."""
        while not self.stopped:
            for host in self.hosts:
                try:
                    await host.measure(self.rng.randrange(2))
                    await host.speak()
                    await host.work()
                    self.done["report"] += 1
                except RedschedError as error:
                    self.done[type(error).__name__] += 1
            await asyncio.sleep(0)

    async def goes_on(self, word: str = "select", times: int = 5) -> None:
        """Return when this many further calls of a kind have succeeded."""
        before = self.done[word]
        await wait_until(lambda: self.done[word] >= before + times, 20.0, f"{word} goes on: {self.done}")

    async def reports_go_on(self) -> None:
        """Return when every host has reported again."""
        await self.goes_on("report", 2 * HOSTS)

    async def assert_converged(self) -> None:
        """Check that each replica equals the store in every value, and that the audit finds no problem."""
        for scheduler in self.schedulers:
            differs = list[str]()
            for _ in range(TRIES):  # sweeps still repeat releases, so a host may change between the two reads
                await updater_of(scheduler).catch_up()
                differs = difference(updater_of(scheduler).columns, (await take_snapshot(self.cell)).columns)
                if not differs:
                    break
            assert differs == []
        report = await self.schedulers[0].audit()
        restored = {f"{host.name} VCPU" for host in self.hosts if host.restored_over}
        assert [one for one in report.problems if one.invariant != 1 or one.thing not in restored] == []
        assert report.hosts == HOSTS


@asynccontextmanager
async def world(server: PrivateServer, seed: int, settings: Settings = QUICK) -> AsyncIterator[World]:
    """Run traffic while the test injects faults into the store, and check the result afterwards."""
    with redis.Redis(unix_socket_path=str(server.socket), decode_responses=True) as raw:
        async with (
            Store.connect(server.url, settings) as store,
            Scheduler.connect(server.url, settings) as first,
            Scheduler.connect(server.url, settings) as second,
        ):
            cell = store.cell("c1")
            hosts = await fleet(cell, [VCPU] * HOSTS)
            it = World([first, second], cell, hosts, raw, Random(seed))
            ways = [it.traffic(first), it.traffic(second), it.traffic(second), it.work()]
            it.tasks = [asyncio.create_task(way) for way in ways]
            try:
                await it.goes_on()
                await it.reports_go_on()
                yield it
            finally:
                await it.rest()
            assert it.defects == []
            await it.assert_converged()


Strike = Callable[[World], None]


def flush_scripts(it: World) -> None:
    it.raw.script_flush()


def trim(it: World) -> None:
    it.raw.xtrim(CHANGES, maxlen=0, approximate=False)


def delete_feed(it: World) -> None:
    it.raw.delete(CHANGES)


def flush_all(it: World) -> None:
    it.raw.flushall()


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("strike", [flush_scripts, trim, delete_feed])
async def test_a_fault_that_loses_no_state_is_not_noticed(
    fresh_server: PrivateServer, strike: Strike, round_: int
) -> None:
    """Scripts are flushed, or the feed is trimmed to nothing or deleted, ten times under traffic: no caller notices.

    The epoch stays the same, so no host has to attest again, and calls are refused only for lack of room.
    """
    async with world(fresh_server, round_) as it:
        epoch = it.raw.hget(META, "epoch")
        for _ in range(10):
            strike(it)
            await it.goes_on()
        await it.reports_go_on()
        assert it.done.keys() <= {"select", "release", "report", "NoValidHost"}
        assert it.raw.hget(META, "epoch") == epoch
        if strike is flush_scripts:
            assert all(scheduler._store.runner.counters.reloaded for scheduler in it.schedulers)


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_a_wiped_store_heals(fresh_server: PrivateServer, round_: int) -> None:
    """FLUSHALL under traffic starts a new epoch, in which the hosts restore their claims; the caches converge."""
    async with world(fresh_server, round_) as it:
        epoch = it.raw.hget(META, "epoch")
        flush_all(it)
        await it.reports_go_on()
        await it.goes_on()
        assert it.raw.hget(META, "epoch") != epoch


@pytest.mark.parametrize("how", ["restart", "kill"])
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("binary", servers_of(__file__), ids=name_of)
async def test_a_restarted_server_heals(tmp_path: Path, binary: ServerBinary, keeps: bool, how: str) -> None:
    """The server is stopped or killed, and restarts with or without its data: a new epoch begins in each case."""
    with PrivateServer.start(binary.path, tmp_path if keeps else None) as server:
        async with world(server, 1) as it:
            epoch = it.raw.hget(META, "epoch")
            if how == "kill":
                server.kill()
            await asyncio.to_thread(server.restart)
            await it.reports_go_on()
            await it.goes_on()
            assert it.raw.hget(META, "epoch") != epoch


@pytest.mark.parametrize("binary", servers_of(__file__), ids=name_of)
async def test_a_store_that_went_back_heals(tmp_path: Path, binary: ServerBinary) -> None:
    """An older copy of the data is restored: `seq` is lower, answered claims are missing, ended ones exist again.

    The hosts restore the claims that run, and claims that ended on a host stay ended. Together with claims that only
    the old copy has, they may exceed a host's capacity; the audit then shows it. No later claim adds to the excess.
    """
    data, copy = tmp_path / "data", tmp_path / "copy"
    with PrivateServer.start(binary.path, data) as server:
        async with world(server, 2) as it:
            shutil.copytree(data / "appendonlydir", copy)
            before = int(str(it.raw.hget(META, "seq")))
            await it.goes_on(times=60)
            await it.reports_go_on()
            assert int(str(it.raw.hget(META, "seq"))) > before + 60
            epoch = it.raw.hget(META, "epoch")
            server.kill()
            shutil.rmtree(data / "appendonlydir")
            shutil.copytree(copy, data / "appendonlydir")
            await asyncio.to_thread(server.restart)
            await it.reports_go_on()
            await it.goes_on()
            assert it.raw.hget(META, "epoch") != epoch


@pytest.mark.parametrize("jumps", [False, True])
async def test_a_paused_server_continues(fresh_server: PrivateServer, jumps: bool) -> None:
    """The server freezes under traffic and resumes: calls wait or are retried, and none takes effect twice.

    A pause longer than the cell's `jump_s` starts a new epoch, to which the hosts attest.
    """
    async with world(fresh_server, 3, IMPATIENT) as it:
        it.raw.hset(META, "jump_s", "1" if jumps else "600")
        epoch = it.raw.hget(META, "epoch")
        fresh_server.pause()
        await asyncio.sleep(PAUSE_S)  # exceeds the reply timeout and the smaller jump_s
        fresh_server.resume()
        await it.reports_go_on()
        await it.goes_on()
        assert (it.raw.hget(META, "epoch") != epoch) == jumps
        if not jumps:
            assert it.done.keys() <= {"select", "release", "report", "NoValidHost", "StoreUnavailable"}


async def wake_up(racer: Racer, _: None) -> tuple[int, list[str]]:
    """Schedule until the test sends a message, then catch up; return the snapshots taken and remaining differences."""
    snapshots = racer.updater.stats.snapshots
    await racer.tell_parent("ready")
    spoken = asyncio.ensure_future(racer.hear_parent())
    while not spoken.done():
        try:
            found = await racer.scheduler.select(Request({"VCPU": 1}, lease_s=600))
            await racer.scheduler.claims.release(str(found.selections[0].claim_id))
        except NoValidHost:
            await asyncio.sleep(0)
    await racer.tell_parent("quiet")
    await racer.hear_parent()
    await racer.updater.catch_up()
    differs = difference(racer.updater.columns, (await take_snapshot(racer.updater.cell)).columns)
    return racer.updater.stats.snapshots - snapshots, differs


@pytest.mark.parametrize("trims", [False, True])
async def test_a_paused_scheduler_continues(fresh_server: PrivateServer, race: Racers, trims: bool) -> None:
    """A frozen scheduler process reads the feed entries that it missed, or takes a snapshot if they were trimmed.

    After resuming it decides on stale data; the scripts refuse decisions that no longer hold, so nothing is
    over-committed.
    """
    async with world(fresh_server, 4) as it:
        race.begin(0, wake_up, fresh_server.url, poll_s=0.005, catch_up_timeout_s=60.0, select_timeout_s=60.0)
        assert await race.hear(0) == "ready"
        race.pause(0)
        try:
            await it.goes_on(times=30)
            if trims:
                trim(it)
            await it.goes_on()
        finally:
            race.resume(0)
        await it.goes_on(times=20)
        race.say(0, "stop")
        assert await race.hear(0) == "quiet"
        await it.rest()
        race.say(0, "compare")
        snapshots, difference = await race.result(0)
        assert difference == []
        assert (snapshots > 0) == trims
