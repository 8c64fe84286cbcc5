"""Every benchmark in one run: the figures of docs/benchmarks.md, and how they compare with an earlier run.

    python -m benchmarks [--quick] [--only NAME ...] [--json FILE] [--compare EARLIER.json] [--plots DIR]

Each program runs as a process of its own, with bounded options. All figures, the machine and the versions go into one
JSON file. Ratios are such that above 1 is better. Ends with exit code 1 if a program failed or found an error.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import result_plots
from benchmarks.models import report
from benchmarks.results import Finished, Results, ResultsError, compare, geometric_means, unlike, with_ratios
from benchmarks.running import END_TIMEOUT_S, end_in_order
from benchmarks.suite import PROGRAMS, Program

DEFAULT_FILE = Path("build/benchmarks.json")


def run_program(program: Program, given: argparse.Namespace, results: Results) -> None:
    """Run a program and add its figures."""
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        file = Path(folder) / "found.json"
        arguments = [*(program.quick if given.quick else program.arguments), "--json"]
        if program.to_file:
            arguments += [str(file), *(["--plots", str(given.plots)] if given.plots else [])]
        started = time.perf_counter()
        printed, error = _run(program, arguments, given.time_limit_s)
        seconds = time.perf_counter() - started
        text = file.read_text() if program.to_file and file.exists() else printed
    results.programs.append(Finished(program.name, arguments, seconds, error))
    _take(program, text, results)


def _run(program: Program, arguments: Sequence[str], time_limit_s: float) -> tuple[str, str]:
    """Return what a program printed, and why it failed; '' if it did not."""
    command = [sys.executable, "-m", f"benchmarks.{program.name}", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed, complaints = process.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        return _end(process), f"took more than {time_limit_s:g} s: see --time-limit-s"
    except BaseException:
        _end(process)
        raise
    last = "\n".join(complaints.strip().splitlines()[-5:])
    return printed, f"exit code {process.returncode}: {last}" if process.returncode else ""


def _end(process: "subprocess.Popen[str]") -> str:
    """End a program in order, or else with everything that it started; return what it printed."""
    process.terminate()
    try:
        return process.communicate(timeout=END_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def _take(program: Program, text: str, results: Results) -> None:
    """Take the figures from a program's JSON. A program that failed may have printed none."""
    try:
        rows: Any = json.loads(text)
        figures = list(program.figures(rows))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        last = results.programs[-1]
        last.error = last.error or f"its JSON has another form than expected: {error!r}"
        return
    results.rows[program.name] = rows
    results.figures += figures


def print_ratios(results: Results, console: Console) -> None:
    """Print every figure, with its ratio to its baseline."""
    table = _table("program", "figure", right=("value", "unit", "times better"))
    for figure, times in with_ratios(results.figures):
        shown = "" if times is None else f"{times:.2f}"
        table.add_row(figure.program, figure.name, f"{figure.value:.4g}", figure.unit, shown)
    console.print(table)


def print_comparison(now: Results, earlier: Results, console: Console) -> None:
    """Print the figures of two runs."""
    compared = compare(now.figures, earlier.figures)
    table = _table("program", "figure", right=("earlier", "now", "unit", "times better"))
    for one in compared:
        shown = "" if one.ratio is None else f"{one.ratio:.2f}"
        values = (f"{one.earlier:.4g}", f"{one.figure.value:.4g}")
        table.add_row(one.figure.program, one.figure.name, *values, one.figure.unit, shown)
    console.print(table)
    for program, mean in geometric_means(compared).items():
        console.print(f"{program}: {mean:.2f} times better (geometric mean)")
    for line in unlike(now, earlier):
        console.print(f"not alike: {line}")


def _table(*left: str, right: Sequence[str]) -> Table:
    table = Table(box=None)
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="left" if name == "unit" else "right", no_wrap=True)
    return table


def run_all(names: Sequence[str], given: argparse.Namespace) -> Results:
    """Run the named programs, with a progress bar if stderr is a terminal."""
    results, console = Results.new(given.quick), Console(stderr=True)
    columns = TextColumn("{task.description:<12}"), *Progress.get_default_columns()[1:2]
    with Progress(
        *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=name)
            if missing := PROGRAMS[name].missing():
                console.print(f"{name} is left out: {missing}")
            else:
                run_program(PROGRAMS[name], given, results)
            progress.advance(task)
    results.machine["load_after"] = os.getloadavg()[0]
    return results


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m benchmarks", description=about)
    usual = [name for name, program in PROGRAMS.items() if not program.optional]
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS), default=usual, help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that all runs, not how fast")
    parser.add_argument("--json", type=Path, default=DEFAULT_FILE, help="file to write (default: %(default)s)")
    parser.add_argument("--compare", type=Path, default=None, help="file of an earlier run")
    parser.add_argument("--plots", type=Path, default=None, help="folder for images (redsched[plots])")
    parser.add_argument("--time-limit-s", type=float, default=900.0, help="of each program")
    return parser.parse_args()


def main() -> int:
    """Run the command line."""
    given = arguments()
    end_in_order()
    try:
        earlier = Results.read(given.compare) if given.compare else None
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2
    results = run_all(given.only, given)
    results.write(given.json)
    console = report.console()
    print_ratios(results, console)
    if earlier:
        print_comparison(results, earlier, console)
    if given.plots:
        print(f"plot: {result_plots.save(results.figures, given.plots)}")
    print(f"figures: {given.json}")
    failed = [f"{one.name}: {one.error}" for one in results.programs if one.error]
    print("\n".join(["FAILED", *failed]) if failed else "every program ended well", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
