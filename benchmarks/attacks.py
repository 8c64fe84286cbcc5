"""What one caller's attacks cost the others: /healthz while each of them runs, and the memory of the worker.

    python -m benchmarks.attacks [--hosts 2000] [--seconds 4] [--attack TEXT ...] [--json]

Starts `redsched up` with one worker and a fleet of hosts with eight GPUs each, and plays one attack after the other
(benchmarks/attack_plays.py), each for some seconds. Meanwhile a thread of its own requests /healthz fifty times a
second; its times, and the worker's processor time and memory, are those of the row. To compare with another checkout,
put that one first on PYTHONPATH.
"""

import argparse
import asyncio
import http.client
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import psutil

from benchmarks.attack_plays import PLAYS, Stage
from benchmarks.running import Up, end_in_order

PAUSE_S = 0.02
TIMEOUT_S = 60.0
GRACE_S = 90.0
"""How much longer than its time a play may take, before it is given up."""
FLEET = """  - name: {name}{{n}}
    repeat: {hosts}
    zone: az1
    lease_s: 600
    inventories: {{VCPU: {{total: 1024}}, MEMORY_MB: {{total: 4Ti}}}}
    pools:
"""
GPU = "      gpu{}: {{inventories: {{CUSTOM_GPU_MILLI: {{total: {}}}}}}}\n"
KINDS = 20
"""Kinds of hosts, which differ in their GPUs, so that they do not share a search of pools."""


@dataclass(frozen=True, slots=True)
class Row:
    """One attack: times of /healthz in ms, of the play's own requests, the worker's memory and processor time."""

    attack: str
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    own_p99_ms: float | None
    worker_mb: float
    grown_mb: float
    cpu_s: float
    failures: int
    statuses: dict[int, int]


class Healthz:
    """Requests /healthz again and again in a thread. `times_s` are those of the responses, and of failures."""

    def __init__(self, url: str) -> None:
        self._where = urlsplit(url)
        self._end = threading.Event()
        self.times_s: list[float] = []
        self.failures = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Healthz":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        connection = self._connection()
        while not self._end.wait(PAUSE_S):
            began = time.perf_counter()
            try:
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                self.failures += 1
                connection.close()
                connection = self._connection()
            self.times_s.append(time.perf_counter() - began)
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._where.hostname or "", self._where.port, timeout=TIMEOUT_S)


def percentile(times_s: Sequence[float], share: float) -> float:
    """Return the time in ms that this share of the times is not above; 0 without times."""
    ordered = sorted(times_s)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3 if ordered else 0.0


def play(name: str, url: str, pid: int, seconds: float, scale: int = 1) -> Row:
    """Play one attack against a worker."""
    worker = psutil.Process(pid)
    before_mb, before_s = worker.memory_info().rss / 1e6, sum(worker.cpu_times()[:2])
    began = time.perf_counter()
    stage = Stage(url, began + seconds, scale)
    with Healthz(url) as healthz:
        try:
            asyncio.run(_limited(name, stage, seconds))
        except TimeoutError:
            stage.statuses[-1] += 1
    after_mb = worker.memory_info().rss / 1e6
    return Row(
        name,
        time.perf_counter() - began,
        percentile(healthz.times_s, 0.5),
        percentile(healthz.times_s, 0.99),
        percentile(healthz.times_s, 1.0),
        percentile(stage.times_s, 0.99) if stage.times_s else None,
        after_mb,
        after_mb - before_mb,
        sum(worker.cpu_times()[:2]) - before_s,
        healthz.failures,
        dict(sorted(stage.statuses.items())),
    )


async def _limited(name: str, stage: Stage, seconds: float) -> None:
    async with asyncio.timeout(seconds + GRACE_S):
        await PLAYS[name](stage)


@contextmanager
def fleet_file(hosts: int) -> Iterator[str]:
    """Yield the name of a fleet file."""
    with tempfile.TemporaryDirectory(prefix="redsched-attacks-") as folder:
        file = Path(folder) / "fleet.yaml"
        file.write_text("hosts:\n" + "".join(_hosts(kind, max(1, hosts // KINDS)) for kind in range(KINDS)))
        yield str(file)


def _hosts(kind: int, hosts: int) -> str:
    rng = Random(kind)
    gpus = "".join(GPU.format(number, rng.randrange(200, 480)) for number in range(8))
    return FLEET.format(name=chr(ord("a") + kind), hosts=hosts) + gpus


def run(hosts: int, seconds: float, names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows, each from a worker of its own, so that none pays for what another one left."""
    with fleet_file(hosts) as file:
        for name in names:
            with Up(["--workers", "1", "--fleet", file]) as up:
                yield play(name, up.url, up.workers[0], seconds)


def print_row(row: Row) -> None:
    """Print a row of the table."""
    own = f"{row.own_p99_ms:8.0f}" if row.own_p99_ms is not None else f"{'':>8}"
    shown = ", ".join(f"{status}: {number}" for status, number in row.statuses.items())
    print(
        f"{row.attack:<34} {row.seconds:6.1f} {row.p50_ms:7.1f} {row.p99_ms:8.1f} {row.max_ms:8.1f} {own} "
        f"{row.worker_mb:7.0f} {row.grown_mb:+7.0f} {row.cpu_s:6.1f}  {shown}",
        flush=True,
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each attack")
    parser.add_argument("--attack", nargs="+", default=[""], help="only those whose names contain one of these texts")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    names = [name for name in PLAYS if any(one in name for one in given.attack)]
    rows = run(given.hosts, given.seconds, names)
    if given.json:
        print(json.dumps([asdict(one) for one in rows]))
        return
    heads = ("s", "p50 ms", "p99 ms", "max ms", "own p99", "MB", "grown", "cpu s")
    print(
        f"{'/healthz while':<34} {heads[0]:>6} {heads[1]:>7} {heads[2]:>8} {heads[3]:>8} {heads[4]:>8} "
        f"{heads[5]:>7} {heads[6]:>7} {heads[7]:>6}  statuses"
    )
    for row in rows:
        print_row(row)


if __name__ == "__main__":
    main()
