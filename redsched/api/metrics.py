"""Every metric of redsched, and nothing else.

Metrics of all workers are summed by prometheus-client's multiprocess mode: the parent sets PROMETHEUS_MULTIPROC_DIR
before a worker imports this module, and the worker that serves /metrics reads the files of all. A single process uses
the default registry.
"""

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from redsched.scheduler import Effort, Stats

_MICROSECONDS = (25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 50e-3, 250e-3)
_MILLISECONDS = (0.25e-3, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3, 0.25, 1.0, 5.0)

SELECTIONS = Counter(
    "redsched_selections", "Selections by outcome: claimed, same, dry-run or the problem's name.", ["outcome"]
)
CLAIM_CALLS = Counter("redsched_claim_calls", "Calls of the claim script.")
RETRIES = Counter("redsched_retries", "Retries of selections whose candidates had all been taken.")
DECISION_SECONDS = Histogram(
    "redsched_decision_seconds", "Time to filter, weigh and pick for one selection, in memory.", buckets=_MICROSECONDS
)
SELECTION_SECONDS = Histogram(
    "redsched_selection_seconds",
    "Time of one selection from request to response, including the store.",
    buckets=_MILLISECONDS,
)
FEED_ENTRIES = Counter("redsched_feed_entries", "Entries of the feed applied to the caches.")
SNAPSHOTS = Counter(
    "redsched_snapshots", "Snapshots read: one for each cell at start, then one for each gap in the feed."
)
CACHE_LAG = Gauge(
    "redsched_cache_lag_seconds",
    "Age of the replica of the worker that is furthest behind.",
    multiprocess_mode="livemax",
)
HOSTS = Gauge("redsched_hosts", "Known hosts.", multiprocess_mode="livemax")
HOSTS_ALIVE = Gauge("redsched_hosts_alive", "Hosts with a valid lease.", multiprocess_mode="livemax")
HOSTS_ATTESTED = Gauge(
    "redsched_hosts_attested", "Hosts that have attested to the current epoch.", multiprocess_mode="livemax"
)
WORKERS_READY = Gauge("redsched_workers_ready", "Workers whose cache has caught up.", multiprocess_mode="livesum")


def observe(effort: Effort) -> None:
    """Record the metrics of one selection."""
    SELECTIONS.labels(effort.outcome).inc()
    CLAIM_CALLS.inc(effort.calls)
    RETRIES.inc(effort.retries)
    DECISION_SECONDS.observe(effort.decide_s)
    SELECTION_SECONDS.observe(effort.seconds)


class Sampler:
    """Copies a scheduler's running totals into counters and gauges."""

    def __init__(self) -> None:
        self._entries = 0
        self._snapshots = 0

    def sample(self, stats: Stats, ready: bool) -> None:
        """Update the metrics from the current `stats`."""
        FEED_ENTRIES.inc(stats.entries - self._entries)
        SNAPSHOTS.inc(stats.snapshots - self._snapshots)
        self._entries, self._snapshots = stats.entries, stats.snapshots
        CACHE_LAG.set(stats.lag_s)
        HOSTS.set(stats.hosts)
        HOSTS_ALIVE.set(stats.hosts_alive)
        HOSTS_ATTESTED.set(stats.hosts_attested)
        WORKERS_READY.set(ready)


def exposition() -> tuple[bytes, str]:
    """Return all metrics of all workers in Prometheus' text format, and its media type."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST
