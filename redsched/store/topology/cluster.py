"""Which server of a cluster has which slot: redis-py's own cluster client, asked anew when it turned out wrong."""

import asyncio

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, RedisClusterException, RedisError

from redsched.settings import Settings
from redsched.store.topology.connection import READER, login
from redsched.store.topology.url import Address, StoreUrl

LONGEST_ASK_S = 1.0
"""How long one node may take to tell the topology: another one is asked then."""


MAX_CONNECTIONS = 256
"""To each server, for reads outside the cells. Who finds none free is refused and does not wait: so they are many."""


class Topology:
    """`client` is for reads outside the cells, each of one key."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        patience_s = min(settings.reply_timeout_s, LONGEST_ASK_S)
        self.client = RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in url.nodes],
            require_full_coverage=False,  # one shard that is down is no reason to leave the others alone
            retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.5), 3),
            ssl=url.tls,
            protocol=2,
            decode_responses=True,
            client_name=READER,
            max_connections=MAX_CONNECTIONS,
            socket_timeout=patience_s,
            socket_connect_timeout=patience_s,
            **login(url),
        )
        self._lock = asyncio.Lock()
        self._doubted = True

    def owner(self, slot: int) -> Address | None:
        """The primary of a slot as far as is known."""
        nodes = self.client.nodes_manager.slots_cache.get(slot)
        return (nodes[0].host, int(nodes[0].port)) if nodes else None

    async def known(self) -> None:
        """Ask for the topology if it is in doubt. Raises redis-py's ConnectionError where no node tells it."""
        async with self._lock:
            if not self._doubted:
                return
            try:
                await self.client.initialize()
                await self.client.nodes_manager.initialize()
            except (RedisError, RedisClusterException, OSError) as error:
                raise RedisConnectionError(f"no node of the cluster tells its slots: {error}") from error
            self._doubted = False

    async def invalidate(self, error: BaseException) -> None:
        """Hear what a node answered: MOVED says where the slot is; all else, that it is time to ask again."""
        if isinstance(error, MovedError) and self.client.nodes_manager.slots_cache.get(error.slot_id):
            await self.client.nodes_manager.move_slot(error)
        else:
            self._doubted = True

    async def close(self) -> None:
        """End all connections, also those that the client has left to be looked at again."""
        await self.client.aclose()
        await self.client.nodes_manager.aclose()
        await self.client.nodes_manager.aclose("startup_nodes")


class SlotPlace:
    """The primary of one slot."""

    def __init__(self, topology: Topology, slot: int) -> None:
        self._topology = topology
        self._slot = slot

    @property
    def address(self) -> Address | None:
        """As far as is known."""
        return self._topology.owner(self._slot)

    async def find(self) -> Address:
        """Raises redis-py's ConnectionError while nobody has the slot."""
        await self._topology.known()
        if self.address is None:
            await self._topology.invalidate(LookupError())
            raise RedisConnectionError(f"no node of the cluster has slot {self._slot}")
        return self.address

    async def invalidate(self, error: BaseException) -> None:
        """Pass it on."""
        await self._topology.invalidate(error)


def slot_of(key: str) -> int:
    """The hash slot of a key."""
    return int(key_slot(key.encode()))
