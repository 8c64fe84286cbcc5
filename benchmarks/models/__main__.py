"""Scheduling models compared on the same fleet with the same requests: retries, latency, over-commitments.

    python -m benchmarks.models [--quick] [--schedulers 1 2 4 8] [--requests 400] [--json FILE] [--plots DIR]

Models (docs/benchmarks.md describes them): filter, caching and shared-state of Nova, placement of OpenStack, redsched.
The first table is the case of 3 hosts with 31 requests at once that was published in 2016. Ends with exit code 1 if a
host was over-committed, or if answers and hosts disagree.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.models import original, plots, report
from benchmarks.models.figures import Row
from benchmarks.models.processes import run
from benchmarks.models.registry import MODELS
from benchmarks.models.work import Setup, make_asks, make_fleet
from benchmarks.running import end_in_order

QUICK = {"schedulers": [1, 4], "hosts": 20, "requests": 80, "rounds": 1}


def options(given: argparse.Namespace) -> Setup:
    """Return what all runs have in common."""
    asks = make_asks(given.requests, given.seed)
    return Setup(
        model="",
        store_url="",
        folder="",
        hosts=make_fleet(given.hosts, asks, given.fill),
        asks=asks,
        seed=given.seed,
        host_delay_s=given.host_delay_ms / 1e3,
        database_s=given.database_ms / 1e3,
        pick_from=given.pick_from,
        cache_s=given.cache_s,
        concurrency=given.concurrency,
        time_limit_s=given.time_limit_s,
    )


def run_all(planned: Sequence[Setup], server: Path | None) -> list[Row]:
    """Run everything, with a progress bar if stderr is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<16}"), *Progress.get_default_columns()[1:2]
    rows = []
    with Progress(
        *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(planned))
        for setup in planned:
            progress.update(task, description=f"{setup.model} {setup.schedulers}")
            rows.append(run(setup, server))
            progress.advance(task)
    return rows


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m benchmarks.models", description=about)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="only these")
    parser.add_argument("--schedulers", type=int, nargs="+", default=[1, 2, 4, 8], help="scheduler processes")
    parser.add_argument("--hosts", type=int, default=50, help="size of the fleet")
    parser.add_argument("--requests", type=int, default=400, help="requests of each run")
    parser.add_argument("--fill", type=float, default=0.95, help="how full all requests together make the fleet")
    parser.add_argument("--seed", type=int, default=1, help="of the requests and of random choices")
    parser.add_argument("--host-delay-ms", type=float, default=5.0, help="how long a message to a host and back takes")
    parser.add_argument(
        "--database-ms", type=float, default=0.0, help="how much longer a peer's read of all hosts takes than here"
    )
    parser.add_argument("--pick-from", type=int, default=4, help="the first host is a random one of this many best")
    parser.add_argument("--cache-s", type=float, default=1.0, help="how often the caching scheduler refreshes")
    parser.add_argument("--concurrency", type=int, default=8, help="requests that one scheduler works on at once")
    parser.add_argument("--time-limit-s", type=float, default=20.0, help="of each run: later requests are not made")
    parser.add_argument("--rounds", type=int, default=3, help="of the published case; 0 leaves it out")
    parser.add_argument("--quick", action="store_true", help="few and small runs, in less than half a minute")
    parser.add_argument("--server", type=Path, default=None, help="server binary; without: the one `up` would start")
    parser.add_argument("--json", type=Path, default=None, help="write all figures to this file")
    parser.add_argument("--plots", type=Path, default=None, help="write models.png to this folder (redsched[plots])")
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**QUICK)
    return parser.parse_args()


def as_json(published: Sequence[Row], rows: Sequence[Row], given: argparse.Namespace) -> str:
    """Return all figures, with the options and the machine."""
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": os.getloadavg()}
    chosen = {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()}
    found = {"original": [asdict(row) for row in published], "rows": [asdict(row) for row in rows]}
    return json.dumps({"machine": machine, "options": chosen, **found}, indent=1)


def main() -> int:
    """Run the command line."""
    given = arguments()
    end_in_order()
    first = list(original.setups(options(given), given.models, given.rounds))
    # All models with one number of schedulers follow each other, on an equally loaded machine.
    sizes = [replace(options(given), model=one, schedulers=many) for many in given.schedulers for one in given.models]
    found = run_all([*first, *sizes], given.server)
    published, rows = found[: len(first)], found[len(first) :]
    console = report.console()
    if published:
        report.print_original(published, console)
    report.print_rows(rows, console)
    report.print_bars(rows, console)
    if given.json:
        given.json.write_text(as_json(published, rows, given))
    if given.plots:
        print(f"plot: {plots.save(rows, given.plots)}")
    problems = [f"{row.model}, {row.schedulers} schedulers: {one}" for row in found for one in row.problems]
    print("\n".join(["BROKEN", *problems] if problems else ["no host was over-committed"]), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
