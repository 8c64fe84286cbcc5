"""The set-ups of several servers: Sentinel, and a cluster whose cells are on different shards."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import redis

from redsched.errors import StoreUnavailable
from tests.faults.suite.plan import children
from tests.faults.suite.stores.site import Site
from tests.faults.suite.stores.wires import Wires, wires_to_ports
from tests.support.setups import ClusterSetup, Node, SentinelSetup, cluster_setup, sentinel_setup
from tests.support.waiting import wait_until

WELL_S = 60.0
SPARE_S = 40.0
"""Maximum time until a restored server follows a primary: Sentinel alone waits for ten seconds."""


class Several(Site):
    """Several servers.

    A fault that takes a primary away, or moves its data, acquires `leave`, and releases it when there is a primary.
    At most `most_away` may be away at once, because the others must promote one.
    """

    def __init__(self, url: str, wires: Wires, cells: Sequence[str], most_away: int) -> None:
        super().__init__(wires, cells)
        self.direct_url = url
        self.leave = asyncio.Semaphore(most_away)
        self._turn = asyncio.Lock()
        """Guards starting and killing servers: two starts of one server at once would lose one of the two."""

    def url(self, child: str) -> str:
        """The URL for redsched."""
        return self.direct_url

    @abstractmethod
    def primary(self, tag: str) -> Node:
        """Return the server that now has a cell, or another hash tag. Raises redis.ConnectionError if none has."""

    @abstractmethod
    def cut_replication(self, cell: str) -> None:
        """From now on a failover loses all writes to the cell's server."""

    @abstractmethod
    def is_led_without(self, old: Node) -> bool:
        """Return whether every tag has a primary that is not `old`; False too while no server replies."""

    def has_spare(self, tag: str) -> bool:
        """Return whether a server could be promoted in place of the primary of a tag."""
        return any(one.answers and not one.is_primary() for one in self.shard(tag))

    @abstractmethod
    def shard(self, tag: str) -> Sequence[Node]:
        """Return the servers that hold a tag's data, or did before they were killed. Raises redis.ConnectionError."""

    async def have_spare(self, tag: str) -> None:
        """Restart dead servers if none is left to promote. Raises AssertionError after SPARE_S.

        Faults of the same round may have killed the others, so that nothing could ever replace the last one.
        """
        if self._could_fail_over(tag):
            return
        await self.bring_back()
        await wait_until(lambda: self._could_fail_over(tag), SPARE_S, f"a server that could take over {tag}")

    async def have_copy(self, tag: str) -> None:
        """Wait until a replica has the data of a tag, where claims wait for one. Raises AssertionError after SPARE_S.

        A claim that is on two servers survives the loss of one. A server that was killed has what its disk had: until
        it has the data of the new primary, the loss of that one would be the second.
        """
        if self.loses_nothing:
            await wait_until(lambda: self._has_copy(tag), SPARE_S, f"a replica that has the data of {tag}")

    def _has_copy(self, tag: str) -> bool:
        with suppress(redis.ConnectionError):
            return any(one.linked() for one in self.shard(tag))
        return False

    def _could_fail_over(self, tag: str) -> bool:
        with suppress(redis.ConnectionError):
            return self.has_spare(tag)
        return False

    async def kill(self, node: Node) -> None:
        """Kill a server if it runs, as a crash does."""
        async with self._turn:
            await asyncio.to_thread(node.kill)

    async def bring_back(self) -> None:
        """Start the killed servers."""
        async with self._turn:
            for node in self.nodes():
                if not node.running:
                    await asyncio.to_thread(node.restart)

    @abstractmethod
    def is_well(self) -> bool:
        """Return whether all servers are running, and could fail over."""

    def connect(self, tag: str) -> "redis.Redis":
        """Return a client of the primary."""
        client: redis.Redis = self.primary(tag).client()
        return client

    async def tidy(self) -> None:
        """Start the killed servers, and wait until they could take over: an old primary must become a replica."""
        await self.bring_back()
        for node in self.nodes():
            if node.stands_still:
                resume(node)
        for node in self.nodes():
            node.repair_replication()
        await wait_until(self.is_well, WELL_S, "all servers are well again")

    @abstractmethod
    def nodes(self) -> Sequence[Node]:
        """Return all servers."""


class WithSentinel(Several):
    """A primary, two replicas and three Sentinels."""

    def __init__(self, setup: SentinelSetup, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(setup.url, wires, cells, most_away=2)
        self.setup = setup

    def primary(self, tag: str) -> Node:
        """Return the primary that most Sentinels name."""
        try:
            return self.setup.primary()
        except (ValueError, StopIteration) as error:
            raise redis.ConnectionError("the Sentinels name nobody") from error

    def cut_replication(self, cell: str) -> None:
        """Return the servers between which to cut the link: the primary and its replicas."""
        self.setup.cut_replication()

    def is_led_without(self, old: Node) -> bool:
        """Return whether another server is named primary, and reports itself as one."""
        with suppress(redis.ConnectionError):
            primary = self.primary("")
            return primary is not old and primary.is_primary()
        return False

    def shard(self, tag: str) -> Sequence[Node]:
        """Return all servers: each has the same data."""
        return self.setup.servers

    def failovers(self) -> int:
        """Return a number that rises with each failover."""
        return self.setup.failovers()

    def ask_for_failover(self) -> None:
        """Request a failover from a Sentinel. It has no effect during another one, or if no replica can be promoted."""
        with suppress(redis.RedisError):
            self.setup.failover()

    def is_well(self) -> bool:
        """Return whether Sentinels and servers agree."""
        return self.setup.settled()

    def nodes(self) -> Sequence[Node]:
        """Return all servers."""
        return self.setup.servers


class Clustered(Several):
    """Three shards with a replica each; a promotion needs two of them. No two cells share a shard."""

    def __init__(self, setup: ClusterSetup, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(setup.url, wires, cells, most_away=1)
        self.setup = setup
        self._cut: list[Node] = []

    @property
    def parts(self) -> Sequence[Sequence[str]]:
        """Return each cell by itself."""
        return [(cell,) for cell in self.cells]

    def primary(self, tag: str) -> Node:
        """Return the node that has the slot."""
        try:
            return self.setup.primary(tag)
        except AssertionError as error:
            raise redis.ConnectionError(f"nobody has {tag}") from error

    def cut_replication(self, cell: str) -> None:
        """Return the nodes between which to cut the link: the cell's primary and its replica."""
        self._cut.append(self.primary(cell))
        self.setup.cut_replication(cell)

    def is_led_without(self, old: Node) -> bool:
        """Return whether the shard of each cell has a primary."""
        return self.setup.led() and all(map(self.setup.has_primary, self.cells))

    def shard(self, tag: str) -> Sequence[Node]:
        """Return the primary and its replicas; the others belong to other shards."""
        primary = self.primary(tag)
        return [primary, *(one for one in self.setup.nodes if one.answers and one.follows() == primary.port)]

    def move(self, cell: str, at_once: bool) -> bool:
        """Move a cell to a shard that has none, and whose nodes are connected to each other. This takes a while.

        Return False if there is no such shard because other faults have cut all of them.
        """
        taken = [*self._cut, *(self.primary(one) for one in self.cells)]
        target = next((one for one in self.setup.others(cell) if one not in taken), None)
        if target is not None:
            self.setup.move(cell, target, at_once)
        return target is not None

    async def tidy(self) -> None:
        """Tidy up as for every site."""
        await super().tidy()
        self._cut.clear()

    def is_well(self) -> bool:
        """Return whether all nodes agree."""
        return all(map(self.setup.has_primary, self.cells)) and self.setup.well()

    def nodes(self) -> Sequence[Node]:
        """Return all servers."""
        return self.setup.nodes


def pause(node: Node) -> None:
    """Freeze a server if it runs."""
    with suppress(StoreUnavailable):
        node.pause()


def resume(node: Node) -> None:
    """Resume a server if it runs: another fault may have killed it meanwhile."""
    with suppress(StoreUnavailable):
        node.resume()


@asynccontextmanager
async def sentinel(durability: str, cells: Sequence[str]) -> AsyncIterator[Site]:
    """A set-up with Sentinels."""
    async with AsyncExitStack() as stack:
        setup = await asyncio.to_thread(stack.enter_context, sentinel_setup(appendonly="yes"))
        site = WithSentinel(setup, await _wired(stack, (*setup.servers, *setup.sentinels)), cells)
        site.loses_nothing = "replicas" in durability
        yield site


@asynccontextmanager
async def cluster(durability: str, cells: Sequence[str]) -> AsyncIterator[Site]:
    """A cluster."""
    async with AsyncExitStack() as stack:
        setup = await asyncio.to_thread(stack.enter_context, cluster_setup(appendonly="yes"))
        site = Clustered(setup, await _wired(stack, setup.nodes), cells)
        site.loses_nothing = "replicas" in durability
        yield site


async def _wired(stack: AsyncExitStack, nodes: Sequence[Node]) -> Wires:
    """Return wires from each process to each server and Sentinel: a process that cannot reach Sentinels is cut off."""
    wires: Wires = await stack.enter_async_context(wires_to_ports([one.port for one in nodes], children("any")))
    return wires
