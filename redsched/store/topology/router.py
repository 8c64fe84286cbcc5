"""Routers: from a key to the server that has it.

A single server, a primary named by Sentinels, and a cluster look the same to callers: the script client asks for the
pool of a key, readers ask for the reader of a cell, and nothing else knows the kinds.

    Router -- SingleNodeRouter      one pool, to an address or to wherever Sentinel says
         `-- ClusterRouter        one pool for each server, one reader for each cell
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import redis.asyncio as redis
from redis.asyncio import BlockingConnectionPool
from redis.exceptions import AskError

from redsched.settings import Settings
from redsched.store.topology.cluster import SlotEndpoint, Topology, slot_of
from redsched.store.topology.connection import reader_client, writer_pool
from redsched.store.topology.password import with_password
from redsched.store.topology.sentinel import SentinelEndpoint
from redsched.store.topology.tls_files import check_tls_files
from redsched.store.topology.url import Address, Kind, StoreUrl, parse

Infos = dict[str, Mapping[str, Any]]
Send = Callable[..., Awaitable[Any]]
"""Sends the words of a command to one server and returns its reply. Raises what redis-py raises."""
ONLY = "it"
"""The name of the primary of a store that is no cluster."""


class Router(Protocol):
    """Access to the servers of one store."""

    outside: Any
    """A client for reads of single keys that belong to no cell."""

    async def open(self) -> None:
        """Discover the servers. Raises what redis-py raises."""

    def pool(self, key: str) -> BlockingConnectionPool:
        """Return the writer's connections to the server that has a key according to the known topology."""

    def asked(self, error: AskError) -> BlockingConnectionPool:
        """Return the writer's connections to the server that an ASK redirect names."""

    def reader(self, key: str) -> redis.Redis:
        """Return a client that reads from the server that has a cell; `key` is any key of the cell."""

    async def invalidate(self, error: BaseException) -> None:
        """Handle the failure of a server, or its reply that another one has the key."""

    async def primaries(self) -> Mapping[str, Send]:
        """Return how to send a command to each primary, by the primary's name. Raises what redis-py raises."""

    async def close(self) -> None:
        """Close all connections."""


async def infos(router: Router, section: str) -> Infos:
    """Return a section of INFO of every primary, by the primary's name. Raises what redis-py raises."""
    return {name: await send("INFO", section) for name, send in (await router.primaries()).items()}


def router_to(url: str, settings: Settings) -> Router:
    """Return the router of a store; nothing is connected yet.

    Raises InvalidRequest for an invalid URL, and for files of TLS or of a password that cannot be used.
    """
    parsed = with_password(parse(url), settings.redis_password_file)
    check_tls_files(parsed)
    return ClusterRouter(parsed, settings) if parsed.kind is Kind.CLUSTER else SingleNodeRouter(parsed, settings)


class SingleNodeRouter:
    """A server at a fixed address, or the primary that Sentinels name."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        self._place = SentinelEndpoint(url, settings) if url.kind is Kind.SENTINEL else None
        self._pool = writer_pool(url, settings, self._place)
        self.outside: Any = reader_client(url, settings, self._place)

    async def open(self) -> None:
        """Do nothing: there is no topology to load."""

    def pool(self, key: str) -> BlockingConnectionPool:  # noqa: ARG002 - one server has all keys
        """Return the only pool: one server has all keys."""
        return self._pool

    def asked(self, error: AskError) -> BlockingConnectionPool:  # noqa: ARG002 - there is no other server
        """Return the only pool: there is no other server."""
        return self._pool

    def reader(self, key: str) -> redis.Redis:  # noqa: ARG002 - one server has all keys
        """Return the only client: one server has all keys."""
        client: redis.Redis = self.outside
        return client

    async def invalidate(self, error: BaseException) -> None:
        """Do nothing: Sentinels are asked at each connect."""

    async def primaries(self) -> Mapping[str, Send]:
        """Return how to send a command to the server, under a fixed name."""
        return {ONLY: self.outside.execute_command}

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.disconnect()
        await self.outside.aclose(close_connection_pool=True)
        if self._place is not None:
            await self._place.close()


class ClusterRouter:
    """A pool for each server of a cluster, which its cells share for writing; each cell has its own reader."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        self._url = url
        self._settings = settings
        self._topology = Topology(url, settings)
        self._pools: dict[Address, BlockingConnectionPool] = {}
        self._readers: dict[int, redis.Redis] = {}
        self.outside: Any = self._topology.client

    async def open(self) -> None:
        """Load which server has which slot."""
        await self._topology.known()

    def pool(self, key: str) -> BlockingConnectionPool:
        """Return the pool of the slot's primary; if none is known, of any node, which will report it."""
        return self._pool_at(self._topology.owner(slot_of(key)) or self._url.nodes[0])

    def asked(self, error: AskError) -> BlockingConnectionPool:
        """Return the pool of the server that the slot is moving to."""
        return self._pool_at((error.host, int(error.port)))

    def reader(self, key: str) -> redis.Redis:
        """Return the slot's client: one for each slot, so that a moved cell does not affect the others."""
        slot = slot_of(key)
        if slot not in self._readers:
            self._readers[slot] = reader_client(self._url, self._settings, SlotEndpoint(self._topology, slot))
        return self._readers[slot]

    async def invalidate(self, error: BaseException) -> None:
        """Record the target of MOVED; after any other error, load the topology again if a node replies now."""
        await self._topology.invalidate(error)
        await self._topology.known()

    async def primaries(self) -> Mapping[str, Send]:
        """Return how to send a command to each primary, by the primary's name."""
        await self._topology.known()
        nodes = self._topology.client.get_primaries()
        return {node.name: functools.partial(self.outside.execute_command, target_nodes=node) for node in nodes}

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.disconnect()
        for reader in self._readers.values():
            await reader.aclose(close_connection_pool=True)
        await self._topology.close()

    def _pool_at(self, address: Address) -> BlockingConnectionPool:
        if address not in self._pools:
            self._pools[address] = writer_pool(self._url, self._settings, address)
        return self._pools[address]
