"""How long processes take to start on a fleet of a given size: an agent, a scheduler, and commands about one thing.

    python -m benchmarks.start [--hosts 1000 10000 100000] [--repeat 5] [--commands 10000] [--json]

Each size of fleet has one private store, and each row runs in processes of its own, one after the other:

    agent         one agent reports all hosts of an empty store, until each of them is open for claims
    scheduler     Scheduler.connect, until its replica has all hosts; imports excluded
    host show ... a whole `redsched` command, from exec to exit: `bare` is Python alone, `--help` loads no command

Ends with exit code 1 if a process fails, or does not end up with all hosts. The commands run for one size only.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.claim_work import HELD_S, cpu_of
from benchmarks.running import end_in_order
from redsched import logs
from redsched.agent.collectors.fleet import simulated
from redsched.agent.run import run as run_agent
from redsched.model import Quota, Request
from redsched.pacing import freeze_existing_objects
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

TIMEOUT_S = 600.0
"""The most time that one process may take."""

CLAIM, PROJECT, HOST = "shown", "web", "sim-00001"
COMMANDS = (
    ("--help",),
    ("host", "show", HOST),
    ("claim", "show", CLAIM),
    ("quota", "list"),
    ("quota", "show", PROJECT),
    ("server-group", "list"),
    ("host", "list", "--limit", "1"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of one kind of start: the median of `repeats` processes. `store_s` is the server's processor time."""

    hosts: int
    what: str
    cpu_s: float
    wall_s: float
    store_s: float
    repeats: int


Spent = tuple[float, float, int]
"""Processor seconds, elapsed seconds, and the number of hosts that were there in the end."""


def agent(url: str, hosts: int) -> Spent:
    """Report the hosts of an agent until each is open."""
    logs.configure("warning")
    settings = Settings()
    reports = simulated(hosts, lease_s=HELD_S)
    freeze_existing_objects()

    async def start() -> int:
        ready = asyncio.Event()
        with tempfile.TemporaryDirectory(prefix="redsched-benchmark-") as folder:
            running = asyncio.create_task(run_agent(settings, url, reports, Path(folder) / "journal", ready))
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait([running, waiting], timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            spent.extend((time.process_time(), time.perf_counter()))
            is_ready = ready.is_set()
            waiting.cancel()
            running.cancel()
            await asyncio.wait([running])
            return hosts if is_ready else 0

    spent = [time.process_time(), time.perf_counter()]
    found = uvloop.run(start())
    return spent[2] - spent[0], spent[3] - spent[1], found


def scheduler(url: str, hosts: int) -> Spent:  # noqa: ARG001 - called like `agent`
    """Open a scheduler."""
    import redsched.scheduler.preload  # noqa: F401 - imports are not measured
    from redsched.scheduler import Scheduler

    async def start() -> int:
        async with Scheduler.connect(url, settings) as opened:
            spent.extend((time.process_time(), time.perf_counter()))
            return opened.stats().hosts_attested

    logs.configure("warning")
    settings = Settings(catch_up_timeout_s=TIMEOUT_S)
    freeze_existing_objects()
    spent = [time.process_time(), time.perf_counter()]
    found = uvloop.run(start())
    return spent[2] - spent[0], spent[3] - spent[1], found


async def declare(url: str) -> None:
    """Declare the cell new, so that it starts settled."""
    async with Store.connect(url, Settings()) as store:
        await store.cell("c1").init()


async def prepare(url: str) -> None:
    """Make the objects that the commands show."""
    from redsched.scheduler import Scheduler

    async with Scheduler.connect(url, Settings(catch_up_timeout_s=TIMEOUT_S)) as opened:
        await opened.quotas.put(Quota(PROJECT, {"VCPU": 1000}))
        await opened.select(Request({"VCPU": 1}, claim_ids=(CLAIM,), lease_s=HELD_S, project=PROJECT))


def in_process(server: PrivateServer, hosts: int, work: Callable[[str, int], Spent], repeat: int) -> Row:
    """Run a start in new processes, one after the other. Raises SystemExit unless each ends with all hosts."""
    found = list[Spent]()
    store = cpu_of(server.pid)
    for _ in range(repeat):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found.append(pool.apply_async(work, (server.url, hosts)).get(TIMEOUT_S))
    if any(one[2] != hosts for one in found):
        raise SystemExit(f"{work.__name__}: {[one[2] for one in found]} of {hosts} hosts were there")
    store_s = (cpu_of(server.pid) - store) / repeat
    cpu_s, wall_s = (median(one[number] for one in found) for number in (0, 1))
    return Row(hosts, work.__name__, cpu_s, wall_s, store_s, repeat)


def command(server: PrivateServer, hosts: int, what: str, arguments: Sequence[str], repeat: int) -> Row:
    """Run a command as a process of its own, several times. Raises SystemExit if it fails."""
    cpu_s, wall_s, store = list[float](), list[float](), cpu_of(server.pid)
    for _ in range(repeat):
        before, began = _children_s(), time.perf_counter()
        ended = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "REDSCHED_REDIS_URL": server.url},
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        if ended.returncode:
            raise SystemExit(f"{what}: {ended.stderr.decode(errors='replace')}")
        wall_s.append(time.perf_counter() - began)
        cpu_s.append(_children_s() - before)
    return Row(hosts, what, median(cpu_s), median(wall_s), (cpu_of(server.pid) - store) / repeat, repeat)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(hosts: int, given: argparse.Namespace) -> list[Row]:
    """Return the rows of one size of fleet."""
    with PrivateServer.start() as server:
        uvloop.run(declare(server.url))
        rows = [in_process(server, hosts, agent, 1), in_process(server, hosts, scheduler, given.repeat)]
        if hosts == given.commands:
            uvloop.run(prepare(server.url))
            rows.append(command(server, hosts, "bare", ("-c", ""), given.repeat))
            rows += [
                command(server, hosts, " ".join(words), ("-m", "redsched.cli", *words), given.repeat)
                for words in COMMANDS
            ]
        return rows


def print_table(rows: Sequence[Row]) -> None:
    """Print the rows; `load` is that of the machine at the end."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; seconds, medians of `of` processes")
    print(f"{'hosts':>7}  {'what':<24} {'processor':>9} {'elapsed':>8} {'store':>7} {'of':>3}")
    for row in rows:
        print(
            f"{row.hosts:>7}  {row.what:<24} {row.cpu_s:>9.2f} {row.wall_s:>8.2f} {row.store_s:>7.2f} {row.repeats:>3}"
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10_000, 100_000], help="fleet sizes")
    parser.add_argument("--repeat", type=int, default=5, help="processes of each row but the agent's")
    parser.add_argument("--commands", type=int, default=10_000, help="the fleet size at which commands run; 0: never")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    end_in_order()
    logs.configure("warning")
    rows = [row for hosts in given.hosts for row in measure(hosts, given)]
    if given.json:
        print(json.dumps({"load": os.getloadavg()[0], "rows": [asdict(row) for row in rows]}))
    else:
        print_table(rows)


if __name__ == "__main__":
    main()
