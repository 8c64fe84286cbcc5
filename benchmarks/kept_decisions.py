"""What it costs a selection to keep with its claim how its host was chosen, and the store to keep it.

    python -m benchmarks.kept_decisions [--hosts 100 1000 10000] [--rounds 40] [--claims 400] [--same] [--json]

Schedulers with and without REDSCHED_KEEP_DECISIONS take turns on one store, in blocks of as many claims: in process
with 1 and with 32 concurrent tasks that ask for four shapes in turn, and over REST for one place and for 100. Every
other round begins with the other one. `cost` is the processor time that a block with decisions took more than the one
without beside it, in percent, of the scheduler (or worker) and the store together; then that of each. `ms` is the same
for the median latency. All are medians over the rounds. `bytes` is what a claim needs more in the store. `--same`
compares two without decisions: what it prints is noise.
"""

import argparse
import asyncio
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import redis
import uvloop

from benchmarks.claim_work import report_fleet, requests
from benchmarks.rest import Connection, connections
from benchmarks.rest_load import SELECT, SELECT_100, Work
from benchmarks.running import Up, end_in_order
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer

WARM_UP = 400
"""Claims before each block: they use up the time for decisions that a pause has saved."""
KEPT, NONE = "kept", "none"
VALUES = {KEPT: "true", NONE: "false"}
"""REDSCHED_KEEP_DECISIONS of the two."""


@dataclass(frozen=True, slots=True)
class Block:
    """Processor time in us for each claim, by role, the median latency in ms, and the bytes in the store."""

    cpu_us: Mapping[str, float]
    p50_ms: float
    stored_bytes: float

    def figures(self) -> dict[str, float]:
        """Return what is compared: the processor time of each role and of both, and the latency."""
        return {**self.cpu_us, "cost": sum(self.cpu_us.values()), "ms": self.p50_ms}


@dataclass(frozen=True, slots=True)
class Row:
    """One work on one size of fleet, with the blocks of all rounds: with decisions and without."""

    hosts: int
    work: str
    kept: Sequence[Block]
    none: Sequence[Block]

    def costs(self) -> dict[str, float]:
        """Return what the rounds with decisions took more than those without, in percent; `bytes`."""
        pairs = [(kept.figures(), none.figures()) for kept, none in zip(self.kept, self.none, strict=True)]
        found = {name: 100 * median(kept[name] / none[name] - 1 for kept, none in pairs) for name in pairs[0][0]}
        stored = (one.stored_bytes - other.stored_bytes for one, other in zip(self.kept, self.none, strict=True))
        return found | {"bytes": median(stored)}


def _settings(keep: str) -> Settings:
    return Settings(
        log_level="warning", catch_up_timeout_s=60.0, keep_decisions=VALUES[keep] == "true", events_keep_s=0
    )


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process in seconds, to the microsecond: its usual figure counts in 10 ms."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


class _Meter:
    """Measures one block of claims: the processor time of the roles, and the memory of the store."""

    def __init__(self, server: PrivateServer, own: Sequence[int], claims: int) -> None:
        self._pids = {"own": own, "store": [server.pid]}
        self._server = server
        self._claims = claims
        self._before = self._spent()
        self._memory = self._used()

    def block(self, latencies_s: Sequence[float]) -> Block:
        now, used = self._spent(), self._used()
        cpu_us = {role: (now[role] - self._before[role]) / self._claims * 1e6 for role in now}
        return Block(cpu_us, median(latencies_s) * 1e3, (used - self._memory) / self._claims)

    def _spent(self) -> dict[str, float]:
        return {role: sum(map(_cpu_s, pids)) for role, pids in self._pids.items()}

    def _used(self) -> int:
        with redis.Redis(unix_socket_path=str(self._server.socket), protocol=2) as client:
            return int(client.info("memory")["used_memory"])


async def _in_process(server: PrivateServer, hosts: int, tasks: int, rounds: int, claims: int) -> Row:
    async with AsyncExitStack() as stack:
        schedulers = {
            keep: await stack.enter_async_context(Scheduler.connect(server.url, _settings(keep)))
            for keep in (KEPT, NONE)
        }
        blocks: dict[str, list[Block]] = {KEPT: [], NONE: []}
        for keep in _turns(rounds):
            waiting, latencies = requests(), list[float]()
            await _select(schedulers[keep], waiting, tasks, WARM_UP, [])
            meter = _Meter(server, [os.getpid()], claims)
            await _select(schedulers[keep], waiting, tasks, claims, latencies)
            blocks[keep].append(meter.block(latencies))
        return Row(hosts, f"in process, {tasks} task{'s' if tasks > 1 else ''}", blocks[KEPT], blocks[NONE])


def _turns(rounds: int) -> Iterator[str]:
    for number in range(rounds):
        yield from (KEPT, NONE) if number % 2 else (NONE, KEPT)


async def _select(scheduler: Scheduler, waiting: Iterator[Any], tasks: int, claims: int, seconds: list[float]) -> None:
    left = iter(range(claims))

    async def one_task() -> None:
        for _ in left:
            started = time.perf_counter()
            await scheduler.select(next(waiting))
            seconds.append(time.perf_counter() - started)

    await asyncio.gather(*(one_task() for _ in range(tasks)))


async def _over_rest(server: PrivateServer, up: Up, work: Work, claims: int) -> Block:
    bodies, latencies = cycle(work.bodies), list[float]()
    async with connections(up.url, 8, up.workers) as clients:
        await _post(clients, work, bodies, WARM_UP, [])
        meter = _Meter(server, up.workers, claims)
        await _post(clients, work, bodies, claims // work.claims, latencies)
        return meter.block(latencies)


async def _post(
    clients: Sequence[Connection], work: Work, bodies: Iterator[bytes], calls: int, seconds: list[float]
) -> None:
    left = iter(range(calls))

    async def one_client(connection: Connection) -> None:
        for _ in left:
            started = time.perf_counter()
            answer = await connection.request(work.method, work.path, next(bodies))
            if answer.status != work.status:
                raise SystemExit(f"{work.path} answered {answer.status}")
            seconds.append(time.perf_counter() - started)

    await asyncio.gather(*map(one_client, clients))


def measure(hosts: int, rounds: int, claims: int) -> Iterator[Row]:
    """Yield the rows of one size of fleet."""
    with PrivateServer.start() as server:
        uvloop.run(_prepare(server, hosts))
        for tasks in (1, 32):
            yield uvloop.run(_in_process(server, hosts, tasks, rounds, claims))
        yield from _rest_rows(server, hosts, rounds, claims)


def _rest_rows(server: PrivateServer, hosts: int, rounds: int, claims: int) -> Iterator[Row]:
    with ExitStack() as stack:
        fixed = {"REDSCHED_REDIS_URL": server.url, "REDSCHED_EVENTS_KEEP_S": "0"}
        stack.enter_context(Up(["--workers", "1"], fixed))  # the first one has the background work of the cell
        ups = {
            keep: stack.enter_context(Up(["--workers", "1"], {**fixed, "REDSCHED_KEEP_DECISIONS": VALUES[keep]}))
            for keep in (KEPT, NONE)
        }
        for work in (SELECT, SELECT_100):
            blocks: dict[str, list[Block]] = {KEPT: [], NONE: []}
            for keep in _turns(rounds):
                blocks[keep].append(uvloop.run(_over_rest(server, ups[keep], work, claims * min(4, work.claims))))
            yield Row(hosts, work.name, blocks[KEPT], blocks[NONE])


async def _prepare(server: PrivateServer, hosts: int) -> None:
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(Scheduler.connect(server.url, _settings(NONE)))
        await scheduler.init()
        await report_fleet(scheduler, hosts)


def _line(row: Row) -> str:
    costs = row.costs()
    spent = " + ".join(f"{median(one.cpu_us[role] for one in row.none):.0f}" for role in ("own", "store"))
    percent = "".join(f" {costs[name]:>+7.1f}" for name in ("cost", "own", "store", "ms"))
    return f"{row.hosts:>6}  {row.work:<22} {spent:>10}{percent} {costs['bytes']:>6.0f}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[100, 1000, 10_000], help="fleet sizes")
    parser.add_argument("--rounds", type=int, default=40, help="of each row, in which both take turns")
    parser.add_argument("--claims", type=int, default=400, help="of each block; four times as many for 100 places")
    parser.add_argument("--same", action="store_true", help="both without decisions: the noise of this machine")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    if given.same:
        VALUES[KEPT] = VALUES[NONE]
    end_in_order()
    if not given.json:
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores; medians of {given.rounds} rounds")
        heads = ("us without", "cost %", "own %", "store %", "ms %", "bytes")
        print("{:>6}  {:<22} {:>10} {:>7} {:>7} {:>7} {:>7} {:>6}".format("hosts", "work", *heads))
    for hosts in given.hosts:
        for row in measure(hosts, given.rounds, given.claims):
            print(json.dumps(asdict(row)) if given.json else _line(row), flush=True)


if __name__ == "__main__":
    main()
