"""Faults that strike the same target at once: each can start and be healed, whatever the others have done to it.

All ordered pairs of faults of a set-up are tested in each order of healing, on simulated servers and processes, which
raise the same errors as real ones that have died. Some pairs are also tested on a real server.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import redis

from redsched.errors import StoreUnavailable
from redsched.model import HostStatus
from redsched.store.embedded.server import PrivateServer
from tests.faults.suite import world
from tests.faults.suite.checks.watcher import Watcher
from tests.faults.suite.faults import ALL, BY_NAME, failover
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import CELLS, Round, Strike, children
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.rounds import failure, play
from tests.faults.suite.stores import several, single
from tests.faults.suite.stores.several import Clustered, WithSentinel
from tests.faults.suite.stores.single import Single
from tests.faults.suite.stores.site import Site
from tests.faults.suite.stores.wires import Wire, every
from tests.faults.suite.world import World
from tests.support.waiting import PATIENCE, wait_until

PAUSE_S = 0.005
"""Time for the other fault's steps to begin; no result depends on how far they get."""

SOON_S = 60.0
"""The timeout of pairs of simulated faults: seconds of processor time on an idle machine at the most."""

STARTS_S = 120.0
"""The timeout where real servers are started."""


class PlayedServer:
    """A simulated server. `promote` is called whenever it dies or freezes."""

    def __init__(self, promote: Any = None) -> None:
        self.running, self.stands_still, self.leads = True, False, False
        self.url, self.socket, self.data_dir = "unix:///nowhere", Path("/nowhere"), None
        self.calls: list[str] = []
        self._promote = promote or (lambda: None)

    @property
    def answers(self) -> bool:
        return self.running and not self.stands_still

    def pause(self) -> None:
        self._needs_process("pause")
        self.stands_still = True
        self._promote()

    def resume(self) -> None:
        self._needs_process("resume")
        self.stands_still = False

    def kill(self) -> None:
        self.calls.append("kill")
        self.running = self.stands_still = self.leads = False
        self._promote()

    def restart(self) -> None:
        assert not self.running, "restarted while it runs: two faults did so at once"
        self.calls.append("restart")
        self.running = True

    def is_primary(self) -> bool:
        return self.answers and self.leads

    def repair_replication(self) -> None:
        self._needs_process("repair")

    def _needs_process(self, what: str) -> None:
        if not self.running:
            raise StoreUnavailable(f"the private store is no longer running: {what}")
        self.calls.append(what)


class PlayedClient:
    """A client of a simulated server. Its commands succeed, and of those only the setting of a clock has an effect."""

    def __init__(self, clocks: dict[str, str]) -> None:
        self._clocks = clocks

    def __enter__(self) -> "PlayedClient":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, command: str) -> Any:
        return lambda *_, **__: None

    def eval(self, script: str, keys: int, key: str, seconds: str) -> None:
        self._clocks[key] = seconds


class PlayedShard:
    """A primary and replicas, one of which is promoted at once when the primary fails."""

    def __init__(self, replicas: int) -> None:
        self.servers = [PlayedServer(self.promote) for _ in range(replicas + 1)]
        self.servers[0].leads = True
        self.failovers = 0

    def promote(self) -> None:
        if not any(one.is_primary() for one in self.servers):
            self.resolve()

    def resolve(self) -> None:
        """Make another server the primary, if one could be."""
        others = [one for one in self.servers if one.answers and not one.leads]
        if others:
            self.failovers += 1
            for one in self.servers:
                one.leads = one is others[0]

    def primary(self) -> Any:
        found = next((one for one in self.servers if one.is_primary()), None)
        if found is None:
            raise redis.ConnectionError("nobody leads")
        return found


class PlayedSentinel(WithSentinel):
    def __init__(self, wires: Any) -> None:
        self.shards = PlayedShard(2)
        self.clocks: dict[str, str] = {}
        super().__init__(Mock(url="sentinel://nowhere", servers=self.shards.servers), wires, CELLS)

    def connect(self, tag: str) -> Any:
        self.primary(tag)
        return PlayedClient(self.clocks)

    def primary(self, tag: str) -> Any:
        return self.shards.primary()

    def cut_replication(self, cell: str) -> None:
        self.primary(cell)

    def failovers(self) -> int:
        return self.shards.failovers

    def ask_for_failover(self) -> None:
        self.shards.resolve()


class PlayedCluster(Clustered):
    def __init__(self, wires: Any) -> None:
        self.shards = {tag: PlayedShard(1) for tag in (*CELLS, "spare")}
        self.nodes_ = [one for shard in self.shards.values() for one in shard.servers]
        self.clocks: dict[str, str] = {}
        super().__init__(Mock(url="cluster://nowhere", nodes=self.nodes_), wires, CELLS)

    def connect(self, tag: str) -> Any:
        self.primary(tag)
        return PlayedClient(self.clocks)

    def primary(self, tag: str) -> Any:
        return self.shards[tag].primary()

    def shard(self, tag: str) -> Any:
        self.primary(tag)
        return self.shards[tag].servers

    def cut_replication(self, cell: str) -> None:
        self.primary(cell)

    def is_led_without(self, old: Any) -> bool:
        return all(any(one.is_primary() for one in shard.servers) for shard in self.shards.values())

    def move(self, cell: str, at_once: bool) -> bool:
        self.shards[cell], self.shards["spare"] = self.shards["spare"], self.shards[cell]
        return True


class PlayedSingle(Single):
    """A client's commands reach the server as long as it replies."""

    def __init__(self, wires: Any) -> None:
        self.clocks: dict[str, str] = {}
        super().__init__(PlayedServer(), wires, CELLS)  # type: ignore[arg-type]

    def connect(self, tag: str) -> Any:
        if not self.server.answers:  # type: ignore[attr-defined]
            raise redis.ConnectionError("it is dead, or stands still")
        return PlayedClient(self.clocks)

    def wipe(self) -> None:
        self.connect("")


class PlayedChild:
    """A simulated process, which reports its exit to the world, and can be restarted."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self.runs, self._world = name, True, world

    def kill(self) -> None:
        if self.runs:
            self.runs = False
            self._world._hear(self.name, "gone", {})

    def tell(self, do: str, **_: Any) -> None:
        pass

    async def begin(self) -> None:
        self._world._words(self.name)
        self.runs = True

    async def ready(self) -> None:
        pass

    async def ended(self) -> None:
        pass


class PlayedOperator:
    """An operator whose commands succeed and change nothing. A mock would take longer than the faults."""

    async def have(self, hosts: Sequence[str], status: HostStatus, move: bool = False) -> None:
        pass

    async def write_off(self, hosts: Sequence[str]) -> None:
        pass

    async def report(self, hosts: Sequence[str], cell: str) -> list[str]:
        return []

    async def remove(self, hosts: Sequence[str], cell: str) -> None:
        pass


SITES: dict[str, Any] = {"single": PlayedSingle, "sentinel": PlayedSentinel, "cluster": PlayedCluster}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "REVIVE_S", 0.0)
    monkeypatch.setattr(single, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(single, "THERE_S", SOON_S / 2)
    for module, name in ((failover, "PROMOTED_S"), (several, "SPARE_S")):
        monkeypatch.setattr(module, name, SOON_S / 2 / PATIENCE)


async def nowhere() -> Any:
    """The target of a wire that nobody connects through."""
    raise OSError


def played(setup: str, folder: Path) -> World:
    """Return a simulated world of this set-up."""
    site: Site = SITES[setup]({name: [Wire(nowhere)] for name in children("any")})
    it = World(site, 1, "none", folder, Watcher(lambda _: {}, [CELLS]))
    it.operator = PlayedOperator()  # type: ignore[assignment]
    it.children = {name: PlayedChild(name, it) for name in children("any")}  # type: ignore[misc]
    return it


def struck(kind: type[Breakage], number: int) -> Strike:
    """Return a strike of this fault at the target that all strikes share."""
    on = kind.shape.on
    victims = CELLS[:1] if on == "cell" else children("agent" if on == "any" else on)[:1]
    return Strike(kind.shape.name, number, 0.0, victims, kind.shape.points[0])


def kinds_of(setup: str) -> list[type[Breakage]]:
    """Return the faults that may be played together on a set-up."""
    return [one for one in ALL if setup in one.shape.setups]


def all_is_repaired(it: World) -> None:
    """Check that no effect of any fault is left."""
    for wire in every(it.site.wires):
        assert (wire.shut_by, wire.plays, wire.looks) == (set(), [], [])
    by_agent = (it.kept_away, it.disk_is_full, it.renamed, it.rezoned, it.lost_gpus)
    held = itertools.chain(*(one.values() for one in by_agent))
    assert not any((*held, it.hook_looks, it.watcher.blind_for))
    assert set(it.site.clocks.values()) <= {"0"}  # type: ignore[attr-defined]
    assert all(one.runs for one in it.children.values())
    assert set(it.clock_shift_s.values()) <= {0.0}
    if isinstance(it.site, Single):
        assert it.site.server.answers  # type: ignore[attr-defined]
        return
    assert not any(one.stands_still for one in it.site.nodes())  # type: ignore[attr-defined]
    assert it.site.leave._value == (2 if isinstance(it.site, WithSentinel) else 1)  # type: ignore[attr-defined]
    assert all(it.site.primary(cell).is_primary() for cell in CELLS)  # type: ignore[attr-defined]


async def steps(*some: tuple[Breakage, str]) -> list[str]:
    """Execute steps of faults one after the other; return the errors."""
    failed: list[str] = []
    for fault, step in some:
        failed += await failure(fault, step, getattr(fault, step)())
    return failed


FIRSTS = [pytest.param(setup, one, id=f"{setup}-{one.shape.name}") for setup in SITES for one in kinds_of(setup)]


@pytest.mark.parametrize(("setup", "first"), FIRSTS)
async def test_each_pair_of_faults_on_one_thing_is_healed_in_any_order(
    setup: str, first: type[Breakage], tmp_path: Path
) -> None:
    """Each fault is paired with every fault of the set-up, including another one of its own kind."""
    pairs = itertools.product(kinds_of(setup), (False, True))
    async with asyncio.timeout(SOON_S):
        await asyncio.gather(*(_pair(setup, first, second, order, tmp_path) for second, order in pairs))


async def _pair(setup: str, first: type[Breakage], second: type[Breakage], order: bool, folder: Path) -> None:
    it = played(setup, folder)
    one, other = first(it, struck(first, 0)), second(it, struck(second, 1))
    assert await overlapping(one, other, order) == [], f"then {second.shape.name}"
    await everything_runs(it)
    all_is_repaired(it)
    assert await steps((one, "heal"), (other, "heal")) == [], f"{second.shape.name}: healing again is nothing, or heals"
    await everything_runs(it)
    all_is_repaired(it)


async def everything_runs(it: World) -> None:
    """What a round waits for after its faults: processes are restarted, and killed servers are started."""
    await asyncio.gather(*it._reviving)
    if not isinstance(it.site, Single):
        await it.site.bring_back()  # type: ignore[attr-defined]


async def overlapping(first: Breakage, second: Breakage, is_second_first: bool) -> list[str]:
    """Overlap faults as in a round: each healing is a task, and may wait for the other. Return the errors."""
    failed = await steps((first, "start"))
    second_life = _life(second, PAUSE_S if is_second_first else 2 * PAUSE_S)
    first_end = _later(first, 3 * PAUSE_S if is_second_first else PAUSE_S)
    return [*failed, *itertools.chain(*await asyncio.gather(second_life, first_end))]


async def _life(fault: Breakage, for_s: float) -> list[str]:
    return [*await steps((fault, "start")), *await _later(fault, for_s)]


async def _later(fault: Breakage, in_s: float) -> list[str]:
    await asyncio.sleep(in_s)
    return await steps((fault, "heal"))


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.shape.name)
async def test_what_has_not_begun_is_healed_too(kind: type[Breakage], tmp_path: Path) -> None:
    """`start` may fail before its first step has been taken."""
    it = played(kind.shape.setups[0], tmp_path)
    fault = kind(it, struck(kind, 0))
    assert await steps((fault, "heal"), (fault, "heal")) == []
    await asyncio.gather(*it._reviving)
    all_is_repaired(it)


async def test_a_frozen_primary_that_another_fault_kills_is_healed(tmp_path: Path) -> None:
    """Regression: the failover kills the frozen server, which then cannot be resumed; this aborted a plan."""
    it = played("sentinel", tmp_path)
    cut, slow = (BY_NAME[name](it, struck(BY_NAME[name], 0)) for name in ("sentinel-failover", "primary-stands-still"))
    assert await steps((cut, "start"), (slow, "start"), (cut, "heal")) == []
    dead = next(one for one in it.site.nodes() if not one.running)  # type: ignore[attr-defined]
    assert dead.calls == ["pause", "kill"]
    assert await steps((slow, "heal")) == []
    assert "resume" not in dead.calls
    assert it.site.leave._value == 2  # type: ignore[attr-defined]


async def test_the_last_server_is_not_taken_away_before_another_is_there(tmp_path: Path) -> None:
    it = played("cluster", tmp_path)
    kind = BY_NAME["cluster-failover"]
    for number in range(3):
        fault = kind(it, struck(kind, number))
        assert await steps((fault, "start"), (fault, "heal")) == []
        assert it.site.primary(CELLS[0]).is_primary()  # type: ignore[attr-defined]


async def test_a_refused_failover_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentinel refuses a failover during another one, and abandons one that takes too long; it does not retry."""
    monkeypatch.setattr(failover, "ASK_AGAIN_S", 0.01)
    it = played("sentinel", tmp_path)
    asked: list[int] = []

    def refuse_twice() -> None:
        asked.append(1)
        if len(asked) > 2:
            it.site.shards.resolve()  # type: ignore[attr-defined]

    monkeypatch.setattr(it.site, "ask_for_failover", refuse_twice)
    kind = BY_NAME["failover-in-order"]
    fault = kind(it, struck(kind, 0))
    assert await steps((fault, "start"), (fault, "heal")) == []
    assert len(asked) == 3


async def test_what_one_fault_holds_stays_held_until_the_last_lets_go(tmp_path: Path) -> None:
    it = played("single", tmp_path)
    agent = children("agent")[0]
    [wire] = it.site.wires[agent]
    for name, is_held in (
        ("away", lambda: bool(wire.shut_by)),
        ("freeze", lambda: it.site.server.stands_still),  # type: ignore[attr-defined]
        ("evacuate", lambda: bool(it.kept_away[agent])),
        ("full-disk", lambda: bool(it.disk_is_full[agent])),
        ("lost-gpu", lambda: bool(it.lost_gpus[agent])),
    ):
        first, second = (BY_NAME[name](it, struck(BY_NAME[name], number)) for number in range(2))
        assert await steps((first, "start"), (second, "start")) == []
        healing = asyncio.create_task(steps((first, "heal")))
        await asyncio.wait([healing], timeout=0.05)  # healing an evacuation waits for the other fault
        assert is_held(), name
        assert [*await steps((second, "heal")), *await healing] == []
        assert not is_held(), name


class Failing(Breakage):
    """A fault whose start and healing both fail."""

    shape = BY_NAME["cut"].shape

    async def start(self) -> None:
        raise StoreUnavailable("no server to strike")

    async def heal(self) -> None:
        raise KeyError("healing")


async def test_an_error_of_a_fault_belongs_to_its_round_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BY_NAME, "cut", Failing)
    it = played("single", tmp_path)
    monkeypatch.setattr(it, "reaches", AsyncMock(return_value=True))
    healed: list[str] = []
    monkeypatch.setattr(BY_NAME["away"], "heal", AsyncMock(side_effect=lambda: healed.append("away")))
    monkeypatch.setattr("tests.faults.suite.rounds._recover", AsyncMock(side_effect=ValueError("max() arg is empty")))
    strikes = (struck(Failing, 0), struck(BY_NAME["away"], 1))
    result: Result = await play(it, Round(1, "single", strikes))
    begun, healed_not, recovered = result.wrong
    assert begun.startswith("cut could not be begun: StoreUnavailable: no server to strike (")
    assert healed_not.startswith("cut could not be healed: KeyError: 'healing' (")
    assert recovered.startswith("ValueError: max() arg is empty")
    assert healed == ["away"]


@pytest.mark.parametrize("given", [0, 3])
async def test_a_round_begins_where_traffic_is_slow_and_not_where_it_stands_still(
    given: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = played("single", tmp_path)

    async def slowly(_: int, __: float) -> bool:
        it.ledger.words["looked"] += given
        return False

    monkeypatch.setattr(it, "reaches", slowly)
    monkeypatch.setattr("tests.faults.suite.rounds._recover", AsyncMock(side_effect=ValueError("so far it came")))
    result = await play(it, Round(1, "single", (Strike("away", 40, 0.0, children("agent")[:1]),)))
    [wrong] = result.wrong
    assert wrong.startswith("ValueError: so far it came" if given else "TimeoutError: traffic does not go on")


@asynccontextmanager
async def on_a_real_server(folder: Path) -> AsyncIterator[World]:
    """Yield a world whose only server is real."""
    it = played("single", folder)
    with PrivateServer.start(data_dir=folder / "data") as server:
        it.site = Single(server, it.site.wires, CELLS)
        yield it


REAL = ("kill-with-aof", "kill-without-aof", "flushall", "freeze", "out-of-memory", "trim")


@pytest.mark.parametrize("second", REAL)
@pytest.mark.parametrize("first", REAL)
async def test_pairs_on_a_real_server_leave_it_at_work(first: str, second: str, tmp_path: Path) -> None:
    async with on_a_real_server(tmp_path) as it, asyncio.timeout(STARTS_S):
        faults = [BY_NAME[name](it, struck(BY_NAME[name], number)) for number, name in enumerate((first, second))]
        assert await overlapping(faults[0], faults[1], False) == []
        assert isinstance(it.site, Single)
        with it.site.connect("") as client:
            await wait_until(lambda: bool(client.ping()))
            assert client.config_get("maxmemory") == {"maxmemory": "0"}
        assert not any(wire.shut_by for wire in every(it.site.wires))


async def test_a_restart_waits_for_memory_that_another_fault_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_a_real_server(tmp_path) as it, asyncio.timeout(STARTS_S):
        cut, full = (BY_NAME[name](it, struck(BY_NAME[name], 0)) for name in ("kill-without-aof", "out-of-memory"))
        assert isinstance(it.site, Single)
        site, restart = it.site, it.site.server.restart

        def restart_without_memory() -> None:
            restart()
            with site.connect("") as client:
                client.config_set("maxmemory", "1")

        monkeypatch.setattr(site.server, "restart", restart_without_memory)
        assert await steps((cut, "start")) == []
        assert not any(await asyncio.gather(steps((cut, "heal")), _later(full, 0.5)))
