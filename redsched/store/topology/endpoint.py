"""Endpoints: servers whose address is looked up at each connect, because another server may have taken over.

redis-py has such connections for Sentinel; these serve Sentinel and a cell's shard in a cluster alike. The
implementations of `Endpoint` are in `redsched.store.topology.sentinel` and `redsched.store.topology.cluster`.
"""

from typing import Any, Protocol

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ConnectionError as RedisConnectionError,
    ReadOnlyError,
    TimeoutError as RedisTimeoutError,
    TryAgainError,
)

from redsched.store.topology.url import Address

NOT_HERE = (AskError, ClusterDownError, ReadOnlyError, TryAgainError)
"""Errors of calls that were not run because another server is, or soon will be, responsible. MOVED is an AskError."""


class Endpoint(Protocol):
    """A server whose address may change."""

    @property
    def address(self) -> Address | None:
        """The address found last."""

    async def find(self) -> Address:
        """Find the current address. Raises redis-py's ConnectionError if it cannot be found."""

    def recheck(self) -> None:
        """Look the address up again in the background, if that may find a change that no reply would show."""

    async def invalidate(self, error: BaseException) -> None:
        """Handle the failure of the server at the last address, or its reply that another one is responsible."""


class EndpointConnection(Connection):
    """A connection to an endpoint, which is closed when a reply says that the server is elsewhere.

    That reply is raised as a lost connection, because it is treated like one: the reader's retries look the endpoint up
    again, and the script client resends.
    """

    def __init__(self, *, place: Endpoint, **options: Any) -> None:
        super().__init__(**options)
        self.place = place

    async def _connect(self) -> None:
        self.host, self.port = await self.place.find()
        try:
            await super()._connect()  # type: ignore[no-untyped-call]
        except OSError as error:
            await self.place.invalidate(error)
            raise

    async def read_response(self, *arguments: Any, **options: Any) -> Any:
        """Read one reply. Raises redis-py's ConnectionError if another server is responsible."""
        try:
            return await super().read_response(*arguments, **options)
        except (RedisConnectionError, RedisTimeoutError) as error:
            await self.place.invalidate(error)
            raise
        except NOT_HERE as error:
            await self.place.invalidate(error)
            await self.disconnect(nowait=True)
            raise RedisConnectionError(f"{self.host}:{self.port} is not the node to use now: {error}") from error


class EndpointTlsConnection(EndpointConnection, SSLConnection):
    """A connection to an endpoint over TLS."""


class EndpointPool(BlockingConnectionPool):
    """A pool that never hands out a connection to a previous address of its endpoint."""

    def __init__(self, place: Endpoint, **options: Any) -> None:
        super().__init__(place=place, **options)
        self._place = place

    async def ensure_connection(self, connection: AbstractConnection) -> None:
        """Connect, and reconnect if the endpoint has been found at another address."""
        self._place.recheck()
        at = (getattr(connection, "host", ""), getattr(connection, "port", 0))
        if connection.is_connected and at != self._place.address:
            await connection.disconnect()
        await super().ensure_connection(connection)
