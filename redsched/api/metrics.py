"""Every metric of redsched, and nothing else.

Metrics of all workers are summed by prometheus-client's multiprocess mode: the supervisor sets
PROMETHEUS_MULTIPROC_DIR for its workers, and the worker that serves /metrics reads the files of all.
"""

import asyncio
import os
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

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
)
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector

from redsched.api.fleet_metrics import FleetMetrics, families
from redsched.scheduler.results import AUDITED, Effort, Fenced, Stats

if TYPE_CHECKING:
    from redsched.cache.fleet import FleetUsage

_MICROSECONDS = (25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 50e-3, 250e-3)
_CANDIDATES = (1, 2, 3, 4, 6, 8, 16, 32, 64)
_MILLISECONDS = (0.25e-3, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3, 0.25, 1.0, 5.0)
_REPAIRED = {True: "true", False: "false"}
MAX_REASONS = 100
"""The most reasons of refusals that a worker tells apart."""
OTHER = "other"
"""The reason of the refusals beyond these."""


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
        self._add_selection_metrics()
        self._add_cell_metrics()
        self._add_store_metrics()
        self._seen = Counts[Hashable]()
        self._reasons = set[str]()
        self._efforts: list[Effort] = []
        self._fleet: FleetMetrics | None = None

    def _add_selection_metrics(self) -> None:
        self.refusals = self._counter(
            "refusals", "Selections that no host fits, by the reason that rules out most hosts.", ["reason"]
        )
        self.claim_seconds = self._histogram(
            "claim_seconds", "Time of one call of the claim script, with waiting for others.", _MILLISECONDS
        )
        self.claim_conflicts = self._counter(
            "claim_conflicts", "Calls of the claim script in which a candidate no longer took what was decided."
        )
        self.candidates = self._histogram("candidates_used", "Hosts that one call looked at.", _CANDIDATES)
        self.waiting = self._gauge("requests_waiting", "Requests that wait for room.", "livesum")

    def _add_cell_metrics(self) -> None:
        self.feed_gaps = self._counter("feed_gaps", "Gaps in the feed: the next entries were trimmed already.")
        self.feed_lag = self._histogram(
            "feed_lag_seconds", "Age of the oldest change of each batch when a replica applies it.", _MILLISECONDS
        )
        self.leases_expired = self._counter(
            "leases_expired", "Leases that expired, of claims and of hosts, and that this process ended.", ["of"]
        )
        self.decisions_not_kept = self._counter(
            "decisions_not_kept", "Decisions that claims do not keep: writing them down had used up its share."
        )
        self.audits = self._counter("audits", "Checks of the store (cell), of ids, and of replicas.", ["cell", "scope"])
        self.findings = self._counter(
            "audit_findings", "Problems that checks found, by the violated invariant.", ["invariant", "repaired"]
        )
        self.unmovable = self._gauge("claims_unmovable", "Claims on drained hosts that lately had no other place.")
        self.fencing = self._counter("fencing", "Attempts to fence a host, by outcome.", ["outcome"])
        self.fencing_held = self._gauge("fencing_held", "Hosts that should be fenced while the limits forbid it.")
        self.agent_delay = self._gauge(
            "agent_lag_seconds", "Time since the last heartbeat of the live host whose lease ends next."
        )
        self.agent_delay_part = self._gauge("agent_lag_ratio", "That time as a part of the host's lease.")
        self.expiry_delay = self._gauge("expiry_overdue_seconds", "Time since the oldest deadline not yet handled.")
        self.reconcile_delay = self._gauge(
            "reconcile_overdue_seconds", "Time since the oldest reconciliation that is due was due."
        )

        # From the start: an increase from nothing to 1 is none to Prometheus.
        for outcome in Fenced:
            self.fencing.labels(outcome)
        for invariant in AUDITED:
            for repaired in _REPAIRED.values():
                self.findings.labels(str(invariant), repaired)

    def _add_store_metrics(self) -> None:
        self.store_seconds = self._histogram(
            "store_latency_seconds", "Time of a small read of the store, made every second.", _MILLISECONDS
        )
        self.store_failures = self._counter("store_failures", "Failed reads among these.")
        self.store_memory = self._gauge("store_memory_bytes", "Memory used by the fullest primary.")
        self.store_memory_limit = self._gauge("store_memory_limit_bytes", "Its maxmemory; 0: no limit.")

    @property
    def names(self) -> frozenset[str]:
        """The names of all metrics, as in the exposition, without the suffixes of histograms' series."""
        own = {
            one.name: one
            for wrapped in vars(self).values()
            if isinstance(wrapped, MetricWrapperBase)
            for one in wrapped.describe()
        }
        counters = {f"{name}_total" for name, one in own.items() if one.type == "counter"}
        others = {name for name, one in own.items() if one.type != "counter"}
        return frozenset(counters | others | {one.name for one in families({})})

    def serve_fleet(self, fleet: "Callable[[], Awaitable[Mapping[str, FleetUsage]]]") -> None:
        """Serve what `fleet` returns, the usage of each cell."""
        self._fleet = FleetMetrics(fleet)

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
        for reason, count in Counts(one.reason for one in efforts if one.reason).items():
            self.refusals.labels(self._bounded(reason)).inc(count)
        calls = [call for one in efforts for call in one.claims]
        if conflicts := sum(one.conflicted for one in calls):
            self.claim_conflicts.inc(conflicts)
        _observe_all(self.claim_seconds, [one.seconds for one in calls])
        _observe_all(self.candidates, [one.candidates for one in calls])

    def _bounded(self, reason: str) -> str:
        """Return the label of a reason. Own filters may give any, but there must not be ever more labels."""
        if reason not in self._reasons:
            if len(self._reasons) >= MAX_REASONS:
                return OTHER
            self._reasons.add(reason)
        return reason

    def sample(self, stats: Stats, ready: bool) -> None:
        """Copy a scheduler's current totals into counters and gauges. Call it after each look at the store."""
        self._count("entries", stats.entries, self.feed_entries)
        self._count("snapshots", stats.snapshots, self.snapshots)
        self._count("gaps", stats.gaps, self.feed_gaps)
        self._count("claims", stats.claims_expired, self.leases_expired.labels("claim"))
        self._count("hosts", stats.hosts_down, self.leases_expired.labels("host"))
        self._count("decisions_not_kept", stats.decisions_not_kept, self.decisions_not_kept)
        for audited, total in stats.audits.items():
            self._count(audited, total, self.audits.labels(*audited))
        for one, total in stats.findings.items():
            self._count(one, total, self.findings.labels(str(one.invariant), _REPAIRED[one.repaired]))
        self.cache_lag.set(stats.lag_s)
        self.hosts.set(stats.hosts)
        self.hosts_alive.set(stats.hosts_alive)
        self.hosts_attested.set(stats.hosts_attested)
        self.workers_ready.set(ready)
        self.waiting.set(stats.waiting)
        self.unmovable.set(stats.unmovable)
        for outcome, total in stats.fenced.items():
            self._count(("fencing", outcome), total, self.fencing.labels(outcome))
        self.fencing_held.set(stats.fencing_held)
        self.agent_delay.set(stats.agent_delay_s)
        self.agent_delay_part.set(stats.agent_delay_part)
        self.expiry_delay.set(stats.expiry_delay_s)
        self.reconcile_delay.set(stats.reconcile_delay_s)
        self.store_memory.set(stats.store_memory_bytes)
        self.store_memory_limit.set(stats.store_memory_limit_bytes)
        self.store_failures.inc(stats.store_s is None)
        if stats.store_s is not None:
            self.store_seconds.observe(stats.store_s)

    def _count(self, key: Hashable, total: int, counter: Counter) -> None:
        """Add what a total has grown by since the last sample."""
        counter.inc(total - self._seen[key])
        self._seen[key] = total

    async def exposition(self) -> tuple[bytes, str]:
        """Return all metrics of all workers in Prometheus' text format, and its media type.

        The figures of the fleet are this worker's alone: every worker has the same.
        """
        registry = self._registry
        if _is_shared():
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        fleet = b"" if self._fleet is None else await self._fleet.text()
        return generate_latest(registry) + fleet, CONTENT_TYPE_LATEST

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
