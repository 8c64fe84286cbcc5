"""The set-ups that stores stand in: one server with a wire from each process, Sentinel, a cluster."""

import asyncio
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import redis

from redsched.store import Store
from redsched.store.server import PrivateServer
from tests.faults.suite.plan import children
from tests.faults.suite.traffic import QUOTA
from tests.faults.suite.watcher import direct
from tests.faults.suite.wires import Wire, reopen, shut, wires
from tests.support.servers import SERVERS
from tests.support.setups import ClusterSetup, Node, SentinelSetup, cluster_setup, sentinel_setup
from tests.support.waiting import wait_until

CELL = {"jump_s": "3", "settle_s": "15"}
"""The cell's own times, as short as the leases: docs/operate.md, "Limits of a cell"."""

META = "rs:{c1}:meta"
LEDGER = f"rs:{{quota:{QUOTA.project}}}"
WELL_S = 60.0


class Site(ABC):
    """A store as processes, faults and the watcher reach it."""

    direct_url: str
    loses_nothing = False
    """Whether what this run's durability promises covers the faults of this set-up that lose writes."""

    @abstractmethod
    def url(self, child: str) -> str:
        """The store's URL for a process."""

    @abstractmethod
    def connect(self) -> "redis.Redis":
        """A client of the present primary, past all wires."""

    def ledger(self) -> Mapping[str, str]:
        """The hash of the ledger of the project that has a quota."""
        with self.connect() as client:
            found: dict[str, str] = client.hgetall(LEDGER)
            return found

    async def prepare(self) -> None:
        """Declare the cell new, as whoever installs redsched does."""
        async with Store.connect(self.direct_url) as store:
            await store.cell("c1").init()
        with self.connect() as client:
            client.hset(META, mapping=CELL)

    @abstractmethod
    async def tidy(self) -> None:
        """After a round: bring back what its faults took away for longer than the round."""


class Single(Site):
    """One server with an append-only file."""

    def __init__(self, server: PrivateServer, between: Mapping[str, Wire]) -> None:
        self.server = server
        self.wires = between
        self.direct_url = server.url

    def url(self, child: str) -> str:
        """The URL of the process' wire."""
        return self.wires[child].url

    def connect(self) -> "redis.Redis":
        """A client of the server."""
        return direct(str(self.server.socket))

    async def kill(self) -> None:
        """End the server as a crash does."""
        shut(self.wires.values())
        self.server.kill()

    async def restart(self, forgets: bool) -> None:
        """Bring it back, with its file or without. Nobody gets through before the cell's times are set again."""
        if forgets and self.server.data_dir is not None:
            shutil.rmtree(self.server.data_dir / "appendonlydir")
        await asyncio.to_thread(self.server.restart)
        if forgets:
            with self.connect() as client:
                client.hset(META, mapping=CELL)
        reopen(self.wires.values())

    async def tidy(self) -> None:
        """Nothing is taken away for longer."""

    def wipe(self) -> None:
        """FLUSHALL, and the cell's times set again in the same instant: the default would be to wait for a minute."""
        with self.connect() as client:
            pipe = client.pipeline(transaction=True)
            pipe.flushall()
            pipe.hset(META, mapping=CELL)
            pipe.execute()


class Several(Site):
    """Several servers, whose processes are reached without wires."""

    def __init__(self, url: str) -> None:
        self.direct_url = url

    def url(self, child: str) -> str:
        """What redsched is given."""
        return self.direct_url

    @abstractmethod
    def primary(self) -> Node:
        """The server that has the cell now. Raises redis.ConnectionError while there is none."""

    @abstractmethod
    def cut_replication(self) -> None:
        """What is written from now on is lost by a failover."""

    @abstractmethod
    def is_well(self) -> bool:
        """Whether all servers are there again, and could fail over."""

    def connect(self) -> "redis.Redis":
        """A client of the primary."""
        client: redis.Redis = self.primary().client()
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

    def __init__(self, setup: SentinelSetup) -> None:
        super().__init__(setup.url)
        self.setup = setup

    def primary(self) -> Node:
        """The one that most Sentinels name."""
        try:
            return self.setup.primary()
        except (ValueError, StopIteration) as error:
            raise redis.ConnectionError("the Sentinels name nobody") from error

    def cut_replication(self) -> None:
        """Between the primary and its replicas."""
        self.setup.cut_replication()

    def is_well(self) -> bool:
        """Whether Sentinels and servers agree."""
        return self.setup.settled()

    def nodes(self) -> Sequence[Node]:
        """All servers."""
        return self.setup.servers


class Clustered(Several):
    """Three shards with a replica each."""

    def __init__(self, setup: ClusterSetup) -> None:
        super().__init__(setup.url)
        self.setup = setup

    def primary(self) -> Node:
        """The one that has the cell's slot."""
        try:
            return self.setup.primary("c1")
        except AssertionError as error:
            raise redis.ConnectionError("nobody has the cell") from error

    def ledger(self) -> Mapping[str, str]:
        """It lies where its own hash tag says."""
        with self.setup.primary(LEDGER[4:-1]).client() as client:
            found: dict[str, str] = client.hgetall(LEDGER)
            return found

    def cut_replication(self) -> None:
        """Between the cell's primary and its replica."""
        self.setup.cut_replication("c1")

    def is_well(self) -> bool:
        """Whether all nodes think so."""
        return self.setup.has_primary("c1") and self.setup.well()

    def nodes(self) -> Sequence[Node]:
        """All servers."""
        return self.setup.nodes


@asynccontextmanager
async def single(durability: str = "none") -> AsyncIterator[Site]:
    """A server of its own. Under `fsync` it is one that can be asked whether its disk has a write (WAITAOF)."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-site-")))
        binary = next(one.path for one in SERVERS if one.kind == "valkey") if "fsync" in durability else None
        server = stack.enter_context(PrivateServer.start(binary, folder / "data"))
        between = await stack.enter_async_context(wires(server.socket, folder, children("any")))
        site = Single(server, between)
        site.loses_nothing = "fsync" in durability
        yield site


@asynccontextmanager
async def sentinel(durability: str = "none") -> AsyncIterator[Site]:
    """A set-up with Sentinels."""
    with ExitStack() as stack:
        site = WithSentinel(await asyncio.to_thread(stack.enter_context, sentinel_setup(appendonly="yes")))
        site.loses_nothing = "replicas" in durability
        yield site


@asynccontextmanager
async def cluster(durability: str = "none") -> AsyncIterator[Site]:
    """A cluster."""
    with ExitStack() as stack:
        site = Clustered(await asyncio.to_thread(stack.enter_context, cluster_setup(appendonly="yes")))
        site.loses_nothing = "replicas" in durability
        yield site


SITES: Mapping[str, Callable[[str], AbstractAsyncContextManager[Site]]] = {
    "single": single,
    "sentinel": sentinel,
    "cluster": cluster,
}
"""The set-ups by name. Each takes the durability that the run's schedulers ask for."""
