"""A relay of HTTP between a client and an API, which drops replies after the API has sent them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.support.processes.connections import Connections

CHUNK = 1 << 16


class Relay:
    """The next `lost` replies never reach the client: its connection ends instead."""

    def __init__(self, host: str, port: int) -> None:
        self.url, self.lost, self.dropped = "", 0, 0
        self._upstream = host, port
        self.connections = Connections()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to relay a connection."""
        self.connections.begin(self._relay(reader, writer), writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_api, to_api = await asyncio.open_connection(*self._upstream)
        requests = asyncio.create_task(_copy(reader, to_api))
        try:
            while reply := await from_api.read(CHUNK):
                if self.lost:
                    self.lost -= 1
                    self.dropped += 1
                    return
                writer.write(reply)
                await writer.drain()
        finally:
            requests.cancel()
            for end in (to_api, writer):
                end.transport.abort()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while some := await reader.read(CHUNK):
            writer.write(some)
            await writer.drain()


@asynccontextmanager
async def relay(url: str) -> AsyncIterator[Relay]:
    """Yield a relay before the API at this URL."""
    parts = urlsplit(url)
    one = Relay(parts.hostname or "", parts.port or 0)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        await one.connections.end(server)
