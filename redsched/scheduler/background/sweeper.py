"""The periodic work of a scheduler on a cell, each second.

It ticks the store's clock, ends claims whose lease has run out, marks hosts whose lease has lapsed, repeats releases
that a new epoch may have lost, and runs further duties: reconciliation, and hosts that are to be emptied. Every
scheduler does it for every cell; none has to. The scripts check the time themselves, so two sweepers at once do no
harm, and a jitter keeps them apart.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import structlog

from redsched import aio
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.pacing import Spread, paced
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by

BATCH = 100
SCORE_SLACK_MS = 2000
"""Leases that ended while the last sweep ran are looked at once more."""

STUCK_S = 5.0
"""How long claims that could not be ended are not tried again: every request that is refused would send them all."""

log = structlog.get_logger(__name__)


@contextmanager
def _not_the_callers() -> Iterator[None]:
    """A sweep in the middle of a request: that its outcome is unknown says nothing about the request's own."""
    try:
        yield
    except OutcomeUnknown as error:
        raise StoreUnavailable(error.detail) from error


class Sweeper:
    """The sweeper of one cell."""

    def __init__(self, cell: CellStore, mirror: ReplicaUpdater, released: ReleaseLog, settings: Settings) -> None:
        self._cell = cell
        self._mirror = mirror
        self._released = released
        self._settings = settings
        self._swept_until_ms = 0
        self._stuck = Spread[tuple[float, dict[str, int | None]]]()
        """Due claims that nothing could be done about a moment ago: when, and the versions that their hosts had."""
        self.duties: list[Callable[[], Awaitable[object]]] = []
        """What else is due each second. One that fails does not keep the others from theirs."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin sweeping every `tick_s`."""
        sweeping = repeat(self.sweep, self._settings.tick_s, log.bind(cell=self._cell.name), "sweep")
        self._task = asyncio.create_task(sweeping, name=f"redsched-sweeper-{self._cell.name}")

    async def stop(self) -> None:
        """End the task."""
        await aio.end(self._task)

    async def sweep(self) -> None:
        """One round. Raises StoreUnavailable, OutcomeUnknown."""
        clock = await self._cell.tick()
        await self.expire_due()
        await self._mark_lapsed(clock.now_ms)
        replay_releases: Callable[[], Awaitable[object]] = partial(self._released.replay_releases, clock.epoch)
        for duty in (replay_releases, *self.duties):
            try:
                await duty()
            except RedschedError as error:
                log.warning("sweep", cell=self._cell.name, problem=error.detail)

    async def expire_due(self) -> int:
        """End the claims whose deadline has passed, in batches; the number ended or being ended. Raises Unavailable."""
        with _not_the_callers():
            return await self._expire_due()

    async def mark_down(self, hosts: Sequence[str]) -> None:
        """Mark those of the hosts whose lease has lapsed. Raises Unavailable."""
        with _not_the_callers():
            await self._cell.hosts.mark_down(hosts)

    async def _expire_due(self) -> int:
        changed = offset = 0
        now_s, version = aio.now_s(), self._mirror.columns.version
        await self._forget_stuck(now_s)
        while due := await self._cell.due.expired(self._mirror.now_ms(), offset, BATCH):
            fresh = [one for one in due if one not in self._stuck]
            claims = await self._cell.claims.read(fresh) if fresh else {}
            objects = {name for claim in claims.values() for name in counted_by(claim)}
            done = await self._cell.claims.reconcile(fresh, objects) if fresh else 0
            changed += done
            # Those that nothing could be done about (their host has not attested) stay in front: step over them.
            offset += len(due) - done
            if done < len(fresh):
                for claim in claims.values():
                    self._stuck[claim.id] = (now_s, {host: version(host) for host in claim.hosts})
            if len(due) < BATCH:
                break
        return changed

    async def _forget_stuck(self, now_s: float) -> None:
        """Try again what was stuck for a while, or of which a host has changed: it has attested, or was written off."""
        version = self._mirror.columns.version
        async for one in paced(self._stuck):
            at_s, seen = self._stuck.get(one, (0.0, {}))
            if now_s - at_s >= STUCK_S or any(version(host) != was for host, was in seen.items()):
                self._stuck.pop(one, None)

    async def _mark_lapsed(self, now_ms: int) -> None:
        """Look at each lapsed lease once: a host that is down stays in the list for as long as it is known."""
        offset = 0
        # The store's time may have gone back, with another epoch: then there is more to look at again.
        since_ms = min(self._swept_until_ms, max(0, now_ms - SCORE_SLACK_MS))
        while lapsed := await self._cell.hosts.lapsed(since_ms, now_ms, offset, BATCH):
            await self._cell.hosts.mark_down(lapsed)
            offset += len(lapsed)
            if len(lapsed) < BATCH:
                break
        self._swept_until_ms = max(0, now_ms - SCORE_SLACK_MS)
