"""Every metric of redsched, and nothing else.

Metrics of all workers are summed by prometheus-client's multiprocess mode: the supervisor sets
PROMETHEUS_MULTIPROC_DIR for its workers, and the worker that serves /metrics reads the files of all.
"""

import asyncio
import os
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Sequence
from typing import Literal

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector

from redsched.scheduler import Effort, Stats

_MICROSECONDS = (25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 50e-3, 250e-3)
_MILLISECONDS = (0.25e-3, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3, 0.25, 1.0, 5.0)


def share() -> None:
    """Keep the metrics that this process creates from now on in files, which the other workers read.

    prometheus-client chooses between memory and files when it is imported, which is before a worker is forked.
    """
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one scheduler that an application serves."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self.selections = self._counter(
            "selections", "Selections by outcome: claimed, same, dry-run or the problem's name.", ["outcome"]
        )
        self.claim_calls = self._counter("claim_calls", "Calls of the claim script.")
        self.retries = self._counter("retries", "Retries of selections whose candidates had all been taken.")
        self.decision_seconds = self._histogram(
            "decision_seconds", "Time to filter, weigh and pick for one selection, in memory.", _MICROSECONDS
        )
        self.selection_seconds = self._histogram(
            "selection_seconds",
            "Time of one selection from request to response, including the store.",
            _MILLISECONDS,
        )
        self.feed_entries = self._counter("feed_entries", "Entries of the feed applied to the caches.")
        self.snapshots = self._counter(
            "snapshots", "Snapshots read: one for each cell at start, then one for each gap in the feed."
        )
        self.cache_lag = self._gauge("cache_lag_seconds", "Age of the replica of the worker that is furthest behind.")
        self.hosts = self._gauge("hosts", "Known hosts.")
        self.hosts_alive = self._gauge("hosts_alive", "Hosts with a valid lease.")
        self.hosts_attested = self._gauge("hosts_attested", "Hosts that have attested to the current epoch.")
        self.workers_ready = self._gauge("workers_ready", "Workers whose cache has caught up.", "livesum")
        self._entries = 0
        self._snapshots = 0
        self._efforts: list[Effort] = []

    def observe(self, effort: Effort) -> None:
        """Count one selection, together with those that end in the same turn of the event loop.

        The metrics are in files: writing those of one selection takes as long as reading its body.
        """
        self._efforts.append(effort)
        if len(self._efforts) == 1:
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        efforts, self._efforts = self._efforts, []
        for outcome, count in Counts(one.outcome for one in efforts).items():
            self.selections.labels(outcome).inc(count)
        self.claim_calls.inc(sum(one.calls for one in efforts))
        self.retries.inc(sum(one.retries for one in efforts))
        _observe_all(self.decision_seconds, [one.decide_s for one in efforts])
        _observe_all(self.selection_seconds, [one.seconds for one in efforts])

    def sample(self, stats: Stats, ready: bool) -> None:
        """Copy a scheduler's current totals into counters and gauges."""
        self.feed_entries.inc(stats.entries - self._entries)
        self.snapshots.inc(stats.snapshots - self._snapshots)
        self._entries, self._snapshots = stats.entries, stats.snapshots
        self.cache_lag.set(stats.lag_s)
        self.hosts.set(stats.hosts)
        self.hosts_alive.set(stats.hosts_alive)
        self.hosts_attested.set(stats.hosts_attested)
        self.workers_ready.set(ready)

    def exposition(self) -> tuple[bytes, str]:
        """Return all metrics of all workers in Prometheus' text format, and its media type."""
        registry = self._registry
        if _is_shared():
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def _counter(self, name: str, about: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(f"redsched_{name}", about, labels, registry=self._registry)

    def _gauge(self, name: str, about: str, mode: Literal["livemax", "livesum"] = "livemax") -> Gauge:
        return Gauge(f"redsched_{name}", about, registry=self._registry, multiprocess_mode=mode)

    def _histogram(self, name: str, about: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"redsched_{name}", about, registry=self._registry, buckets=buckets)


def _observe_all(histogram: Histogram, values: Sequence[float]) -> None:
    """Do what `observe` does for each value, with one write for each bucket. prometheus-client has no call for this."""
    for bucket, count in Counts(bisect_left(histogram._upper_bounds, value) for value in values).items():
        histogram._buckets[bucket].inc(count)
    histogram._sum.inc(sum(values))


def _is_shared() -> bool:
    return "PROMETHEUS_MULTIPROC_DIR" in os.environ
