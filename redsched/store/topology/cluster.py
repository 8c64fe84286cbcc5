"""The slots of a cluster and their servers: redis-py's cluster client, reloaded when its topology is out of date."""

import asyncio

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError, MovedError, RedisClusterException, RedisError

from redsched.settings import Settings
from redsched.store.topology.connection import READER, login
from redsched.store.topology.url import Address, StoreUrl

LONGEST_ASK_S = 1.0
"""How long one node may take to return the topology before another one is asked."""


MAX_CONNECTIONS = 256
"""The most connections to each server for reads outside the cells. A caller that finds none free is refused."""


class Topology:
    """The primaries of a cluster's slots. `client` is for reads outside the cells, each of one key."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        patience_s = min(settings.reply_timeout_s, LONGEST_ASK_S)
        self.client = RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in url.nodes],
            require_full_coverage=False,  # one shard that is down must not make the others unusable
            retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.5), 3),
            ssl=url.tls,
            protocol=2,
            decode_responses=True,
            client_name=READER,
            driver_info=None,  # as in connection.py
            max_connections=MAX_CONNECTIONS,
            socket_timeout=patience_s,
            socket_connect_timeout=patience_s,
            **login(url),
        )
        self._lock = asyncio.Lock()
        self._is_stale = True
        self._is_open = False

    def owner(self, slot: int) -> Address | None:
        """Return the primary of a slot; None if it is not known."""
        nodes = self.client.nodes_manager.slots_cache.get(slot)
        return (nodes[0].host, int(nodes[0].port)) if nodes else None

    async def known(self) -> None:
        """Load the topology if it may be out of date. Raises redis-py's ConnectionError if no node returns it."""
        async with self._lock:
            if not self._is_stale:
                return
            try:
                await self._load()
            except (RedisError, RedisClusterException, OSError) as error:
                raise RedisConnectionError(f"no node of the cluster returns its slots: {error}") from error
            self._is_stale = False

    async def _load(self) -> None:
        """Load the topology, once: opening the client loads it too, and it takes tens of milliseconds."""
        was_open = self._is_open
        await self._open()
        self._is_open = True
        if was_open:
            await self.client.nodes_manager.initialize()

    async def _open(self) -> None:
        """Open the client, which asks the first primary for the server's commands; ask another one if it is slow."""
        try:
            await self.client.initialize()
        except (RedisError, OSError):
            primaries = self.client.get_primaries()
            if not primaries:
                raise  # no node has returned the slots
            # When it is found again, it comes after the others.
            self.client.nodes_manager.nodes_cache.pop(primaries[0].name)
            await self.client.initialize()

    async def invalidate(self, error: BaseException) -> None:
        """Process a node's error: MOVED names the slot's server; after another error, the topology is loaded again."""
        if isinstance(error, MovedError) and self.client.nodes_manager.slots_cache.get(error.slot_id):
            await self.client.nodes_manager.move_slot(error)
        else:
            self._is_stale = True

    async def close(self) -> None:
        """Close all connections, including those to nodes that the client keeps for a later reload."""
        await self.client.aclose()
        await self.client.nodes_manager.aclose()
        await self.client.nodes_manager.aclose("startup_nodes")


class SlotEndpoint:
    """The endpoint of one slot's primary."""

    def __init__(self, topology: Topology, slot: int) -> None:
        self._topology = topology
        self._slot = slot

    @property
    def address(self) -> Address | None:
        """The primary's address; None if it is not known."""
        return self._topology.owner(self._slot)

    async def find(self) -> Address:
        """Return the primary's address. Raises redis-py's ConnectionError while no node has the slot."""
        await self._topology.known()
        if self.address is None:
            await self._topology.invalidate(LookupError())
            raise RedisConnectionError(f"no node of the cluster has slot {self._slot}")
        return self.address

    def recheck(self) -> None:
        """Do nothing: a node that has lost the slot refuses the calls for it."""

    async def invalidate(self, error: BaseException) -> None:
        """Pass the error on to the topology."""
        await self._topology.invalidate(error)


def slot_of(key: str) -> int:
    """Return the hash slot of a key."""
    return int(key_slot(key.encode()))
