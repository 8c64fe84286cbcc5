"""A run of the suite: its figures with the machine and the versions, as a file; and how two runs are compared."""

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import exp, log
from pathlib import Path
from statistics import mean
from typing import Any, Self

import psutil

from benchmarks.suite import Figure
from redsched.errors import StoreUnavailable
from redsched.store.embedded.server import pick_server

SCHEMA = 1
PACKAGES = ("redsched", "numpy", "redis", "hiredis", "uvloop", "uvicorn")
ROOT = Path(__file__).parents[1]


class ResultsError(Exception):
    """A file does not hold the results of a run."""


@dataclass(slots=True)
class Finished:
    """One program that ran. `error` is '' if it ended well."""

    name: str
    arguments: list[str]
    seconds: float
    error: str = ""


@dataclass(slots=True)
class Results:
    """One run of the suite. `rows` has each program's own JSON."""

    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str
    quick: bool
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    programs: list[Finished] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    rows: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def new(cls, quick: bool) -> Self:
        """Return results without figures yet."""
        return cls(machine(), versions(), commit(), quick)

    def write(self, path: Path) -> None:
        """Write them to a file, whose folder is created."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the results of an earlier run. Raises ResultsError."""
        try:
            fields = json.loads(path.read_text())
            if fields.pop("schema") != SCHEMA:
                raise ResultsError(f"{path} has another schema than {SCHEMA}: repeat that run with this version")
            fields["programs"] = [Finished(**one) for one in fields["programs"]]
            fields["figures"] = [Figure(**one) for one in fields["figures"]]
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(
                f"{path} does not hold the results of `python -m benchmarks`: {error}: name another file"
            ) from error


def machine() -> dict[str, Any]:
    """Return what results depend on: processor, cores, memory, and the load before the run."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def versions() -> dict[str, str]:
    """Return the versions of Python, the packages that matter, and the server that `up` would start."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    try:
        server = pick_server()
        found["server"] = f"{server.kind} {server.version}"
    except StoreUnavailable:
        pass
    return found


def commit() -> str:
    """Return the checkout's commit, with `+` if something is changed; '' without git."""
    try:
        head, status = (_git(*arguments) for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain")))
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.strip() + ("+" if status.strip() else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


def ratio(value: float, other: float, better: str) -> float | None:
    """Return how many times better a value is than another: above 1 is better. None if one of them is 0."""
    if not value or not other:
        return None
    return value / other if better == "more" else other / value


def with_ratios(figures: Sequence[Figure]) -> Iterator[tuple[Figure, float | None]]:
    """Yield every figure with its ratio to its baseline; None without one."""
    values = {(one.program, one.name): one.value for one in figures}
    for one in figures:
        other = values.get((one.program, one.baseline), 0.0)
        yield one, ratio(one.value, other, one.better) if one.baseline else None


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of two runs."""

    figure: Figure
    earlier: float
    ratio: float | None


def compare(now: Sequence[Figure], earlier: Sequence[Figure]) -> list[Compared]:
    """Return the figures that both runs have."""
    values: Mapping[tuple[str, str], float] = {(one.program, one.name): one.value for one in earlier}
    return [
        Compared(one, values[key], ratio(one.value, values[key], one.better))
        for one in now
        if (key := (one.program, one.name)) in values
    ]


def geometric_means(compared: Sequence[Compared]) -> dict[str, float]:
    """Return the mean ratio of each program."""
    programs = dict.fromkeys(one.figure.program for one in compared)
    ratios = {name: [one.ratio for one in compared if one.figure.program == name and one.ratio] for name in programs}
    return {name: exp(mean(map(log, some))) for name, some in ratios.items() if some}


def unlike(now: Results, earlier: Results) -> Iterator[str]:
    """Yield what makes two runs hard to compare."""
    for name in ("system", "processor", "cores"):
        if now.machine.get(name) != earlier.machine.get(name):
            yield f"{name}: {earlier.machine.get(name)} before, {now.machine.get(name)} now"
    for name in sorted(now.versions.keys() | earlier.versions.keys()):
        if name != "redsched" and now.versions.get(name) != earlier.versions.get(name):
            yield f"{name}: {earlier.versions.get(name)} before, {now.versions.get(name)} now"
    if now.quick != earlier.quick:
        yield "one of the runs is quick"
