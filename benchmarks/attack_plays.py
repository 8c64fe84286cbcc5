"""What `benchmarks.attacks` plays: requests of one caller that once held a worker, or its memory, from the others.

Each play runs until its time is up, counts the statuses of the responses, and counts a connection that the server ended
as status 0. `small` makes a play that a test can afford.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.rest import Connection

SHARES = "CUSTOM_GPU_MILLI"
CHUNK = b"a" * 65_536
SMALL = {"VCPU": 1, "MEMORY_MB": 256}


@dataclass(slots=True)
class Stage:
    """Where a play takes place: the API, how long it lasts, and what came back. `scale` divides numbers and sizes."""

    url: str
    until: float
    scale: int = 1
    statuses: Counter[int] = field(default_factory=Counter)
    times_s: list[float] = field(default_factory=list)
    """How long the play's own measured requests took, if it has such."""

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return time.perf_counter() < self.until

    def left_s(self) -> float:
        """Return the time left."""
        return max(0.0, self.until - time.perf_counter())


Play = Callable[[Stage], Awaitable[None]]


async def _repeat(stage: Stage, path: str, bodies: list[bytes], connections: int = 2) -> None:
    """Send bodies in turns on some connections, as long as there is time; each at least once in all."""
    ahead = iter(range(1_000_000))

    async def one() -> None:
        async with _connected(stage) as connection:
            while (number := next(ahead)) < len(bodies) or stage.goes_on:
                await _send(stage, connection, path, bodies[number % len(bodies)])

    await asyncio.gather(*(one() for _ in range(connections)))


@contextlib.asynccontextmanager
async def _connected(stage: Stage) -> Any:
    connection = await Connection.open(stage.url)
    try:
        yield connection
    finally:
        await connection.close()


async def _send(stage: Stage, connection: Connection, path: str, body: bytes, method: str = "POST") -> None:
    try:
        stage.statuses[(await connection.request(method, path, body)).status] += 1
    except (OSError, EOFError, TimeoutError):
        stage.statuses[0] += 1
        await connection.open_again()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


async def hard_gpus(stage: Stage) -> None:
    """17 groups of different GPU shares for each of 200 places, as many as there is room for, without claiming."""
    groups = [{"name": f"g{n}", "resources": {SHARES: 101 + 7 * n}} for n in range(17)]
    body = {"groups": groups, "group_policy": "none", "count": 200, "mode": "incremental", "claim": False}
    await _repeat(stage, "/v1/selections", [_json(body)])


async def many_labels(stage: Stage) -> None:
    """243 KB of labels, and as many as are allowed."""
    most = {f"l{n}": "<or> " + " <or> ".join(f"v{n}-{k}" for k in range(100)) for n in range(64)}
    await _repeat(
        stage,
        "/v1/selections",
        [_json({"resources": SMALL, "claim": False, "labels": labels}) for labels in (_conditions(), most)],
    )


async def many_metadata(stage: Stage) -> None:
    """243 KB of aggregate metadata, and as many as are allowed."""
    most = {f"m{n}": "<or> " + " <or> ".join(f"v{n}-{k}" for k in range(100)) for n in range(64)}
    await _repeat(
        stage,
        "/v1/selections",
        [_json({"resources": SMALL, "claim": False, "aggregate_metadata": one}) for one in (_conditions(), most)],
    )


def _conditions() -> dict[str, str]:
    return {f"key-{n:05d}": f"value-{n}" for n in range(8_500)}


async def gang_of_queries(stage: Stage) -> None:
    """A gang of as many members as a request may have, each with a query that names hosts."""
    hosts = [f"a{n}" for n in range(1, 49)]
    members = [{"name": f"m{n}", "resources": SMALL, "query": ["in", "$host", *hosts[n % 30 :]]} for n in range(200)]
    wide = [{**one, "query": ["in", "$host", *hosts]} for one in members]
    await _repeat(stage, "/v1/selections", [_json({"members": one, "claim": False}) for one in (members, wide)])


async def large_headers(stage: Stage) -> None:
    """100 MB of headers, of a URL, and of trailers."""
    head = b"POST /v1/selections HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    trailers = head + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: "
    await asyncio.gather(
        _flood(stage, b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: "),
        _flood(stage, b"GET /"),
        _flood(stage, trailers),
    )


async def _flood(stage: Stage, start: bytes, size: int = 100_000_000) -> None:
    while True:
        stage.statuses[await _flooded(stage.url, start, size // stage.scale)] += 1
        if not stage.goes_on:
            return


async def _flooded(url: str, start: bytes, size: int) -> int:
    """Send so many bytes, and return the status that came back; 0 if none did."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(start)
        for _ in range(size // len(CHUNK)):
            writer.write(CHUNK)
            await writer.drain()
        writer.write(b"\r\n\r\n")
        async with asyncio.timeout(5):
            return _status(await reader.read(100))
    except (OSError, TimeoutError):
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                return _status(await reader.read(100))
        return 0
    finally:
        writer.close()


def _status(line: bytes) -> int:
    return int(line[9:12]) if line.startswith(b"HTTP/1.1 ") else 0


async def slow_connections(stage: Stage) -> None:
    """1,000 connections that send nothing, half a request, or a byte now and then."""
    where = urlsplit(stage.url)
    writers = []
    starts = (b"", b"POST /v1/selections HTTP/1.1\r\nhost: x\r\n", b"G")
    for number in range(1000 // stage.scale):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(starts[number % 3])
            writers.append(writer)
    stage.statuses[0] += 1000 // stage.scale - len(writers)
    while stage.goes_on:
        await asyncio.sleep(0.5)
        for writer in writers[2::3]:
            if not writer.is_closing():
                writer.write(b"x")
    stage.statuses[1] += len(writers)
    for writer in writers:
        writer.close()


async def subscribers(stage: Stage) -> None:
    """300 subscribers of the changes, while claims are made; its times are those of the claims."""
    where = urlsplit(stage.url)
    tasks = [asyncio.create_task(_subscribe(where.hostname, where.port)) for _ in range(300 // stage.scale)]
    try:
        async with _connected(stage) as connection:
            while stage.goes_on or not stage.times_s:
                began = time.perf_counter()
                await _send(stage, connection, "/v1/selections", _json({"resources": SMALL}))
                stage.times_s.append(time.perf_counter() - began)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _subscribe(host: str | None, port: int | None) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET /v1/changes HTTP/1.1\r\nhost: x\r\n\r\n")
        while await reader.read(65_536):
            pass
    finally:
        writer.close()


async def large_properties(stage: Stage) -> None:
    """1 MB of properties, and as many as are allowed: claims, and dry runs."""
    large = {f"p{n:05d}": "x" * 60 for n in range(12_000)}
    most = {f"p{n:05d}": "x" * 1900 for n in range(64)}
    bodies = [
        _json({"resources": SMALL, "properties": {**one, "os_type": str(n)}, "claim": claim})
        for n in range(20)
        for one in (large, dict(list(most.items())[:63]))
        for claim in (True, False)
    ]
    await _repeat(stage, "/v1/selections", bodies[: max(4, len(bodies) // stage.scale)])


async def large_report(stage: Stage) -> None:
    """A report with 256 pools of 64 classes."""
    classes = {f"CUSTOM_C{n:02d}": {"total": 10} for n in range(64)}
    pools = {f"pool{n:03d}": {"inventories": classes} for n in range(256)}
    small = {name: {"inventories": {"CUSTOM_C00": {"total": 10}}} for name in pools}
    bodies = [_json({"inventories": {"VCPU": {"total": 8}}, "pools": one, "lease_s": 600}) for one in (pools, small)]
    await _put(stage, "/v1/hosts/{}/report", bodies)


async def report_of_claims(stage: Stage) -> None:
    """A report with 9,000 claims."""
    claims = [{"claim_id": f"x{n}", "token": "1-a.1"} for n in range(9_000)]
    ended = [{"claim_id": f"x{n}", "token": "1-a.1"} for n in range(9_000)]
    inventories = {"VCPU": {"total": 8}}
    bodies = [_json({"inventories": inventories, **one}) for one in ({"claims": claims}, {"ended": ended})]
    await _put(stage, "/v1/hosts/{}/report", bodies)


async def _put(stage: Stage, path: str, bodies: list[bytes]) -> None:
    number = 0
    async with _connected(stage) as connection:
        while number < len(bodies) or stage.goes_on:
            await _send(stage, connection, path.format(f"attack{number % 4}"), bodies[number % len(bodies)], "PUT")
            number += 1


async def large_lists(stage: Stage) -> None:
    """`claim_ids: [1, 1, ...]` of 1 MB and of what is allowed, and an `any_of` that responses repeat."""
    traits = [[f"CUSTOM_T{a:02d}_{b:02d}_{'X' * 10}" for b in range(64)] for a in range(64)]
    bodies = [_json({"resources": SMALL, "claim_ids": [1] * size}) for size in (340_000, 43_000)]
    bodies += [_json({"resources": SMALL, "claim": False, "any_of": one}) for one in (traits, traits[:60])]
    await _repeat(stage, "/v1/selections", bodies)


async def waiting_requests(stage: Stage) -> None:
    """1,000 requests that wait for room, while claims are made and released; its times are those of the claims."""
    bodies = [
        _json({"resources": {"VCPU": 100_000 + n % 250, "MEMORY_MB": 256}, "queue_timeout_s": 3600})
        for n in range(1000 // stage.scale)
    ]
    await _while_waiting(stage, bodies)


async def hard_waiting_requests(stage: Stage) -> None:
    """Ten requests that wait for room and are hard to decide, while claims are made."""
    groups = [{"name": f"g{n}", "resources": {SHARES: 401 + 7 * n}} for n in range(17)]
    bodies = [
        _json({"groups": groups, "group_policy": "none", "resources": {"VCPU": n + 1}, "count": 200, **_WAITS})
        for n in range(10)
    ]
    await _while_waiting(stage, bodies)


_WAITS = {"queue_timeout_s": 3600}


async def _while_waiting(stage: Stage, bodies: list[bytes]) -> None:
    waiting = [asyncio.create_task(_wait(stage, body)) for body in bodies]
    try:
        async with _connected(stage) as connection:
            while stage.goes_on or not stage.times_s:
                began = time.perf_counter()
                await _send(stage, connection, "/v1/selections", _json({"resources": SMALL}))
                stage.times_s.append(time.perf_counter() - began)
                await asyncio.sleep(0.02)
    finally:
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _wait(stage: Stage, body: bytes) -> None:
    async with _connected(stage) as connection:
        await _send(stage, connection, "/v1/selections", body)


async def aborted_bodies(stage: Stage) -> None:
    """1,000 requests whose client goes away in the middle of the body."""
    where = urlsplit(stage.url)
    head = b"POST /v1/selections HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{"
    for _ in range(1000 // stage.scale):
        try:
            _, writer = await asyncio.open_connection(where.hostname, where.port)
        except OSError:
            stage.statuses[0] += 1
            continue
        writer.write(head)
        await writer.drain()
        writer.transport.abort()
        stage.statuses[1] += 1


PLAYS: Mapping[str, Play] = {
    "200 places of 17 GPU shares": hard_gpus,
    "labels of 243 KB": many_labels,
    "aggregate_metadata of 243 KB": many_metadata,
    "gang of 200 with host queries": gang_of_queries,
    "headers, URL, trailers of 100 MB": large_headers,
    "1,000 idle and slow connections": slow_connections,
    "300 subscribers of changes": subscribers,
    "1 MB of properties": large_properties,
    "report of 256 pools x 64 classes": large_report,
    "report with 9,000 claims": report_of_claims,
    "claim_ids of 1 MB, large any_of": large_lists,
    "1,000 requests that wait": waiting_requests,
    "10 hard requests that wait": hard_waiting_requests,
    "1,000 aborted bodies": aborted_bodies,
}
