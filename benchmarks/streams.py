"""What subscribers of GET /v1/changes cost the claims of the same worker.

    python -m benchmarks.streams [--subscribers 0 300] [--seconds 4] [--json]

Starts a private store and one worker, opens that many streams, and claims one place after the other on one connection.
The streams are read by a process of their own. Ends with exit code 1 if a subscriber missed a change.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import statistics
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any
from urllib.parse import urlsplit

import uvloop

from benchmarks.rest import Connection
from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from redsched.serve.supervisor import Workers
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer

HOSTS = 100
ROOM = {"VCPU": Inventory(10**6)}
BODY = json.dumps({"resources": {"VCPU": 1}, "lease_s": 3600}).encode()
WAIT_S = 20.0
QUIET_S = 5.0
"""A subscriber that got nothing for this long after the last claim has missed what is missing."""
EVENT = re.compile(rb"^id: c1:(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """The latency of a claim with this many subscribers, and how many of them missed a change."""

    subscribers: int
    claims: int
    p50_ms: float
    p99_ms: float
    most_ms: float
    missed: int


async def fill(url: str) -> None:
    """Report the hosts."""
    async with Scheduler.connect(url, Settings(log_level="warning")) as scheduler:
        await scheduler.init()
        for number in range(HOSTS):
            await scheduler.hosts.report(HostReport(f"h{number}", ROOM, cell="c1", lease_s=3600))


async def subscribe(url: str, count: int, pipe: Pipe) -> None:
    """Open the streams, say so, and read them until the parent names the last change. Say how many missed one."""
    where = urlsplit(url)
    streams = [await asyncio.open_connection(where.hostname, where.port) for _ in range(count)]
    for _, writer in streams:
        writer.write(f"GET /v1/changes HTTP/1.1\r\nhost: {where.netloc}\r\n\r\n".encode())
    for reader, _ in streams:
        await reader.readuntil(b"\r\n\r\n")
    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    reading = [asyncio.create_task(_read(reader, last)) for reader, _ in streams]
    pipe.send("ready")
    last.set_result(await asyncio.to_thread(pipe.recv))
    pipe.send(sum(await asyncio.gather(*reading)))


async def _read(reader: asyncio.StreamReader, last: "asyncio.Future[int]") -> bool:
    """Return whether a change is missing before the last one."""
    previous, missed = 0, False
    while not (last.done() and previous >= last.result()):
        try:
            async with asyncio.timeout(QUIET_S):
                found = EVENT.match(await reader.readline())
        except TimeoutError:
            if last.done() and previous < last.result():
                return True
            continue
        if found is not None:
            seq = int(found[1])
            missed = missed or (bool(previous) and seq != previous + 1)
            previous = seq
    return missed


async def claim(url: str, seconds: float) -> list[float]:
    """Claim for some seconds, and return the milliseconds of each claim."""
    connection, took, until = await Connection.open(url), list[float](), time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        answer = await connection.request("POST", "/v1/selections", BODY)
        took.append((time.perf_counter() - began) * 1000)
        if answer.status != 201:
            raise SystemExit(f"a claim was answered {answer.status}: {answer.body[:200]!r}")
    await connection.close()
    return took


async def last_seq(url: str) -> int:
    """Return the seq of the cell."""
    async with Scheduler.connect(url, Settings(log_level="warning")) as scheduler:
        await scheduler.hosts.list()
        return max(cell.updater.seq for cell in scheduler.cells)


def _subscriber(url: str, count: int, pipe: Pipe) -> None:
    uvloop.run(subscribe(url, count, pipe))


def measure(store: str, count: int, seconds: float) -> Row:
    """Measure claims with this many subscribers of one worker."""
    context = multiprocessing.get_context("spawn")
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": store, "REDSCHED_LOG_LEVEL": "warning"})
        ours, theirs = context.Pipe()
        process = context.Process(target=_subscriber, args=(workers.url, count, theirs), daemon=True)
        process.start()
        try:
            _answer(ours)
            took = uvloop.run(claim(workers.url, seconds))
            ours.send(uvloop.run(last_seq(store)))
            missed = _answer(ours)
        finally:
            process.kill()
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return Row(count, len(took), cuts[49], cuts[98], max(took), missed)


def _answer(pipe: Pipe) -> Any:
    if not pipe.poll(WAIT_S * 3):
        raise SystemExit("the process of the subscribers does not answer")
    return pipe.recv()


def main() -> int:
    """Measure each number of subscribers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, nargs="+", default=[0, 300])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with PrivateServer.start() as server:
        uvloop.run(fill(server.url))
        rows = [measure(server.url, count, given.seconds) for count in given.subscribers]
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    for row in () if given.json else rows:
        print(
            f"{row.subscribers} subscribers: {row.claims} claims, p50 {row.p50_ms:.1f} ms, p99 {row.p99_ms:.1f} ms, "
            f"longest {row.most_ms:.0f} ms; {row.missed} subscribers missed a change"
        )
    return 1 if any(row.missed for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
