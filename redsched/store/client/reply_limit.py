"""A timeout on the next reply of a server."""

import asyncio
import math
from types import TracebackType
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError, TimeoutError as RedisTimeoutError

from redsched import aio

READS_BETWEEN = 32
"""Replies read before the timeout is rescheduled: they arrive together, and a timer costs more than reading one."""


class ReplyLimit:
    """A timeout around the replies to a batch, extended as they arrive. Raises redis-py's TimeoutError.

    One timer serves all replies: redis-py would start one for each.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._read = 0

    async def __aenter__(self) -> "ReplyLimit":
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise RedisTimeoutError(f"no reply within {self._seconds:g} s") from late

    async def next_reply(self, connection: AbstractConnection) -> Any:
        """Read one reply, which is never None. Raises what redis-py raises, including ResponseError."""
        self._read += 1
        if self._read % READS_BETWEEN == 0:
            self._timeout.reschedule(aio.now_s() + self._seconds)
        reply = await connection.read_response(timeout=math.inf)
        if reply is None:  # to redis-py, the kernel's ETIMEDOUT is a timeout of this call
            await connection.disconnect(nowait=True)
            raise RedisConnectionError("the connection has timed out")
        return reply
