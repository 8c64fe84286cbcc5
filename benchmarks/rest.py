"""A lean HTTP/1.1 client with keep-alive: on a machine shared with the server, a heavier one would measure itself."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import psutil

ANSWER_TIMEOUT_S = 60.0
MAX_TRIES = 400
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and the raw body."""

    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object."""
        return dict(json.loads(self.body))


class Connection:
    """One connection; one request at a time."""

    def __init__(self, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._url, self._host = url, urlsplit(url).netloc
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to `http://host:port`."""
        return cls(url, *await _streams(url))

    async def open_again(self) -> None:
        """Reconnect after an error: a late response must not be read as the next one."""
        await self.close()
        self._reader, self._writer = await _streams(self._url)

    @property
    def port(self) -> int:
        """Return the local port."""
        return int(self._writer.get_extra_info("sockname")[1])

    async def request(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a request, and read the whole response. Raises OSError, EOFError or TimeoutError if none arrives."""
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            said = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            _, _, after = said.partition(b"content-length:")
            length = int(after.partition(b"\r\n")[0] or 0)
            return Answer(int(said[9:12]), await self._reader.readexactly(length))

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def _streams(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    where = urlsplit(url)
    return await asyncio.open_connection(where.hostname, where.port)


@contextlib.asynccontextmanager
async def connections(url: str, count: int, workers: Sequence[int]) -> AsyncIterator[list[Connection]]:
    """Yield `count` connections, spread evenly over the API's processes (their pids).

    The kernel distributes connections by a hash: all of four may reach one of two processes, which would be measured.
    """
    kept: dict[int, list[Connection]] = {pid: [] for pid in workers}
    most = -(-count // len(workers))
    try:
        for _ in range(MAX_TRIES):
            if sum(map(len, kept.values())) >= count:
                break
            one = await Connection.open(url)
            await one.request("GET", "/healthz")  # answered, so it has been accepted, and shows below
            pid = next(pid for pid in workers if one.port in _ports_of(pid))
            await one.close() if len(kept[pid]) >= most else kept[pid].append(one)
        yield [one for ours in kept.values() for one in ours][:count]
    finally:
        for one in [one for ours in kept.values() for one in ours]:
            await one.close()


def _ports_of(pid: int) -> set[int]:
    """Return the remote ports of a process's connections."""
    return {one.raddr.port for one in psutil.Process(pid).net_connections(kind="tcp") if one.raddr}


@contextlib.asynccontextmanager
async def connection_to(url: str) -> AsyncIterator[Connection]:
    """Yield a connection to any of the API's processes. The API closes it after 5 s of inactivity: do not keep it."""
    one = await Connection.open(url)
    try:
        yield one
    finally:
        await one.close()


async def pages(connection: Connection, path: str, name: str) -> list[dict[str, Any]]:
    """Return a whole list (`/v1/hosts`, `hosts`), read page by page."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = (await connection.request("GET", f"{path}?limit={PAGE}&after={after}")).json()
        found += page[name]
        after = page["next"]
        if not after:
            return found


async def metric(connection: Connection, name: str) -> float:
    """Return the sum of a counter over its labels, and over the API's processes."""
    text = (await connection.request("GET", "/metrics")).body.decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return sum(float(value) for head, _, value in lines if head.partition("{")[0] == name)
