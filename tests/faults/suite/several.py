"""The set-ups of several servers: Sentinel, and a cluster whose cells lie on different shards."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import redis

from tests.faults.suite.plan import children
from tests.faults.suite.site import Site
from tests.faults.suite.wires import Wires, wires_to_ports
from tests.support.setups import ClusterSetup, Node, SentinelSetup, cluster_setup, sentinel_setup
from tests.support.waiting import wait_until

WELL_S = 60.0


class Several(Site):
    """Several servers.

    Whoever takes a primary away, or moves what one has, asks for `leave` and gives it back when all has a primary
    again: as many as `most_away` may be away at once, for the others are to promote one.
    """

    def __init__(self, url: str, wires: Wires, cells: Sequence[str], most_away: int) -> None:
        super().__init__(wires, cells)
        self.direct_url = url
        self.leave = asyncio.Semaphore(most_away)

    def url(self, child: str) -> str:
        """What redsched is given."""
        return self.direct_url

    @abstractmethod
    def primary(self, tag: str) -> Node:
        """The server that has a cell, or another hash tag, now. Raises redis.ConnectionError while there is none."""

    @abstractmethod
    def cut_replication(self, cell: str) -> None:
        """What is written to the cell's server from now on is lost by a failover."""

    @abstractmethod
    def is_led_without(self, old: Node) -> bool:
        """Whether all has a primary again that is not `old`, which was killed, or stands still."""

    @abstractmethod
    def is_well(self) -> bool:
        """Whether all servers are there again, and could fail over."""

    def connect(self, tag: str) -> "redis.Redis":
        """A client of the primary."""
        client: redis.Redis = self.primary(tag).client()
        return client

    async def tidy(self) -> None:
        """Start those that were killed, and wait until they could take over: an old primary must learn its place."""
        for node in self.nodes():
            if not node.running:
                await asyncio.to_thread(node.restart)
        for node in self.nodes():
            node.mend_replication()
        await wait_until(self.is_well, WELL_S, "all servers are well again")

    @abstractmethod
    def nodes(self) -> Sequence[Node]:
        """All servers."""


class WithSentinel(Several):
    """A primary, two replicas and three Sentinels."""

    def __init__(self, setup: SentinelSetup, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(setup.url, wires, cells, most_away=2)
        self.setup = setup

    def primary(self, tag: str) -> Node:
        """The one that most Sentinels name."""
        try:
            return self.setup.primary()
        except (ValueError, StopIteration) as error:
            raise redis.ConnectionError("the Sentinels name nobody") from error

    def cut_replication(self, cell: str) -> None:
        """Between the primary and its replicas."""
        self.setup.cut_replication()

    def is_led_without(self, old: Node) -> bool:
        """Whether another one is named, and says so itself."""
        primary = self.setup.primary()
        return primary is not old and primary.is_primary()

    def is_well(self) -> bool:
        """Whether Sentinels and servers agree."""
        return self.setup.settled()

    def nodes(self) -> Sequence[Node]:
        """All servers."""
        return self.setup.servers


class Clustered(Several):
    """Three shards with a replica each, of which two have to be there for a promotion. No two cells lie on one."""

    def __init__(self, setup: ClusterSetup, wires: Wires, cells: Sequence[str]) -> None:
        super().__init__(setup.url, wires, cells, most_away=1)
        self.setup = setup
        self._cut: list[Node] = []

    @property
    def parts(self) -> Sequence[Sequence[str]]:
        """Each cell by itself."""
        return [(cell,) for cell in self.cells]

    def primary(self, tag: str) -> Node:
        """The one that has the slot."""
        try:
            return self.setup.primary(tag)
        except AssertionError as error:
            raise redis.ConnectionError(f"nobody has {tag}") from error

    def cut_replication(self, cell: str) -> None:
        """Between the cell's primary and its replica."""
        self._cut.append(self.primary(cell))
        self.setup.cut_replication(cell)

    def is_led_without(self, old: Node) -> bool:
        """Whether each shard of a cell has one."""
        return self.setup.led() and all(map(self.setup.has_primary, self.cells))

    def move(self, cell: str, at_once: bool) -> None:
        """Move a cell to a shard that has none, and whose servers may talk to each other; takes its time."""
        taken = [*self._cut, *(self.primary(one) for one in self.cells)]
        target = next(one for one in self.setup.others(cell) if one not in taken)
        self.setup.move(cell, target, at_once)

    async def tidy(self) -> None:
        """As for all of them."""
        await super().tidy()
        self._cut.clear()

    def is_well(self) -> bool:
        """Whether all nodes think so."""
        return all(map(self.setup.has_primary, self.cells)) and self.setup.well()

    def nodes(self) -> Sequence[Node]:
        """All servers."""
        return self.setup.nodes


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
    """Wires from each process to each of those: Sentinels too, for who cannot ask them has lost its way as well."""
    wires: Wires = await stack.enter_async_context(wires_to_ports([one.port for one in nodes], children("any")))
    return wires
