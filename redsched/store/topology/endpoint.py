"""Endpoints: a server that is looked up again at each connect, because another may have taken over.

redis-py has such connections for Sentinel; these are for Sentinel and for a cell's shard in a cluster alike. What it
means to look is said by the `Endpoint`: `redsched.store.topology.sentinel`, `redsched.store.topology.cluster`.
"""

from typing import Any, Protocol

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.exceptions import AskError, ClusterDownError, ReadOnlyError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from redsched.store.topology.url import Address

NOT_HERE = (AskError, ClusterDownError, ReadOnlyError, TryAgainError)
"""Answers that mean: not run, for another server is the one to ask, or soon will be. MOVED is an AskError too."""


class Endpoint(Protocol):
    """Where a server is now."""

    @property
    def address(self) -> Address | None:
        """Where it was found last."""

    async def find(self) -> Address:
        """Look for it. Raises redis-py's ConnectionError where nobody knows."""

    async def invalidate(self, error: BaseException) -> None:
        """Hear that the server at the last address is gone, or says that it is another one."""


class PlacedConnection(Connection):
    """Connects to wherever its place is found, and ends with an answer that means that it is elsewhere.

    That answer is raised as a lost connection, for so it is treated: the reader's retries then look anew, and the
    runner sends again.
    """

    def __init__(self, *, place: Endpoint, **options: Any) -> None:
        super().__init__(**options)
        self._place = place

    async def _connect(self) -> None:
        self.host, self.port = await self._place.find()
        try:
            await super()._connect()  # type: ignore[no-untyped-call]
        except OSError as error:
            await self._place.invalidate(error)
            raise

    async def read_response(self, *arguments: Any, **options: Any) -> Any:
        """One reply."""
        try:
            return await super().read_response(*arguments, **options)
        except (RedisConnectionError, RedisTimeoutError) as error:
            await self._place.invalidate(error)
            raise
        except NOT_HERE as error:
            await self._place.invalidate(error)
            await self.disconnect(nowait=True)
            raise RedisConnectionError(f"{self.host}:{self.port} is not the one to ask now: {error}") from error


class PlacedTlsConnection(PlacedConnection, SSLConnection):
    """The same over TLS."""


class PlacedPool(BlockingConnectionPool):
    """A pool that gives away no connection to where its place was before."""

    def __init__(self, place: Endpoint, **options: Any) -> None:
        super().__init__(place=place, **options)
        self._place = place

    async def ensure_connection(self, connection: AbstractConnection) -> None:
        """Connect, and anew where another connection has found the place elsewhere."""
        at = (getattr(connection, "host", ""), getattr(connection, "port", 0))
        if connection.is_connected and at != self._place.address:
            await connection.disconnect()
        await super().ensure_connection(connection)
