"""The figures of a run."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.models.checks import differences, over_commitments, wrong_refusals
from benchmarks.models.rpc import Message
from benchmarks.models.scheduling import Record
from benchmarks.models.work import Setup


@dataclass(slots=True)
class Row:
    """One run. Latencies are of all decisions, refusals too; `on_host` only of what was placed.

    `retries` and `lost` are per request. `cpu_us` is the processor time of each role for one decision.
    """

    model: str
    schedulers: int
    hosts: int
    requests: int
    decided: int
    placed: int
    seconds: float
    per_second: float
    p50_ms: float
    p99_ms: float
    on_host_p50_ms: float
    retries: float
    lost: float
    wrong_refusals: int
    over_commitments: int
    cpu_us: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def make_row(setup: Setup, records: Sequence[Record], books: Message, cpu_s: dict[str, float]) -> Row:
    """Build a row, with everything that the checks find."""
    count = len(records)
    seconds = max(record.ended for record in records) - min(record.began for record in records)
    latencies = [record.ended - record.began for record in records]
    on_host = [record.on_host - record.began for record in records if record.host]
    over = over_commitments(setup, records, books)
    return Row(
        setup.model,
        setup.schedulers,
        len(setup.hosts),
        len(setup.asks),
        count,
        sum(bool(record.host) for record in records),
        seconds,
        count / seconds,
        statistics.median(latencies) * 1e3,
        percentile(latencies, 99) * 1e3,
        statistics.median(on_host or [0.0]) * 1e3,
        sum(record.retries for record in records) / count,
        sum(record.lost for record in records) / count,
        len(wrong_refusals(setup, records)),
        len(over),
        {role: spent / count * 1e6 for role, spent in cpu_s.items()},
        over + differences(setup, records, books),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile."""
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
