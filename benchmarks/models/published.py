"""Host state in the store, one hash for each host: what nova-compute writes to the table compute_nodes.

A Redis hash replaces a row of MySQL, and a pipeline of HGETALL replaces `SELECT * FROM compute_nodes`. Both are faster
than the database (and than building its objects), which favours the models that read the whole fleet.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis

from benchmarks.models.hosts import Book, Publisher, Silent
from benchmarks.models.rpc import Message
from benchmarks.models.views import HostView
from benchmarks.models.work import CLASSES, Setup

PREFIX = "benchmark:host:"


MAX_CONNECTIONS = 64
POOL_TIMEOUT_S = 30.0


@contextlib.asynccontextmanager
async def redis_client(setup: Setup) -> AsyncIterator[Any]:
    """Yield a client of the store whose connections are open, as those of a long-running process would be."""
    pool = BlockingConnectionPool.from_url(
        setup.store_url, protocol=2, decode_responses=True, max_connections=MAX_CONNECTIONS, timeout=POOL_TIMEOUT_S
    )
    async with Redis.from_pool(pool) as client:
        await asyncio.gather(*(client.ping() for _ in range(min(setup.concurrency, MAX_CONNECTIONS))))
        yield client


async def publish_fleet(setup: Setup) -> None:
    """Publish all hosts as empty."""
    async with redis_client(setup) as client:
        pipe = client.pipeline(transaction=False)
        for spec in setup.hosts:
            pipe.hset(PREFIX + spec.name, mapping=_fields(spec.capacity, {}))
        await pipe.execute()


def _fields(capacity: Mapping[str, int], used: Mapping[str, int]) -> dict[str, str]:
    amounts = {f"capacity.{kind}": str(amount) for kind, amount in capacity.items()}
    return amounts | {f"used.{kind}": str(used.get(kind, 0)) for kind in CLASSES} | {"updated_s": repr(time.time())}


class StatePublisher(Silent):
    """Writes a host's whole state to the store after each claim that it accepted."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def claimed(self, book: Book, message: Message, accepted: bool) -> None:  # noqa: ARG002 - as Publisher has it
        """Write the state, before the claim is answered."""
        if accepted:
            await self._client.hset(PREFIX + book.spec.name, mapping=_fields(book.spec.capacity, book.used))


@contextlib.asynccontextmanager
async def publishing_state(setup: Setup) -> AsyncIterator[Publisher]:
    """Have hosts write their state to the store."""
    async with redis_client(setup) as client:
        yield StatePublisher(client)


async def refresh(client: Any, views: Mapping[str, HostView], database_s: float = 0.0) -> None:
    """Read the state of all hosts, which takes `database_s` longer than the store needs.

    A view keeps what this scheduler has consumed itself until the host publishes a later state, as Nova's HostState
    does by its `updated` and the row's `updated_at`.
    """
    pipe = client.pipeline(transaction=False)
    for name in views:
        pipe.hgetall(PREFIX + name)
    found = await pipe.execute()
    if database_s:
        await asyncio.sleep(database_s)
    for view, fields in zip(views.values(), found, strict=True):
        updated_s = float(fields["updated_s"])
        if updated_s > view.updated_s:
            view.used = {kind: int(fields[f"used.{kind}"]) for kind in CLASSES}
            view.updated_s = updated_s
