"""The periodic work of a scheduler on a cell, each second.

It ticks the store's clock, ends claims and reservations whose lease has expired, marks hosts down whose lease has
lapsed, replays releases that a new epoch may have lost, and runs further duties: reconciliation, drains and
evacuations, and after a wipe the report of missing hosts. Every scheduler sweeps every cell, so the loss of one does
not matter. The scripts check the time themselves, so concurrent sweepers do no harm; jitter keeps them apart.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from redsched import aio, logs
from redsched.errors import RedschedError
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.cells import Cell

BATCH = 100
SCORE_SLACK_MS = 2000
"""Overlap between sweeps: leases that ended while the last sweep ran are checked again."""

Duty = Callable[[], Awaitable[object]]

log = logs.get_logger(__name__)


class Sweeper:
    """Sweeps one cell. Each sweep runs the `duties`; if one fails, the others still run."""

    def __init__(self, cell: Cell, duties: Sequence[Duty], tick_s: float) -> None:
        self._cell = cell
        self._duties = duties
        self._tick_s = tick_s
        self._swept_until_ms = 0
        self._epoch = ""
        """The epoch in which the times that lie too far ahead have been looked for."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start sweeping every `tick_s` seconds."""
        sweeping = repeat(self.sweep, self._tick_s, log.bind(cell=self._cell.name), "sweep")
        self._task = aio.detached(sweeping, name=f"redsched-sweeper-{self._cell.name}")

    async def stop(self) -> None:
        """Stop sweeping."""
        await aio.end(self._task)

    async def sweep(self) -> None:
        """Run one round. Raises StoreUnavailable, OutcomeUnknown."""
        clock = await self._cell.store.tick()
        if clock.epoch != self._epoch:
            await self._cell.expiry.correct_times(clock.now_ms)
            self._epoch = clock.epoch
        await self._cell.expiry.expire_due()
        await self._mark_lapsed(clock.now_ms)
        await self._cell.store.reservations.end_expired(clock.now_ms)
        replay_releases: Duty = partial(self._cell.released.replay_releases, clock.epoch)
        for duty in (replay_releases, *self._duties):
            try:
                await duty()
            except RedschedError as error:
                log.warning("sweep failed", cell=self._cell.name, problem=error.detail)

    async def _mark_lapsed(self, now_ms: int) -> None:
        """Mark hosts down whose lease has lapsed since the last sweep. The index keeps listing hosts that are down."""
        offset = 0
        # In a new epoch the store's time may be earlier than before: then more leases have to be checked again.
        since_ms = min(self._swept_until_ms, max(0, now_ms - SCORE_SLACK_MS))
        while lapsed := await self._cell.store.hosts.lapsed(since_ms, now_ms, offset, BATCH):
            await self._cell.expiry.mark_down(lapsed)
            offset += len(lapsed)
            if len(lapsed) < BATCH:
                break
        self._swept_until_ms = max(0, now_ms - SCORE_SLACK_MS)
