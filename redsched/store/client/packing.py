"""Sending commands packed by hiredis instead of redis-py."""

from collections.abc import Iterable

import hiredis
from redis.asyncio.connection import AbstractConnection


async def send(connection: AbstractConnection, commands: Iterable[tuple[str | int, ...]]) -> None:
    """Send commands in one write. Raises what redis-py raises.

    redis-py's packing takes six times as long for long commands: a quarter of the time of a whole selection.
    """
    await connection.send_packed_command(b"".join(map(hiredis.pack_command, commands)))  # type: ignore[arg-type]  # its stub: one word
