"""Shared parts of the throughput benchmark: a fleet that never fills, the requests, and the figures of one run.

The hosts report once and no agent takes up their claims, so that only selections are measured.
"""

import asyncio
import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psutil

from redsched.agent.collectors.fleet import simulated
from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler

HELD_S = 3600
"""Leases of hosts and claims: none may expire during a measurement."""

ROOMY = {"VCPU": Inventory(10**7), "MEMORY_MB": Inventory(10**10), "DISK_GB": Inventory(10**8)}
AMOUNTS = ({"VCPU": 1, "MEMORY_MB": 1024}, {"VCPU": 2, "MEMORY_MB": 4096}, {"VCPU": 4, "MEMORY_MB": 8192}, {"VCPU": 8})
"""Four shapes of request, used in turn."""

AT_ONCE = 100


@dataclass(slots=True)
class Measured:
    """One row. `cpu_us`: processor time of each role for one claim, in microseconds. `is_claimed`: its work claims."""

    hosts: int
    work: str
    claims: int
    seconds: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu_us: dict[str, float] = field(default_factory=dict)
    is_claimed: bool = True

    @property
    def per_second(self) -> float:
        """Claims over the whole run."""
        return self.claims / self.seconds


def measured(
    hosts: int, work: str, latencies_s: Sequence[float], seconds: float, cpu_s: dict[str, float], each: int = 1
) -> Measured:
    """Build a row from the durations of calls that each make `each` claims."""
    count = len(latencies_s) * each
    cuts = statistics.quantiles(latencies_s, n=100, method="inclusive")
    cpu_us = {role: spent / count * 1e6 for role, spent in cpu_s.items()}
    return Measured(hosts, work, count, seconds, cuts[49] * 1e3, cuts[98] * 1e3, cpu_us)


def requests(project: str = "") -> Iterator[Request]:
    """Yield requests without end, each for one place."""
    return (Request(amounts, lease_s=HELD_S, project=project) for amounts in itertools.cycle(AMOUNTS))


def cpu_of(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def report_fleet(scheduler: Scheduler, count: int) -> None:
    """Report `count` large hosts."""
    hosts = [HostReport(one.name, ROOMY, zone=one.zone, lease_s=HELD_S) for one in simulated(count)]
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(scheduler.hosts.report(host) for host in hosts[first : first + AT_ONCE]))
