"""What a scrape of /metrics computes of the fleet: plain hosts, and large hosts with pools.

    python -m benchmarks.scrape [--hosts 10000]

In memory, so without the server and the store. The figures are computed at most once a second.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random

from benchmarks import fleet_of_pools
from benchmarks.decide import make_columns, make_fleet
from redsched.api.fleet_metrics import FleetMetrics
from redsched.cache.columns import Columns
from redsched.cache.fleet import FleetUsage, fleet_steps
from redsched.decide.steps import finished
from redsched.pacing import in_slices

ROUNDS = 15


async def measured(columns: Columns) -> str:
    """Return the cells of a row."""
    texts, usage = list[bytes](), finished(fleet_steps(columns))

    async def render() -> None:
        texts.append(await FleetMetrics(as_is).text())

    async def as_is() -> dict[str, FleetUsage]:
        return {"c1": usage}

    figures, text = await seconds(finding(columns)), await seconds(render)
    series = sum(not line.startswith(b"#") for line in texts[0].splitlines())
    return f"{series} | {figures * 1e3:.1f} ms | {text * 1e3:.1f} ms | {longest_step(columns) * 1e3:.1f} ms"


def finding(columns: Columns) -> Callable[[], Awaitable[object]]:
    """Return a function that finds the figures as a scrape does."""
    return lambda: in_slices(fleet_steps(columns))


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median duration of some calls."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[ROUNDS // 2]


def longest_step(columns: Columns) -> float:
    """Return the median, over some rounds, of the longest time for which other tasks wait."""
    longest = []
    for _ in range(ROUNDS):
        times = [time.perf_counter()]
        for _ in fleet_steps(columns):
            times.append(time.perf_counter())  # noqa: PERF401 - between the steps
        longest.append(max(after - before for before, after in pairwise([*times, time.perf_counter()])))
    return sorted(longest)[ROUNDS // 2]


def main() -> None:
    """Measure both fleets, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    hosts = parser.parse_args().hosts
    print("| fleet | slots | series | figures | text | longest step |\n|---|---|---|---|---|---|")
    for name, make in (("plain", make_fleet), ("pools", fleet_of_pools.make_fleet)):
        columns = make_columns(make(hosts, Random(1)))
        print(f"| {hosts} {name} | {len(columns.capacity)} | {asyncio.run(measured(columns))} |")


if __name__ == "__main__":
    main()
