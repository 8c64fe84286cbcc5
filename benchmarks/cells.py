"""Schedulers that mirror some cells of many: memory, start, feed, extra rounds and what is lost, compared with all.

    python -m benchmarks.cells [--cells 4] [--hosts 2000] [--mirrored 1 2 3] [--requests 1000] [--url URL] [--json]

One store has all cells, or a cluster if `--url` names one (an empty one: it is filled). First a process is measured
that mirrors all cells. It goes on to write their summaries, for the other schedulers of the fleet. Then for each number
of mirrored cells, a process is measured on the same room: the claims of the one before were released.

    start     until the scheduler is ready, and the memory that it has more than before
    feed      while hosts of all cells report: entries applied and bytes sent to it
    own       requests for a part of the room of its own cells: the everyday case
    all       requests for most of the room of all cells, at this one scheduler: the worst case
    refused   requests that no host can take
    unclear   the same, but for a label, which summaries do not have: every other cell must be loaded
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
from redsched.scheduler import Effort, Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

TASKS = 8
SHARE = 0.8
"""The part of the room that the requests take."""
AMOUNTS = ((1, 1024), (2, 4096), (4, 8192), (8, 8192))
CHURN = 50
"""Reports of each cell in the measurement of the feed."""
PATIENCE_S = 600.0
"""A replica of 100,000 hosts takes longer to load than requests usually wait."""


@dataclass(slots=True)
class Row:
    """One phase of one scheduler. `cpu_us` is processor time for each request."""

    mirrored: int
    phase: str
    requests: int = 0
    placed: int = 0
    seconds: float = 0.0
    cpu_us: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    calls: float = 0.0
    """Calls of the claim script for each request."""
    loads: int = 0
    facts: dict[str, float] = field(default_factory=dict)


class Measured:
    """A scheduler in a process of its own, which answers calls over a pipe."""

    def __init__(self, url: str, cells: Sequence[str], mirrored: str) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_serve, args=(theirs, url, tuple(cells), mirrored))
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


def _serve(pipe: Connection, url: str, cells: tuple[str, ...], mirrored: str) -> None:
    logs.configure("error")
    settings = Settings(
        cells=cells,
        mirror_cells=mirrored,
        select_timeout_s=PATIENCE_S,
        catch_up_timeout_s=PATIENCE_S,
        check_s=0,
        events_keep_s=0,
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
            self._pipe.send(
                {
                    "seconds": time.perf_counter() - began,
                    "cpu_s": time.process_time() - spent,
                    "mb": (process.memory_info().rss - before) / 1e6,
                    "cells": [cell.name for cell in self._scheduler._cells if cell.is_mirrored],
                }
            )
            while True:
                what, arguments = await asyncio.to_thread(self._pipe.recv)
                if what == "end":
                    break
                self._pipe.send(await getattr(self, what)(*arguments))

    async def stats(self) -> dict[str, float]:
        stats = self._scheduler.stats()
        return {"entries": stats.entries, "mb": psutil.Process().memory_info().rss / 1e6}

    async def select(self, requests: list[Request], tasks: int) -> dict[str, Any]:
        """Run the requests; return how many were placed, and the cost of all."""
        self._efforts.clear()
        waiting, failed = iter(requests), list[str]()
        loads, began, spent = self._scheduler._replicas.loads, time.perf_counter(), time.process_time()

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
            "placed": sum(one.outcome == "claimed" for one in self._efforts),
            "calls": sum(one.calls for one in self._efforts) / len(requests),
            "latencies_s": [one.seconds for one in self._efforts],
            "loads": self._scheduler._replicas.loads - loads,
            "failed": failed[:3],
        }

    async def used(self) -> dict[str, int]:
        """Return the VCPU claimed in each cell, from the store."""
        found = dict[str, int]()
        for cell in self._scheduler._cells:
            claims = await cell.store.claims.read(await cell.store.audit.claim_ids())
            found[cell.name] = sum(c.slots.get("VCPU", 0) for c in claims.values() if c.state is ClaimStatus.CLAIMED)
        return found

    async def release(self) -> None:
        """Release all claims, and have them forgotten."""
        for cell in self._scheduler._cells:
            claims = await cell.store.claims.read(await cell.store.audit.claim_ids())
            for claim in claims.values():
                if claim.state is ClaimStatus.CLAIMED:
                    await cell.store.claims.release(claim.host, claim.claim_id)


class Bench:
    """Measure each number of mirrored cells on one store."""

    def __init__(self, url: str, given: argparse.Namespace) -> None:
        self._url, self._given = url, given
        self._cells = [f"c{number}" for number in range(1, given.cells + 1)]
        self.rows: list[Row] = []
        self.broken: list[str] = []
        self._free = 0

    def run(self) -> None:
        """Fill the store and measure."""
        seconds = _timed(lambda: uvloop.run(self._fill()))
        print(f"{self._given.cells} cells of {self._given.hosts} hosts, filled in {seconds:.0f} s", file=sys.stderr)
        everything = Measured(self._url, self._cells, "")
        try:
            self._measure(len(self._cells), everything, everything)
            for mirrored in self._given.mirrored:
                one = Measured(self._url, self._cells, ",".join(self._cells[:mirrored]))
                try:
                    self._measure(mirrored, one, everything)
                finally:
                    one.end()
        finally:
            everything.end()

    async def _fill(self) -> None:
        async with Store.connect(self._url, Settings(cells=tuple(self._cells))) as store:
            room = 3 * self._given.requests // len(self._cells)
            for number, name in enumerate(self._cells):
                self._free += await fill(store.cell(name), self._given.hosts, room, Random(number))

    def _measure(self, mirrored: int, one: Measured, everything: Measured) -> None:
        """Run all phases of one scheduler. `everything` mirrors all cells, and may be that one."""
        self._add(Row(mirrored, "start", seconds=one.started["seconds"], facts=_of(one.started, "cpu_s", "mb")))
        self._add(self._feed(mirrored, one))
        own = self._requests(self._free * SHARE / 2 * mirrored / len(self._cells))
        self._select(mirrored, "own", one, own)
        spent = sum(request.resources["VCPU"] for request in own)
        self._select(mirrored, "all", one, self._requests(self._free * SHARE - spent), lambda: self._spread(everything))
        self._select(mirrored, "refused", one, [Request({"VCPU": 65}) for _ in range(20)], tasks=1)
        unclear = [Request({"VCPU": 1}, labels={"rack": "r2"}) for _ in range(self._given.unclear)]
        self._select(mirrored, "unclear", one, unclear, lambda: _of(one.ask("stats"), "mb"), tasks=1)
        everything.ask("release")

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        print(_line(row), file=sys.stderr)

    def _feed(self, mirrored: int, one: Measured) -> Row:
        """Measure what the scheduler reads of CHURN reports in each cell."""
        before, seconds = one.ask("stats"), _timed(lambda: uvloop.run(self._churn()))
        entries = one.ask("stats")["entries"] - before["entries"]
        return Row(mirrored, "feed", CHURN * len(self._cells), seconds=seconds, facts={"entries": entries})

    async def _churn(self) -> None:
        async with Store.connect(self._url, Settings(cells=tuple(self._cells))) as store:
            for number in range(CHURN):
                for name in self._cells:
                    inventories = {one: Inventory(total) for one, total in TOTALS.items()}
                    external = dict(TOTALS) | {"MEMORY_MB": TOTALS["MEMORY_MB"] - number % 2}
                    await store.cell(name).hosts.report(
                        HostReport(f"{name}-template", inventories, external=external, lease_s=24 * 3600)
                    )
            await asyncio.sleep(0.2)

    def _requests(self, vcpu: float) -> list[Request]:
        """Return requests for so much VCPU in total."""
        rng, found, left = Random(7), list[Request](), vcpu
        while left > 0:
            amount, memory = rng.choice(AMOUNTS)
            found.append(Request({"VCPU": amount, "MEMORY_MB": memory}, lease_s=3600))
            left -= amount
        return found

    def _select(
        self,
        mirrored: int,
        phase: str,
        one: Measured,
        requests: list[Request],
        facts: Callable[[], dict[str, float]] = dict,
        tasks: int = TASKS,
    ) -> None:
        if not requests:
            return
        done = one.ask("select", requests, tasks)
        cuts = quantiles([*done["latencies_s"], *done["latencies_s"]], n=100, method="inclusive")
        self.broken += [f"{mirrored} mirrored, {phase}: {problem}" for problem in done["failed"]]
        if phase in ("refused", "unclear") and done["placed"]:
            self.broken.append(f"{mirrored} mirrored, {phase}: {done['placed']} were placed")
        count = len(requests)
        cost = done["seconds"], done["cpu_s"] / count * 1e6, cuts[49] * 1e3, cuts[98] * 1e3
        self._add(Row(mirrored, phase, count, done["placed"], *cost, done["calls"], done["loads"], facts()))

    def _spread(self, others: Measured) -> dict[str, float]:
        """Return the part of each cell's room that is used, at the fullest and at the emptiest cell."""
        used = others.ask("used")
        parts = [amount / (self._free / len(used)) for amount in used.values()]
        return {"fullest": max(parts), "emptiest": min(parts)}


def _of(values: dict[str, Any], *names: str) -> dict[str, float]:
    return {name: float(values[name]) for name in names}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def print_table(rows: list[Row]) -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}; per request: processor time, latency, calls of the claim script")
    head = ("mirrored", "phase", "requests", "placed", "CPU us", "p50 ms", "p99 ms", "calls", "loads")
    print("{:>8}  {:<8} {:>8} {:>7} {:>7} {:>8} {:>9} {:>6} {:>6}".format(*head))
    for row in rows:
        print(_line(row))


def _line(row: Row) -> str:
    facts = "  ".join(f"{name} {value:.2f}" for name, value in row.facts.items())
    if row.phase in ("start", "feed"):
        return f"{row.mirrored:>8}  {row.phase:<8} {row.seconds:.1f} s  {facts}"
    numbers = f"{row.cpu_us:>7.0f} {row.p50_ms:>8.2f} {row.p99_ms:>9.1f} {row.calls:>6.2f} {row.loads:>6}"
    return f"{row.mirrored:>8}  {row.phase:<8} {row.requests:>8} {row.placed:>7} {numbers}  {facts}"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, default=4, help="number of cells")
    parser.add_argument("--hosts", type=int, default=2000, help="hosts of each")
    parser.add_argument(
        "--mirrored", type=int, nargs="*", default=[1, 2, 3], help="numbers of mirrored cells, beside all"
    )
    parser.add_argument("--requests", type=int, default=1000, help="about how many find room in all cells")
    parser.add_argument("--unclear", type=int, default=1, help="requests that only replicas can refuse")
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
