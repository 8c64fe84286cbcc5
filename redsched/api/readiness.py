"""Readiness of the workers of one API: each checks itself, and any of them can answer for all.

They share their state through `redsched.serve.registry`.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from redsched.errors import Unavailable
from redsched.scheduler.results import Readiness, Stats
from redsched.serve.registry import WorkerRegistry

LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """The response of /readyz."""

    ready: bool
    detail: str
    hosts: int
    workers: int


class Sampled(Protocol):
    """The source of the samples: the scheduler."""

    def readiness(self) -> Awaitable[Readiness]: ...  # noqa: D102
    def stats(self) -> Stats: ...  # noqa: D102


class Look(Protocol):
    """The sink of the samples: the metrics."""

    def sample(self, stats: Stats, ready: bool) -> None: ...  # noqa: D102


class ReadinessMonitor:
    """Checks this worker's scheduler, passes the result to the other workers and the metrics, and answers for all."""

    def __init__(self, scheduler: Sampled, registry: WorkerRegistry, sampler: Look) -> None:
        self._scheduler, self._registry, self._sampler = scheduler, registry, sampler

    async def look(self) -> Standing:
        """Return whether all workers are ready, and if not, what is missing."""
        own = await self._own()
        missing = self._registry.missing()
        if not own.ready:
            return self._standing(False, own.detail, own.hosts)
        if missing:
            return self._standing(
                False, f"worker {missing[0]} of {self._registry.workers} has not caught up", own.hosts
            )
        if own.hosts < self._registry.hosts:
            return self._standing(False, f"{own.hosts} of {self._registry.hosts} hosts have reported", own.hosts)
        return self._standing(True, own.detail, own.hosts)

    async def keep(self, closing: asyncio.Event) -> None:
        """Check periodically until `closing` is set. Do not cancel it instead: redis-py can lose a cancellation."""
        while not closing.is_set():
            await self._own()
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), LOOK_EVERY_S)
        self._registry.mark(False)

    async def _own(self) -> Readiness:
        try:
            found = await self._scheduler.readiness()
        except Unavailable as error:
            found = Readiness(ready=False, detail=error.public, hosts=0)
        self._registry.mark(found.ready)
        self._sampler.sample(self._scheduler.stats(), found.ready)
        return found

    def _standing(self, ready: bool, detail: str, hosts: int) -> Standing:
        return Standing(ready, detail, hosts, self._registry.workers)
