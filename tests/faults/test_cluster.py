"""A cluster as the store: cells on different shards, a slot that moves under traffic, a primary that dies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis._parsers.commands import AsyncCommandsParser
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    RedisClusterException,
    TimeoutError as RedisTimeoutError,
)

from redsched.errors import StoreUnavailable, Unavailable
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.access.rules import StoreUser, rules_of
from redsched.store.cell import CellStore
from redsched.store.embedded.server import pick_server
from redsched.store.store import Store
from redsched.store.topology.connection import reading
from tests.support.builders.cells import call_of, member
from tests.support.fleets.hosts import PlainHost, speak_all
from tests.support.setups import ClusterSetup, Node
from tests.support.setups.cluster import cells_apart
from tests.support.waiting import wait_until

CELLS = tuple(cells_apart(3))
MOVED = CELLS[0]
QUICK = Settings(cells=CELLS, poll_s=0.01, tick_s=0.1, reply_timeout_s=30.0, resend_for_s=60.0, select_timeout_s=60.0)
VCPU = 200


@pytest.fixture
def setup(running: ClusterSetup) -> ClusterSetup:
    """The cluster that all tests of this module share, with all servers running and no data."""
    for node in running.nodes:
        if not node.running:
            node.restart()
    shards = {cell: running.primary(cell) for cell in CELLS}
    if shards[MOVED] in (shards[cell] for cell in CELLS[1:]):  # an earlier test has moved it there
        running.move(MOVED, next(one for one in running.others(MOVED) if one not in shards.values()))
    for cell in CELLS:
        with running.primary(cell).asked() as client:
            client.flushall()
    return running


@dataclass(slots=True)
class World:
    """A scheduler over one host in each cell, and traffic: its claims and its errors."""

    scheduler: Scheduler
    cells: dict[str, CellStore]
    hosts: list[PlainHost]
    claims: dict[str, str] = field(default_factory=dict)
    """Answered claims: id -> cell."""
    released: set[str] = field(default_factory=set)
    refused: list[Unavailable] = field(default_factory=list)
    stopped: bool = False

    async def traffic(self, cell: str) -> None:
        """Claim in a cell, and release every second claim, until stopped."""
        number = 0
        while not self.stopped:
            number += 1
            try:
                found = await self.scheduler.select(Request({"VCPU": 1}, lease_s=600, hosts=frozenset({f"{cell}-h"})))
                claim_id = str(found.selections[0].claim_id)
                self.claims[claim_id] = found.selections[0].cell
                if number % 2:
                    await self.scheduler.claims.release(claim_id)
                    self.released.add(claim_id)
            except Unavailable as error:
                self.refused.append(error)

    async def go_on(self, cell: str) -> None:
        """Return when the traffic has made further claims in a cell."""
        before = self._in(cell)
        await wait_until(lambda: self._in(cell) >= before + 3, 30.0, f"claims go on in {cell}")

    def _in(self, cell: str) -> int:
        return sum(one == cell for one in self.claims.values())

    async def assert_exact(self) -> None:
        """Check that all answered claims exist, only the released ones have ended, and an audit finds no problem."""
        for name, cell in self.cells.items():
            ids = [claim_id for claim_id, where in self.claims.items() if where == name]
            known = await cell.claims.read(ids)
            ended = {claim_id for claim_id, claim in known.items() if claim.state == "ended"}
            assert known.keys() == set(ids)
            assert ended == self.released & set(ids)
            [host] = await cell.hosts.read([f"{name}-h"])
            # Claims whose reply was lost may exist as well; the audit counts all claims.
            assert int(host.fields["claimed.VCPU"]) >= len(ids) - len(ended)
        assert (await self.scheduler.audit()).problems == ()


@asynccontextmanager
async def world(setup: ClusterSetup) -> AsyncIterator[World]:
    """Run traffic while the test acts on the cluster, and check the result afterwards."""
    async with Store.connect(setup.url, QUICK) as store:
        cells = {name: store.cell(name) for name in CELLS}
        hosts = []
        for name, cell in cells.items():
            await cell.init()
            hosts.append(PlainHost(cell, f"{name}-h", VCPU * 100))
        await speak_all(hosts)
        async with Scheduler.connect(setup.url, QUICK) as scheduler:
            it = World(scheduler, cells, hosts)
            tasks = [asyncio.create_task(it.traffic(name)) for name in CELLS]
            for name in CELLS:
                await it.go_on(name)
            try:
                yield it
            finally:
                it.stopped = True
                await asyncio.gather(*tasks)
            for host in hosts:
                # A claim that was released before its host had attested ends only when the host reports.
                await host.work()
            await it.assert_exact()


async def test_cells_lie_on_different_shards_and_each_is_claimed_in(setup: ClusterSetup) -> None:
    """This includes the data outside the cells: the list of cells, and the bindings of ids and groups to cells."""
    assert len({setup.primary(name).port for name in CELLS}) == 3
    async with world(setup) as it:
        given = Request({"VCPU": 1}, claim_ids=("mine",))
        first = await it.scheduler.select(given)
        assert (await it.scheduler.select(given)).selections[0].host == first.selections[0].host
        await it.scheduler.claims.release("mine")
        assert (await it.scheduler.readiness()).ready
        cell = it.cells[MOVED]
        assert await cell.bindings.cell_of_group("g") == ""
        assert await cell.bindings.bind_group("g") == MOVED
        assert await it.cells[CELLS[1]].bindings.bind_group("g") == MOVED
        await cell.bindings.unbind_group("g")
        assert await cell._cell.outside.smembers("rs:cells") == set(CELLS)
        assert it.refused == []


@pytest.mark.parametrize("at_once", [True, False], ids=["as a whole", "key by key"])
async def test_a_slot_that_moves_under_traffic_loses_nothing_and_doubles_nothing(
    setup: ClusterSetup, at_once: bool
) -> None:
    """No caller gets an error, unless the move starts a new epoch of the cell."""
    if at_once and not setup.moves_at_once:
        pytest.skip("this server moves slots key by key alone")
    async with world(setup) as it:
        epoch = (await it.cells[MOVED].tick()).epoch
        target = await asyncio.to_thread(setup.move, MOVED, None, at_once)
        for name in CELLS:
            await speak_all(it.hosts)
            await it.go_on(name)
        assert setup.primary(MOVED) is target
        assert it.refused == [] or (await it.cells[MOVED].tick()).epoch > epoch


async def test_a_slot_that_is_half_moved_is_waited_for(setup: ClusterSetup) -> None:
    """Calls whose keys are on both servers get TRYAGAIN; one whose only key is missing is sent to the target (ASK)."""
    async with world(setup) as it:
        counters = it.scheduler._store.runner.counters
        with setup.half_moved(MOVED):
            assert await it.cells[MOVED].hosts.inboxes(["nobody"]) == [[]]
            before = counters.elsewhere
            await wait_until(lambda: counters.elsewhere > before, what="a claim is told to wait")
            await it.go_on(CELLS[1])
        await speak_all(it.hosts)
        await it.go_on(MOVED)


async def test_a_cell_that_moves_for_too_long_is_said_and_nothing_is_claimed(setup: ClusterSetup) -> None:
    """The servers reply that they did not run the script, so the outcome is known."""
    brief = QUICK.model_copy(update={"resend_for_s": 0.3})
    async with Store.connect(setup.url, QUICK) as store, Store.connect(setup.url, brief) as impatient:
        cell = store.cell(MOVED)
        await cell.init()
        await speak_all([PlainHost(cell, "h", VCPU)])
        call = call_of(await cell.tick(), member("a", "h"))
        with setup.half_moved(MOVED), pytest.raises(StoreUnavailable, match="TRYAGAIN"):
            await impatient.cell(MOVED).claims.place(call)
        assert await cell.claims.read(["a"]) == {}


async def test_a_killed_primary_is_followed_to_its_replica(setup: ClusterSetup) -> None:
    """Other cells remain available meanwhile; the affected cell starts a new epoch, to which its host attests."""
    async with world(setup) as it:
        for host in it.hosts:
            await host.work()
        shards = {name: setup.primary(name) for name in CELLS}
        before, epoch = shards[MOVED], (await it.cells[MOVED].tick()).epoch
        before.kill()
        await it.go_on(next(name for name in CELLS if shards[name] is not before))
        await wait_until(lambda: setup.has_primary(MOVED), 20.0, "the replica was promoted")
        assert setup.primary(MOVED) is not before
        await speak_all(it.hosts)
        await it.go_on(MOVED)
        assert (await it.cells[MOVED].tick()).epoch > epoch


async def test_the_documented_permissions_are_enough(setup: ClusterSetup) -> None:
    """`redsched acl` adds what a cluster needs, and what durable claims need."""
    durable = QUICK.model_copy(update={"durability": "replicas=1"})
    rules = rules_of(
        StoreUser("redsched", StoreRole.SCHEDULER, tuple(CELLS)),
        durable.model_copy(update={"redis_url": setup.url}),
        "secret",
    )
    for node in setup.nodes:
        with node.asked() as client:
            client.execute_command("ACL", "SETUSER", "redsched", *rules)
    url = setup.url.replace("cluster://", "cluster://redsched:secret@")
    async with Store.connect(url, durable) as store, Scheduler.connect(url, durable) as scheduler:
        for name in CELLS:  # a claim id of the caller's waits until no cell can have lost its claim
            await store.cell(name).init()
            await speak_all([PlainHost(store.cell(name), f"h-{name}", VCPU)])
        cell = store.cell(MOVED)
        await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        assert await cell.bindings.cell_of_group("g") == ""
        with setup.half_moved(MOVED):
            assert await cell.hosts.inboxes(["nobody"]) == [[]]


async def test_a_server_of_a_cluster_given_alone_is_said(setup: ClusterSetup) -> None:
    host, port = setup.primary(MOVED).address
    with pytest.raises(StoreUnavailable, match="runs as cluster: give cluster://"):
        async with Store.connect(f"redis://{host}:{port}", QUICK):
            pass


async def test_nodes_that_are_gone_are_passed_over(setup: ClusterSetup) -> None:
    """One address that replies is enough."""
    host, port = setup.nodes[0].address
    async with Store.connect(f"cluster://127.0.0.1:1,{host}:{port}", QUICK) as store:
        assert await store.memory_policy() == "noeviction"
    with pytest.raises(StoreUnavailable, match="no node of the cluster returns its slots"):
        async with Store.connect("cluster://127.0.0.1:1", QUICK):
            pass


@pytest.mark.parametrize("error", [RedisClusterException("no node"), RedisConnectionError("gone"), OSError("reset")])
def test_whatever_keeps_a_read_from_its_node_is_said_to_be_the_store(error: Exception) -> None:
    with pytest.raises(StoreUnavailable, match=str(error)), reading("cluster://127.0.0.1:1"):
        raise error


async def test_a_node_that_is_slow_when_a_store_is_opened_is_passed_over(
    setup: ClusterSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reply to COMMAND is a long one, and a busy node may need more than the second that it gets."""
    asked: list[str] = []
    real = AsyncCommandsParser.initialize

    async def slow_at_first(parser: AsyncCommandsParser, node: Any) -> None:
        asked.append(node.name)
        if len(asked) == 1:
            raise RedisTimeoutError("Timeout reading")
        await real(parser, node)

    monkeypatch.setattr(AsyncCommandsParser, "initialize", slow_at_first)
    async with Store.connect(setup.url, QUICK) as store:
        await store.cell(CELLS[0]).init()
    assert len(set(asked)) == len(asked) == 2


async def test_a_server_that_is_no_cluster_is_said() -> None:
    with Node(pick_server(), {}) as alone:
        alone.launch()
        with pytest.raises(StoreUnavailable, match="Cluster mode is not enabled"):
            async with Store.connect("cluster://{}:{}".format(*alone.address), QUICK):
                pass
