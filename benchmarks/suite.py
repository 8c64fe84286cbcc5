"""The programs that `python -m benchmarks` runs, and the figures that it takes from the JSON of each."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Better = Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `baseline` names the figure of the same program and run that it is compared with, '' if none."""

    program: str
    name: str
    value: float
    unit: str
    better: Better
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A benchmark as the suite runs it. `quick` are the arguments of a quick run.

    `needs` is a command that must be installed. An optional program runs only if it is named. One that writes
    its JSON `to_file` takes the file's name after `--json`, and draws with `--plots`; others print it.
    """

    name: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]
    figures: Callable[[Any], Iterator[Figure]]
    needs: str = ""
    optional: bool = False
    to_file: bool = False

    def missing(self) -> str:
        """Return why it cannot run here, '' if it can."""
        return f"{self.needs} is not installed" if self.needs and not shutil.which(self.needs) else ""


def _decide(rows: Any) -> Iterator[Figure]:
    for row in rows:
        hosts = f"{row['hosts']} hosts"
        baseline = "" if row["work"] == "loop" else f"{hosts}, loop"
        yield Figure("decide", f"{hosts}, {row['work']}", row["median_us"], "us", "less", baseline)


def _constraints(rows: Any) -> Iterator[Figure]:
    for row in rows:
        for work in ("repeated", "new_shape", "loop"):
            baseline = "" if work == "loop" else f"{row['case']}, loop"
            name = f"{row['case']}, {work.replace('_', ' ')}"
            yield Figure("constraints", name, row[f"{work}_us"], "us", "less", baseline)


def _throughput(rows: Any) -> Iterator[Figure]:
    """Yield rates, compared with that of the script alone, and the processor time of each role."""
    raw, name = dict[int, str](), ""
    for row in rows:
        # An indented row is a part of the row above it.
        is_part = row["work"].startswith(" ")
        name = f"{name}, {row['work'].strip()}" if is_part else f"{row['hosts']} hosts, {row['work']}"
        if row["work"].startswith("claim.lua"):
            raw[row["hosts"]] = name
        baseline = raw.get(row["hosts"], "")
        rate = row["claims"] / row["seconds"]
        yield Figure("throughput", name, rate, "per s", "more", "" if name == baseline else baseline)
        for role, spent in row["cpu_us"].items():
            yield Figure("throughput", f"{name}: {role}", spent, "us", "less")


def _script_cost(rows: Any) -> Iterator[Figure]:
    for name, count in rows.items():
        yield Figure("script_cost", name, count / 1000, "thousand instructions", "less")


def _loop_lag(found: Any) -> Iterator[Figure]:
    for row in found["rows"]:
        yield Figure("loop_lag", row["work"], row["largest_cpu_ms"], "ms", "less")


def _models(found: Any) -> Iterator[Figure]:
    """Yield rates, latencies and processor times, compared with those of the filter scheduler; and retries."""
    for row in found["rows"]:
        schedulers = f"{row['schedulers']} scheduler{'' if row['schedulers'] == 1 else 's'}"
        for what, value, unit, better in _of_model(row):
            has_baseline = row["model"] != "filter" and unit != "per request"
            baseline = f"filter, {schedulers}: {what}" if has_baseline else ""
            yield Figure("models", f"{row['model']}, {schedulers}: {what}", value, unit, better, baseline)


def _of_model(row: Any) -> Iterator[tuple[str, float, str, Better]]:
    yield "rate", row["per_second"], "per s", "more"
    yield "p50", row["p50_ms"], "ms", "less"
    yield "processor", sum(row["cpu_us"].values()), "us", "less"
    yield "retries", row["retries"], "per request", "less"


PROGRAMS = {
    one.name: one
    for one in (
        Program("decide", ("--seconds", "1"), ("--seconds", "0.3", "--hosts", "1000"), _decide),
        Program(
            "constraints",
            ("--seconds", "0.5", "--most", "40"),
            ("--seconds", "0.1", "--most", "10", "--hosts", "1000"),
            _constraints,
        ),
        Program(
            "throughput",
            ("--hosts", "1000", "--seconds", "2"),
            ("--hosts", "200", "--seconds", "0.5", "--raw", "2000", "--workers", "1"),
            _throughput,
        ),
        Program("script_cost", (), ("--calls", "64", "--hosts", "50"), _script_cost, needs="valgrind"),
        Program("models", (), ("--quick",), _models, to_file=True),
        Program("loop_lag", ("--claims", "50000"), ("--claims", "5000", "--due", "500"), _loop_lag, optional=True),
    )
}
