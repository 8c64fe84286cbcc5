"""Selections per second, in process and over REST, compared with the server's own rate for the claim script.

    python -m benchmarks.throughput [--hosts 1000 10000] [--seconds 3] [--rounds 1] [--json]

Each size of fleet has one store, on which these run one after the other:

    claim.lua alone   calls built beforehand, in pipelines over one connection: the maximum of the server
    in process        Scheduler.select with 1 and with 32 concurrent tasks; `deciding` is the part before the script.
                      Then the same for a project with a quota that is never reached, to compare with the row above
    REST              `redsched up` with 1 and with 2 workers, called by separate client processes: /healthz (the
                      cheapest request, to compare with), selections of one place, and selections of 100 places

Every claim is real. Hosts are so large that nothing is refused, and no agent takes up the claims. After each row the
number of claims in the store must have grown by the number of responses, or the exit code is 1; and the event log is
brought up to date. Machines differ and are shared: compare ratios. `script` is the server's own time for the script.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks import raw_claims, rest_load
from benchmarks.claim_work import Measured, cpu_of, measured, report_fleet, requests
from benchmarks.rest_load import HEALTH, SELECT
from benchmarks.running import Up, end_in_order
from redsched.model import Quota, Request
from redsched.model.validation import MAX_AMOUNT
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Clock
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

SETTINGS = Settings(log_level="warning", catch_up_timeout_s=60.0)
"""Reading 100,000 hosts takes longer than a request should wait."""
START_S = 1.5
LIMITED = "limited"
"""The project with a quota."""


class Bench:
    """Run the rows of one size of fleet, on one store."""

    def __init__(self, server: PrivateServer, hosts: int, given: argparse.Namespace) -> None:
        self._server, self._hosts, self._given = server, hosts, given
        self._claims = 0
        self.rows: list[Measured] = []
        self.broken: list[str] = []

    def run(self) -> None:
        """Run all rows."""
        names, clock = self._on_store(self._prepare)
        given = self._given
        self._add(raw_claims.measure(self._server, names, clock, given.raw, given.batch))
        for tasks in given.tasks:
            for number in range(given.rounds):
                # Each goes first in every other round: a row finds more claims than the one before it.
                for project in (LIMITED, "") if number % 2 else ("", LIMITED):
                    self._in_process(tasks, project)
        for workers in given.workers:
            self._over_rest(workers)
        self.broken += uvloop.run(self._audit())

    async def _prepare(self, cell: CellStore) -> tuple[list[str], Clock]:
        await cell.init()
        async with Scheduler.connect(self._server.url, SETTINGS) as scheduler:
            await report_fleet(scheduler, self._hosts)
            await scheduler.quotas.put(Quota(LIMITED, {"VCPU": MAX_AMOUNT, "claims": MAX_AMOUNT}))
        return await cell.hosts.names(), await cell.tick()

    def _in_process(self, tasks: int, project: str = "") -> None:
        efforts: list[Effort] = []
        seconds, spent = uvloop.run(self._select(tasks, efforts, project))
        latencies = [one.seconds for one in efforts if one.outcome == "claimed"]
        self._add(
            measured(
                self._hosts, f"in process, {_of(tasks, 'task')}{project and ', a quota'}", latencies, seconds, spent
            )
        )
        decide_s = sum(one.decide_s for one in efforts)
        self.rows.append(Measured(self._hosts, "  of which deciding", len(efforts), decide_s))

    async def _select(self, tasks: int, efforts: list[Effort], project: str) -> tuple[float, dict[str, float]]:
        """Return the seconds, and the processor time by role, without those of reading the fleet."""
        waiting = requests(project)
        async with Scheduler.connect(self._server.url, SETTINGS, observe=efforts.append) as scheduler:
            store, own = cpu_of(self._server.pid), cpu_of(os.getpid())
            started = time.perf_counter()
            until = started + self._given.seconds
            await asyncio.gather(*(_select_until(scheduler, waiting, until) for _ in range(tasks)))
            seconds = time.perf_counter() - started
            return seconds, {"own": cpu_of(os.getpid()) - own, "store": cpu_of(self._server.pid) - store}

    def _over_rest(self, workers: int) -> None:
        with Up(["--workers", str(workers)], {"REDSCHED_REDIS_URL": self._server.url}) as up:
            for number in range(self._given.rounds):
                pair = (rest_load.HEALTH, rest_load.SELECT)
                for work in pair[::-1] if number % 2 else pair:
                    self._add(self._repeated(up, work))
            self._add(self._repeated(up, rest_load.SELECT_100))
            self.broken += [*up.complaints(), *up.end()]

    def _repeated(self, up: Up, work: rest_load.Work) -> Measured:
        before, store = up.cpu_s(), cpu_of(self._server.pid)
        done, started = self._drive(up, work)
        after = up.cpu_s()
        spent = {"store": cpu_of(self._server.pid) - store, "API": after["API"] - before["API"]}
        spent["clients"] = sum(one.cpu_s for one in done)
        latencies = [seconds for one in done for seconds in one.latencies_s]
        if others := [status for one in done for status in one.others]:
            self.broken += [f"{work.name} answered {len(others)} times not {work.status}, first {others[0]}"]
        name = f"{work.name}, {_of(len(up.workers), 'worker')}, {self._given.clients}x{self._given.connections} clients"
        seconds, each = max(one.ended for one in done) - started, max(work.claims, 1)
        return replace(measured(self._hosts, name, latencies, seconds, spent, each), is_claimed=work.claims > 0)

    def _drive(self, up: Up, work: rest_load.Work) -> tuple[list[rest_load.Done], float]:
        given = self._given
        with multiprocessing.get_context("spawn").Pool(given.clients) as pool:
            pool.map(rest_load.ready, range(given.clients), chunksize=1)
            at = time.time() + START_S
            load = rest_load.Load(work, up.url, up.workers, given.connections, at, at + given.seconds)
            return pool.map(rest_load.drive, [load] * given.clients, chunksize=1), at

    def _add(self, row: Measured) -> None:
        """Add a row, once the store holds its claims."""
        claims = self._on_store(_count)
        if claims - self._claims != (row.claims if row.is_claimed else 0):
            found = claims - self._claims
            self.broken.append(f"{row.hosts} hosts, {row.work}: {row.claims} answered, {found} claims in the store")
        self._claims = claims
        self.rows.append(row)
        self._on_store(_record)

    async def _audit(self) -> list[str]:
        async with Scheduler.connect(self._server.url, SETTINGS) as scheduler:
            return [f"audit: {problem}" for problem in (await scheduler.audit()).problems]

    def _on_store(self, work: "Callable[[CellStore], Coroutine[Any, Any, Any]]") -> Any:
        async def opened() -> Any:
            async with Store.connect(self._server.url, SETTINGS) as store:
                return await work(store.cell("c1"))

        return uvloop.run(opened())


async def _record(cell: CellStore) -> None:
    """Bring the event log up to date, so that a row records only its own claims."""
    await Recorder(cell, SETTINGS).record()


async def _count(cell: CellStore) -> int:
    """Return the number of claims in the store: all have a deadline, because no agent takes them up."""
    return len(await cell.due.deadlines())


async def _select_until(scheduler: Scheduler, waiting: Iterator[Request], until: float) -> None:
    while time.perf_counter() < until:
        await scheduler.select(next(waiting))


def _of(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def print_table(rows: list[Measured], server: str) -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}, {server}, {os.cpu_count()} cores; processor time in us for each claim")
    print(f"{'hosts':>6}  {'work':<42} {'claims':>7} {'per s':>7} {'of raw':>7} {'p50 ms':>7} {'p99 ms':>7}  CPU us")
    raw = {row.hosts: row.per_second for row in rows if row.work.startswith("claim.lua")}
    for row in rows:
        latency = "".join(f" {'' if ms is None else f'{ms:.2f}':>7}" for ms in (row.p50_ms, row.p99_ms))
        spent = ", ".join(f"{role} {us:.0f}" for role, us in row.cpu_us.items())
        ratio = row.per_second / raw[row.hosts]
        print(f"{row.hosts:>6}  {row.work:<42} {row.claims:>7} {row.per_second:>7.0f} {ratio:>6.0%} {latency}  {spent}")


def quota_ratios(rows: list[Measured]) -> Iterator[str]:
    """Yield the rates with a quota beside those without, as lines: the median of the rounds, lowest and highest."""
    for limited in dict.fromkeys(row.work for row in rows if row.work.endswith(", a quota")):
        pairs = zip(*(_rates(rows, work) for work in (limited, limited.removesuffix(", a quota"))), strict=True)
        ratios = sorted(own / other for own, other in pairs)
        yield (
            f"{limited}: {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) of the rate without, "
            f"in {len(ratios)} rounds"
        )


def rest_ratios(rows: list[Measured]) -> Iterator[str]:
    """Yield the rates and latencies of selections over REST beside those of /healthz in the same round, as lines."""
    for health in dict.fromkeys(row.work for row in rows if row.work.startswith(HEALTH.name)):
        work = health.replace(HEALTH.name, SELECT.name)
        pairs = list(zip(*([row for row in rows if row.work == one] for one in (work, health)), strict=True))
        rates = sorted(own.per_second / other.per_second for own, other in pairs)
        p99s = sorted((own.p99_ms or 0.0) / (other.p99_ms or 1.0) for own, other in pairs)
        yield (
            f"{work}: {median(rates):.2f} ({rates[0]:.2f} to {rates[-1]:.2f}) of the rate of /healthz, and "
            f"{median(p99s):.1f} ({p99s[0]:.1f} to {p99s[-1]:.1f}) times its p99, in {_of(len(rates), 'round')}"
        )


def _rates(rows: list[Measured], work: str) -> list[float]:
    return [row.per_second for row in rows if row.work == work]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10_000], help="fleet sizes")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each row runs")
    parser.add_argument("--rounds", type=int, default=1, help="of the rows that are compared with each other, in turn")
    parser.add_argument("--raw", type=int, default=20_000, help="calls of the script alone")
    parser.add_argument("--batch", type=int, default=32, help="of these in one pipeline")
    parser.add_argument(
        "--tasks", type=int, nargs="*", default=[1, 32], help="concurrent tasks in process; without any, no such rows"
    )
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2], help="API processes; without any, no REST")
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--connections", type=int, default=8, help="connections of each")
    parser.add_argument("--server", type=Path, default=None, help="server binary; without: the one `up` would start")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    rows, broken, kind = list[Measured](), list[str](), ""
    for hosts in given.hosts:
        with PrivateServer.start(given.server) as server:
            bench, kind = Bench(server, hosts, given), f"{server.kind} {server.version}"
            bench.run()
            rows, broken = rows + bench.rows, broken + bench.broken
    print(json.dumps([asdict(row) for row in rows])) if given.json else print_table(rows, kind)
    if not given.json:
        print("\n".join([*(quota_ratios(rows) if given.rounds > 1 else ()), *rest_ratios(rows)]))
    print(
        "\n".join(["BROKEN", *broken]) if broken else "every answered claim is in the store, and no other",
        file=sys.stderr,
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
