"""Reads of a cell in one round trip, without redis-py's pipeline: many hashes, or a poll of the feed."""

from collections.abc import Sequence
from typing import Any, cast

import redis.asyncio as redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError, TimeoutError as RedisTimeoutError

from redsched.store.client.packing import send
from redsched.store.client.reply_limit import ReplyLimit
from redsched.store.topology.endpoint import EndpointConnection

Command = tuple[str | int, ...]


async def read_hashes(reader: redis.Redis, keys: Sequence[str]) -> list[dict[str, str]]:
    """Return the fields of each hash, in the order of the keys; an empty dict for a hash that does not exist.

    Raises what redis-py raises.
    """
    if not keys:
        return []
    return [fields_of(reply) for reply in await exchange(reader, [("HGETALL", key) for key in keys])]


async def exchange(reader: redis.Redis, commands: Sequence[Command]) -> list[Any]:
    """Return the replies to some reads, as they are in RESP2.

    redis-py's own pipeline takes four times as long, mostly to pack the commands and to look up how each reply is
    parsed. As there, a broken connection is replaced and the reads are sent again. Raises what redis-py raises.
    """
    pool = reader.connection_pool
    connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]

    async def disconnect(_: Exception) -> None:
        await connection.disconnect()

    try:
        return await connection.retry.call_with_retry(lambda: _exchange(connection, commands), disconnect)
    finally:
        await pool.release(connection)


async def _exchange(connection: AbstractConnection, commands: Sequence[Command]) -> list[Any]:
    try:
        await send(connection, commands)
        async with ReplyLimit(cast("float", connection.socket_timeout)) as limit:  # every pool sets it
            replies = [await _reply(limit, connection) for _ in commands]
    except RedisTimeoutError as error:
        await connection.disconnect(nowait=True)
        if isinstance(connection, EndpointConnection):
            await connection.place.invalidate(error)
        raise
    except BaseException:
        # Replies may still be on their way; the next read must not mistake them for its own.
        await connection.disconnect(nowait=True)
        raise
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise reply
    return replies


async def _reply(limit: ReplyLimit, connection: AbstractConnection) -> Any:
    """Return a reply, or the server's refusal: further replies follow it."""
    try:
        return await limit.next_reply(connection)
    except ResponseError as refused:
        return refused


def fields_of(reply: list[str]) -> dict[str, str]:
    """Return the fields of a hash, or of an entry of a stream."""
    values = iter(reply)
    return dict(zip(values, values, strict=True))
