"""One scheduler that decides nothing follows a feed: its processor time, and the delay until it has each change.

The changes are written by a script of this benchmark, which does to the feed and to a host's hash what a claim does, at
a fraction of the cost: so the server and the writer leave most of the machine to the scheduler that is measured.
"""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import redis
import uvloop

from redsched import logs
from redsched.pacing import freeze_existing_objects
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.codec.keys import Keys
from redsched.store.codec.replies import Change
from redsched.store.embedded.server import PrivateServer

TIMEOUT_S = 120.0
BATCH_S = 0.01
"""The writer writes the changes of this many seconds in one call."""

WRITE = """#!lua
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq'))
for i = 3, #KEYS do
  local host = redis.call('HMGET', KEYS[i], 'version', 'claims')
  local version, claims = tonumber(host[1]) + 1, tonumber(host[2] or '0') + 1
  seq = seq + 1
  local fields = {'claimed.VCPU', claims, 'claimed.MEMORY_MB', claims * 1024, 'claims', claims, 'starting', claims}
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', 100000, '*', 'seq', seq, 'kind', 'host', 'name', ARGV[i - 2],
    'version', version, 'op', 'claimed', 'more', 0, 'claim', ARGV[i - 2] .. '-' .. seq, unpack(fields))
  redis.call('HSET', KEYS[i], 'version', version, unpack(fields))
end
redis.call('HSET', KEYS[1], 'seq', seq)
return seq
"""


@dataclass(frozen=True, slots=True)
class Followed:
    """One rate. `cpu_percent`: of a core for each 1,000 changes a second; `idle_percent`: without changes."""

    rate: int
    changes: int
    seconds: float
    cpu_us: float
    cpu_percent: float
    idle_percent: float
    p50_ms: float
    p99_ms: float


class Listener:
    """Notes how old each change is when it has been applied, by the server's time in its id."""

    def __init__(self) -> None:
        self.delays_ms: list[float] = []

    def on_changes(self, changes: Sequence[Change]) -> None:
        """Note the changes of one batch."""
        now_ms = time.time() * 1000
        self.delays_ms += [now_ms - int(one.entry_id.partition("-")[0]) for one in changes]

    def on_reset(self) -> None:
        """Note nothing."""


def follow(parent: Connection, url: str, seconds: float) -> None:
    """Follow the feed: first for a while in which nothing changes, then until all changes are there."""
    logs.configure("error")
    freeze_existing_objects()
    uvloop.run(_follow(parent, url, seconds))


async def _follow(parent: Connection, url: str, seconds: float) -> None:
    settings = Settings(check_s=0.0, events_keep_s=0.0, tick_s=3600.0)
    async with Scheduler.connect(url, settings) as scheduler:
        [cell] = scheduler.cells
        listener = Listener()
        cpu_s, began = time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds / 4)
        idle = (time.process_time() - cpu_s) / (time.perf_counter() - began)
        cell.updater.add_listener(listener)
        cpu_s = time.process_time()
        parent.send(None)
        last = await asyncio.to_thread(parent.recv)
        while cell.updater.seq < last:
            await cell.updater.moved()
        parent.send((time.process_time() - cpu_s, idle, listener.delays_ms))


def measure(server: PrivateServer, renew: Callable[[], None], rate: int, seconds: float) -> Followed:
    """Write changes at this rate for some seconds, while a process follows them."""
    renew()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=follow, args=(theirs, server.url, seconds), daemon=True)
    process.start()
    try:
        _receive(ours)
        began = time.perf_counter()
        last, changes = write(server, rate, seconds)
        took_s = time.perf_counter() - began
        ours.send(last)
        cpu_s, idle, delays_ms = _receive(ours)
    finally:
        process.kill()
    cuts = statistics.quantiles(delays_ms, n=100, method="inclusive")
    cpu_us = cpu_s / changes * 1e6
    return Followed(rate, changes, took_s, cpu_us, cpu_us / 10, idle * 100, cuts[49], cuts[98])


def write(server: PrivateServer, rate: int, seconds: float) -> tuple[int, int]:
    """Write changes at a rate; return the last seq and how many were written."""
    keys, last, written = Keys("c1"), 0, 0
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2, decode_responses=True) as client:
        names = sorted(client.zrange(keys.hosts, 0, -1))
        script, began = client.register_script(WRITE), time.perf_counter()
        while (passed_s := time.perf_counter() - began) < seconds:
            due = min(int(rate * passed_s) - written, len(names))
            if due > 0:
                some = [names[(written + number) % len(names)] for number in range(due)]
                last = int(script([keys.meta, keys.changes, *map(keys.host, some)], some))
                written += due
            time.sleep(BATCH_S)
    return last, written


def _receive(one: Connection) -> tuple[float, float, list[float]]:
    if not one.poll(TIMEOUT_S):
        raise SystemExit("the scheduler that follows the feed does not answer")
    found: tuple[float, float, list[float]] = one.recv()
    return found


def print_rows(rows: Sequence[Followed]) -> None:
    """Print a table of the rates."""
    for row in rows:
        print(
            f"following {row.rate} changes a second ({row.changes / row.seconds:.0f} written): {row.cpu_us:.1f} us of "
            f"processor time for a change, {row.cpu_percent:.1f} % of a core for 1,000 a second; without changes "
            f"{row.idle_percent:.1f} %; delay p50 {row.p50_ms:.0f} ms, p99 {row.p99_ms:.0f} ms"
        )
