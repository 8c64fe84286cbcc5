"""What a scheduler of many hosts needs: memory, time to start, processor time at rest, and the rate of its selections.

    python -m benchmarks.cells [--cells 1 4] [--hosts 2000] [--requests 1000] [--url URL] [--json]

One store has all cells, or a cluster if `--url` names one (an empty one: it is filled). For each number of cells, a
scheduler of so many of them runs in a process of its own, one after the other, and their claims are released in
between.

    start     until the scheduler is ready, and the memory that it has more than before
    rest      the share of a core that it takes while nothing happens
    feed      while hosts of all its cells report: entries applied
    alone     selections one after the other
    together  selections of 32 tasks at once
    refused   requests that no host can take, one after the other
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from random import Random
from statistics import quantiles
from typing import Any

import psutil
import uvloop

from benchmarks.cell_fleet import TOTALS, fill
from benchmarks.running import end_in_order
from redsched import logs
from redsched.errors import NoValidHost, RedschedError
from redsched.model import ClaimStatus, HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

TASKS = 32
SHARE = 0.8
"""The part of the room that the requests take."""
AMOUNTS = ((1, 1024), (2, 4096), (4, 8192), (8, 8192))
REFUSED = 20
REST_S = 5.0
CHURN = 50
"""Reports of each cell in the measurement of the feed."""
PATIENCE_S = 600.0
"""A million hosts take longer to load on a busy machine than requests usually wait."""


@dataclass(slots=True)
class Row:
    """One phase of one scheduler. `cpu_us` is its processor time for each request, without polls of the feed."""

    hosts: int
    phase: str
    requests: int = 0
    placed: int = 0
    seconds: float = 0.0
    cpu_us: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    calls: float = 0.0
    """Calls of the claim script for each request."""
    facts: dict[str, float] = field(default_factory=dict)


class Measured:
    """A scheduler in a process of its own, which answers calls over a pipe."""

    def __init__(self, url: str, cells: Sequence[str]) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_serve, args=(theirs, url, tuple(cells)))
        self._process.start()
        self.started: dict[str, Any] = self._pipe.recv()

    def ask(self, what: str, *arguments: Any) -> Any:
        """Return the result of a method of `_Server`."""
        self._pipe.send((what, arguments))
        return self._pipe.recv()

    def end(self) -> None:
        """Close the scheduler."""
        self._pipe.send(("end", ()))
        self._process.join()


def _serve(pipe: Connection, url: str, cells: tuple[str, ...]) -> None:
    logs.configure("error")
    settings = Settings(
        cells=cells, select_timeout_s=PATIENCE_S, catch_up_timeout_s=PATIENCE_S, check_s=0, events_keep_s=0
    )
    uvloop.run(_Server(pipe, settings).run(url))


class _Server:
    """Runs in the process of a scheduler."""

    def __init__(self, pipe: Connection, settings: Settings) -> None:
        self._pipe, self._settings = pipe, settings
        self._efforts: list[Effort] = []

    async def run(self, url: str) -> None:
        process, began, spent = psutil.Process(), time.perf_counter(), time.process_time()
        before = process.memory_info().rss
        async with Scheduler.connect(url, self._settings, self._efforts.append) as self._scheduler:
            seconds, cpu_s = time.perf_counter() - began, time.process_time() - spent
            self._pipe.send({"seconds": seconds, "cpu_s": cpu_s, "mb": (process.memory_info().rss - before) / 1e6})
            while True:
                what, arguments = await asyncio.to_thread(self._pipe.recv)
                if what == "end":
                    break
                self._pipe.send(await getattr(self, what)(*arguments))

    async def stats(self) -> dict[str, float]:
        stats = self._scheduler.stats()
        return {"hosts": stats.hosts, "entries": stats.entries, "mb": psutil.Process().memory_info().rss / 1e6}

    async def rest(self) -> dict[str, float]:
        """Return the processor time that the scheduler takes while it is asked for nothing, also for each poll."""
        began, spent, polls = time.perf_counter(), time.process_time(), self._polls()
        await asyncio.sleep(REST_S)
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - spent
        return {"seconds": seconds, "core_percent": cpu_s / seconds * 100, "poll_s": cpu_s / (self._polls() - polls)}

    def _polls(self) -> int:
        return sum(cell.updater.stats.polls for cell in self._scheduler.cells)

    async def select(self, requests: list[Request], tasks: int) -> dict[str, Any]:
        """Run the requests; return how many were placed, and the cost of all."""
        self._efforts.clear()
        waiting, failed = iter(requests), list[str]()
        began, spent, polls = time.perf_counter(), time.process_time(), self._polls()

        async def work() -> None:
            for request in waiting:
                try:
                    await self._scheduler.select(request)
                except NoValidHost:
                    continue
                except RedschedError as error:
                    failed.append(error.detail)

        await asyncio.gather(*(work() for _ in range(tasks)))
        return {
            "seconds": time.perf_counter() - began,
            "cpu_s": time.process_time() - spent,
            "polls": self._polls() - polls,
            "placed": sum(one.outcome == "claimed" for one in self._efforts),
            "calls": sum(one.calls for one in self._efforts) / len(requests),
            "latencies_s": [one.seconds for one in self._efforts],
            "failed": failed[:3],
        }

    async def release(self) -> None:
        """Release all claims, and have the replica show that."""
        for cell in self._scheduler.cells:
            claims = await cell.store.claims.read(await cell.store.audit.claim_ids())
            for claim in claims.values():
                if claim.state is ClaimStatus.CLAIMED:
                    await cell.store.claims.release(claim.host, claim.claim_id)
        await self._scheduler.cells.catch_up()


class Bench:
    """Measures a scheduler of each number of cells on one store."""

    def __init__(self, url: str, given: argparse.Namespace) -> None:
        self._url, self._given = url, given
        self._cells = [f"c{number}" for number in range(1, max(given.cells) + 1)]
        self._free: list[int] = []
        self._poll_s = 0.0
        """The processor time of one poll of the scheduler that is measured, with its other work at rest."""
        self.rows: list[Row] = []
        self.broken: list[str] = []

    def run(self) -> None:
        """Fill the store and measure."""
        seconds = _timed(lambda: uvloop.run(self._fill()))
        print(f"{len(self._cells)} cells of {self._given.hosts} hosts, filled in {seconds:.0f} s", file=sys.stderr)
        for turn, number in enumerate(self._given.cells, 1):
            one = Measured(self._url, self._cells[:number])
            try:
                self._measure(number, one)
                if turn < len(self._given.cells):
                    one.ask("release")
            finally:
                one.end()

    async def _fill(self) -> None:
        """Fill the cells, so that the smallest number of them has room for all requests."""
        room = 5 * self._given.requests // min(self._given.cells)
        async with Store.connect(self._url, Settings(cells=tuple(self._cells))) as store:
            for number, name in enumerate(self._cells):
                self._free.append(await fill(store.cell(name), self._given.hosts, room, Random(number)))

    def _measure(self, number: int, one: Measured) -> None:
        """Run all phases of a scheduler of this number of cells."""
        hosts, rest = int(one.ask("stats")["hosts"]), one.ask("rest")
        self._add(Row(hosts, "start", seconds=one.started["seconds"], facts=_of(one.started, "cpu_s", "mb")))
        self._add(Row(hosts, "rest", seconds=rest["seconds"], facts=_of(rest, "core_percent")))
        self._poll_s = rest["poll_s"]
        self._add(self._feed(hosts, number, one))
        requests = self._requests(sum(self._free[:number]) * SHARE)
        half = len(requests) // 2
        self._select(hosts, "alone", one, requests[:half], tasks=1)
        self._select(hosts, "together", one, requests[half:], tasks=TASKS)
        self._select(hosts, "refused", one, [Request({"VCPU": TOTALS["VCPU"] + 1})] * REFUSED, tasks=1)
        self.rows[-1].facts = _of(one.ask("stats"), "mb")

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        print(_line(row), file=sys.stderr)

    def _feed(self, hosts: int, number: int, one: Measured) -> Row:
        """Measure what the scheduler reads of CHURN reports in each of its cells."""
        before, seconds = one.ask("stats"), _timed(lambda: uvloop.run(self._churn(number)))
        entries = one.ask("stats")["entries"] - before["entries"]
        return Row(hosts, "feed", CHURN * number, seconds=seconds, facts={"entries": entries})

    async def _churn(self, number: int) -> None:
        async with Store.connect(self._url, Settings(cells=tuple(self._cells))) as store:
            for turn in range(CHURN):
                for name in self._cells[:number]:
                    inventories = {one: Inventory(total) for one, total in TOTALS.items()}
                    external = dict(TOTALS) | {"MEMORY_MB": TOTALS["MEMORY_MB"] - turn % 2}
                    await store.cell(name).hosts.report(
                        HostReport(f"{name}-template", inventories, external=external, lease_s=24 * 3600)
                    )
            await asyncio.sleep(0.2)

    def _requests(self, vcpu: float) -> list[Request]:
        """Return the wanted number of requests, or as many as so much VCPU is enough for."""
        rng, found, left = Random(7), list[Request](), vcpu
        while left > 0 and len(found) < self._given.requests:
            amount, memory = rng.choice(AMOUNTS)
            found.append(Request({"VCPU": amount, "MEMORY_MB": memory}, lease_s=3600))
            left -= amount
        return found

    def _select(self, hosts: int, phase: str, one: Measured, requests: list[Request], tasks: int) -> None:
        done = one.ask("select", requests, tasks)
        cuts = quantiles([*done["latencies_s"], *done["latencies_s"]], n=100, method="inclusive")
        self.broken += [f"{hosts} hosts, {phase}: {problem}" for problem in done["failed"]]
        if phase == "refused" and done["placed"]:
            self.broken.append(f"{hosts} hosts, {phase}: {done['placed']} were placed")
        count, cpu_s = len(requests), done["cpu_s"] - self._poll_s * done["polls"]
        cost = done["seconds"], cpu_s / count * 1e6, cuts[49] * 1e3, cuts[98] * 1e3
        self._add(Row(hosts, phase, count, done["placed"], *cost, done["calls"]))


def _of(values: dict[str, Any], *names: str) -> dict[str, float]:
    return {name: float(values[name]) for name in names}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def print_table(rows: list[Row]) -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}; per request: processor time without polls, latency, script calls")
    head = ("hosts", "phase", "requests", "placed", "a second", "CPU us", "p50 ms", "p99 ms", "calls")
    print("{:>8}  {:<8} {:>8} {:>7} {:>8} {:>7} {:>8} {:>9} {:>6}".format(*head))
    for row in rows:
        print(_line(row))


def _line(row: Row) -> str:
    facts = "  ".join(f"{name} {value:.2f}" for name, value in row.facts.items())
    if not row.cpu_us:
        return f"{row.hosts:>8}  {row.phase:<8} {row.seconds:.1f} s  {facts}"
    rate = row.requests / row.seconds
    numbers = f"{rate:>8.0f} {row.cpu_us:>7.0f} {row.p50_ms:>8.2f} {row.p99_ms:>9.1f} {row.calls:>6.2f}"
    return f"{row.hosts:>8}  {row.phase:<8} {row.requests:>8} {row.placed:>7} {numbers}  {facts}".rstrip()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[1, 4], help="numbers of cells of a scheduler")
    parser.add_argument("--hosts", type=int, default=2000, help="hosts of each cell")
    parser.add_argument("--requests", type=int, default=1000, help="about how many selections each scheduler makes")
    parser.add_argument("--url", default="", help="an empty store, such as cluster://...; without: a private server")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    if given.url:
        bench = Bench(given.url, given)
        bench.run()
    else:
        with PrivateServer.start() as server:
            bench = Bench(server.url, given)
            bench.run()
            print(f"store: {psutil.Process(server.pid).memory_info().rss / 1e6:.0f} MB", file=sys.stderr)
    print(json.dumps([asdict(row) for row in bench.rows])) if given.json else print_table(bench.rows)
    print("\n".join(["BROKEN", *bench.broken]) if bench.broken else "nothing failed", file=sys.stderr)
    return 1 if bench.broken else 0


if __name__ == "__main__":
    sys.exit(main())
