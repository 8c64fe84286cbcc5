"""The tables and the bars that are printed. Bars are rich's, which redsched needs anyway."""

from collections.abc import Callable, Sequence

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from benchmarks.models import original
from benchmarks.models.figures import Row

BAR_WIDTH = 40
METRICS: dict[str, Callable[[Row], float]] = {
    "decisions per second": lambda row: row.per_second,
    "latency p50, ms": lambda row: row.p50_ms,
    "latency p99, ms": lambda row: row.p99_ms,
    "retries per request": lambda row: row.retries,
    "refused although a host had room": lambda row: row.wrong_refusals,
    "over-commitments": lambda row: row.over_commitments,
}
"""What is plotted, in the terminal (the first and the fourth) and as an image."""
BARS = ("decisions per second", "retries per request")


MIN_WIDTH = 120
"""Of the tables: a narrower terminal wraps their lines, which is better than rich's shortened numbers."""


def console() -> Console:
    """Return a console that is wide enough for the tables."""
    return Console(width=max(MIN_WIDTH, Console().width))


def print_original(rows: Sequence[Row], console: Console) -> None:
    """Print the comparison with the original experiment."""
    rounds = len(rows) // len({(row.model, row.schedulers) for row in rows})
    console.print(f"31 requests at once on 3 hosts: retries in percent of the requests (rounds: {rounds})")
    table = _table("model")
    for name in ("schedulers", "ours: mean (range)", "reported", "wrongly refused"):
        table.add_column(name, justify="right")
    for model, schedulers, ours, reported, wrong in original.lines(rows):
        table.add_row(model, str(schedulers), ours, reported, str(wrong))
    console.print(table)


def print_rows(rows: Sequence[Row], console: Console) -> None:
    """Print the table of all runs."""
    first = rows[0]
    console.print(f"\n{first.hosts} hosts, {first.requests} requests")
    table = _table("model")
    names = ("sched.", "decided", "placed", "per s", "p50 ms", "p99 ms", "on host", "retries", "lost", "wrong", "over")
    for name in (*names, "CPU us"):
        table.add_column(name, justify="right")
    for row in rows:
        counts = (row.schedulers, row.decided, row.placed, f"{row.per_second:.0f}")
        times = (f"{ms:.1f}" for ms in (row.p50_ms, row.p99_ms, row.on_host_p50_ms))
        found = (f"{row.retries:.3f}", f"{row.lost:.3f}", row.wrong_refusals, row.over_commitments)
        table.add_row(row.model, *map(str, (*counts, *times, *found)), f"{sum(row.cpu_us.values()):.0f}")
    console.print(table)


def print_bars(rows: Sequence[Row], console: Console) -> None:
    """Print bars of the most important figures."""
    for name in BARS:
        of = METRICS[name]
        most = max(map(of, rows)) or 1.0
        console.print(f"\n{name}")
        table = _table()
        for row in rows:
            value = of(row)
            table.add_row(f"{row.model} {row.schedulers}", Bar(most, 0, value, width=BAR_WIDTH), f"{value:.4g}")
        console.print(table)


def _table(first: str = "") -> Table:
    table = Table(box=None, show_header=bool(first))
    table.add_column(first)
    return table
