"""The set-ups of several servers: Sentinel, and a cluster whose cells lie on different shards."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import redis

from redsched.errors import StoreUnavailable
from tests.faults.suite.plan import children
from tests.faults.suite.site import Site
from tests.faults.suite.wires import Wires, wires_to_ports
from tests.support.setups import ClusterSetup, Node, SentinelSetup, cluster_setup, sentinel_setup
from tests.support.waiting import wait_until

WELL_S = 60.0
SPARE_S = 40.0
"""How long at most until a server that was brought back follows a primary: Sentinel alone waits for ten seconds."""


class Several(Site):
    """Several servers.

    Whoever takes a primary away, or moves what one has, asks for `leave` and gives it back when all has a primary
    again: as many as `most_away` may be away at once, for the others are to promote one.
    """

    def __init__(self, url: str, wires: Wires, cells: Sequence[str], most_away: int) -> None:
        super().__init__(wires, cells)
        self.direct_url = url
        self.leave = asyncio.Semaphore(most_away)
        self._turn = asyncio.Lock()
        """Of whoever starts or kills servers: two launches of one at once would lose one of the two."""

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
        """Return whether all has a primary again that is not `old`; False too while nobody can be asked."""

    def has_spare(self, tag: str) -> bool:
        """Return whether a server could be promoted in the place of the primary of a tag."""
        return any(one.answers and not one.is_primary() for one in self.shard(tag))

    @abstractmethod
    def shard(self, tag: str) -> Sequence[Node]:
        """The servers that hold the data of a tag, or did before they were killed. Raises redis.ConnectionError."""

    async def have_spare(self, tag: str) -> None:
        """Bring dead servers back where nobody is left to promote. Raises AssertionError after SPARE_S.

        Faults of the same round may have killed the others, and then nobody would ever take the place of the last one.
        """
        if self._could_fail_over(tag):
            return
        await self.bring_back()
        await wait_until(lambda: self._could_fail_over(tag), SPARE_S, f"a server that could take over {tag}")

    def _could_fail_over(self, tag: str) -> bool:
        with suppress(redis.ConnectionError):
            return self.has_spare(tag)
        return False

    async def kill(self, node: Node) -> None:
        """End a server as a crash does, where it runs."""
        async with self._turn:
            await asyncio.to_thread(node.kill)

    async def bring_back(self) -> None:
        """Start what was killed."""
        async with self._turn:
            for node in self.nodes():
                if not node.running:
                    await asyncio.to_thread(node.restart)

    @abstractmethod
    def is_well(self) -> bool:
        """Whether all servers are there again, and could fail over."""

    def connect(self, tag: str) -> "redis.Redis":
        """A client of the primary."""
        client: redis.Redis = self.primary(tag).client()
        return client

    async def tidy(self) -> None:
        """Start those that were killed, and wait until they could take over: an old primary must learn its place."""
        await self.bring_back()
        for node in self.nodes():
            if node.stands_still:
                resume(node)
        for node in self.nodes():
            node.repair_replication()
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
        with suppress(redis.ConnectionError):
            primary = self.primary("")
            return primary is not old and primary.is_primary()
        return False

    def shard(self, tag: str) -> Sequence[Node]:
        """All servers hold the same."""
        return self.setup.servers

    def failovers(self) -> int:
        """Return a number that rises with each failover."""
        return self.setup.failovers()

    def ask_for_failover(self) -> None:
        """Ask a Sentinel for a failover; nothing comes of it where one is under way, or nobody can be promoted now."""
        with suppress(redis.RedisError):
            self.setup.failover()

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

    def shard(self, tag: str) -> Sequence[Node]:
        """The primary and its replicas; the others are of other shards."""
        primary = self.primary(tag)
        return [primary, *(one for one in self.setup.nodes if one.answers and one.follows() == primary.port)]

    def move(self, cell: str, at_once: bool) -> bool:
        """Move a cell to a shard that has none, and whose servers may talk to each other; takes its time.

        Return False where there is no such shard: other faults have cut them all.
        """
        taken = [*self._cut, *(self.primary(one) for one in self.cells)]
        target = next((one for one in self.setup.others(cell) if one not in taken), None)
        if target is not None:
            self.setup.move(cell, target, at_once)
        return target is not None

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


def pause(node: Node) -> None:
    """Freeze a server, where it runs."""
    with suppress(StoreUnavailable):
        node.pause()


def resume(node: Node) -> None:
    """Let a server go on, where it runs: another fault may have killed it meanwhile."""
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
    """Wires from each process to each of those: Sentinels too, for who cannot ask them has lost its way as well."""
    wires: Wires = await stack.enter_async_context(wires_to_ports([one.port for one in nodes], children("any")))
    return wires
