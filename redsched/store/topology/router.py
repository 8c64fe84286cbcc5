"""Routers: the ways to the servers of a store. What is said about a key goes the way of that key.

One server, what Sentinels name, and a cluster look the same from here: the runner asks for the pool of a key,
who reads for the reader of a cell, and nobody else knows the kinds.

    Router -- SingleNodeRouter      one pool, to an address or to wherever Sentinel says
         `-- ClusterRouter        one pool for each server, one reader for each cell
"""

from collections.abc import Mapping
from typing import Any, Protocol

import redis.asyncio as redis
from redis.asyncio import BlockingConnectionPool
from redis.exceptions import AskError

from redsched.settings import Settings
from redsched.store.topology.cluster import SlotPlace, Topology, slot_of
from redsched.store.topology.connection import reader_client, writer_pool
from redsched.store.topology.sentinel import SentinelPlace
from redsched.store.topology.url import Address, Kind, StoreUrl, parse

Infos = dict[str, Mapping[str, Any]]


class Router(Protocol):
    """The ways to the servers of one store."""

    outside: Any
    """A client for reads of single keys that lie in no cell."""

    async def open(self) -> None:
        """Find out what there is. Raises what redis-py raises."""

    def pool(self, key: str) -> BlockingConnectionPool:
        """The writer's connections to the server that has a key, as far as is known."""

    def asked(self, error: AskError) -> BlockingConnectionPool:
        """The writer's connections to the server that an ASK names."""

    def reader(self, key: str) -> redis.Redis:
        """A client that reads wherever a cell is; `key` is any of the cell."""

    async def invalidate(self, error: BaseException) -> None:
        """Hear that a server is gone or has said that another one has the key."""

    async def infos(self, section: str) -> Infos:
        """INFO of every primary, by a name for it. Raises what redis-py raises."""

    async def close(self) -> None:
        """End all connections."""


def router_to(url: str, settings: Settings) -> Router:
    """Return the router to a store; nothing is connected yet. Raises InvalidRequest for a URL that is none."""
    parsed = parse(url)
    return ClusterRouter(parsed, settings) if parsed.kind is Kind.CLUSTER else SingleNodeRouter(parsed, settings)


class SingleNodeRouter:
    """A server at an address, or the one that Sentinels name."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        self._place = SentinelPlace(url, settings) if url.kind is Kind.SENTINEL else None
        self._pool = writer_pool(url, settings, self._place)
        self.outside: Any = reader_client(url, settings, self._place)

    async def open(self) -> None:
        """Nothing to find out."""

    def pool(self, key: str) -> BlockingConnectionPool:  # noqa: ARG002 - one server has all keys
        """All keys are there."""
        return self._pool

    def asked(self, error: AskError) -> BlockingConnectionPool:  # noqa: ARG002 - there is no other server
        """There is no other."""
        return self._pool

    def reader(self, key: str) -> redis.Redis:  # noqa: ARG002 - one server has all keys
        """All keys are there."""
        client: redis.Redis = self.outside
        return client

    async def invalidate(self, error: BaseException) -> None:
        """Nothing to forget: Sentinels are asked at each connect."""

    async def infos(self, section: str) -> Infos:
        """Of the one."""
        return {"it": await self.outside.info(section)}

    async def close(self) -> None:
        """End all connections."""
        await self._pool.disconnect()
        await self.outside.aclose(close_connection_pool=True)
        if self._place is not None:
            await self._place.close()


class ClusterRouter:
    """A lane for each server of a cluster. Cells share those of their servers for writing; each has its own reader."""

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        self._url = url
        self._settings = settings
        self._topology = Topology(url, settings)
        self._pools: dict[Address, BlockingConnectionPool] = {}
        self._readers: dict[int, redis.Redis] = {}
        self.outside: Any = self._topology.client

    async def open(self) -> None:
        """Learn which server has which slot."""
        await self._topology.known()

    def pool(self, key: str) -> BlockingConnectionPool:
        """Of the slot's primary; where nobody has the slot, of any node: it will say so."""
        return self._pool_at(self._topology.owner(slot_of(key)) or self._url.nodes[0])

    def asked(self, error: AskError) -> BlockingConnectionPool:
        """Of the server that the slot is moving to."""
        return self._pool_at((error.host, int(error.port)))

    def reader(self, key: str) -> redis.Redis:
        """One for each slot, so that a moved cell takes no other with it."""
        slot = slot_of(key)
        if slot not in self._readers:
            self._readers[slot] = reader_client(self._url, self._settings, SlotPlace(self._topology, slot))
        return self._readers[slot]

    async def invalidate(self, error: BaseException) -> None:
        """Note where MOVED points to; else ask for the topology anew, if any node answers now."""
        await self._topology.invalidate(error)
        await self._topology.known()

    async def infos(self, section: str) -> Infos:
        """Of every primary."""
        await self._topology.known()
        nodes = self._topology.client.get_primaries()
        return {node.name: await self.outside.execute_command("INFO", section, target_nodes=node) for node in nodes}

    async def close(self) -> None:
        """End all connections."""
        for pool in self._pools.values():
            await pool.disconnect()
        for reader in self._readers.values():
            await reader.aclose(close_connection_pool=True)
        await self._topology.close()

    def _pool_at(self, address: Address) -> BlockingConnectionPool:
        if address not in self._pools:
            self._pools[address] = writer_pool(self._url, self._settings, address)
        return self._pools[address]
