"""Maintenance: what a scheduler does for its cells beside its requests: records events, and checks that all agrees.

Both are done by one scheduler at a time. What every one does for itself is to check its own replica.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from redsched import aio
from redsched.errors import RedschedError
from redsched.scheduler.audit.audit import repair_cell, repair_replica
from redsched.scheduler.background.lease import DutyLease
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.background.recorder import Recorder
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import AuditReport
from redsched.settings import Settings

RECORD_LEASE_S = 5.0
"""How long nobody records when the process that did is gone."""

GIVE_UP_S = 1.0
"""How long a scheduler that closes waits to hand the recording on; else its lease has to run out."""

log = structlog.get_logger(__name__)


class Maintenance:
    """The upkeep of one cell."""

    def __init__(self, cell: Cell, settings: Settings) -> None:
        self._cell, self._settings = cell, settings
        self._recorder = Recorder(cell.store, settings)
        self._recording, self._checking = DutyLease(cell.store, "record"), DutyLease(cell.store, "check")
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin what the settings want."""
        settings = self._settings
        if settings.events_keep_s:
            self._begin(self.record, settings.tick_s)
        if settings.check_s:
            self._begin(self.check, settings.check_s)

    async def stop(self) -> None:
        """End it, and leave the recording to others."""
        await aio.end_all(self._tasks)
        if self._tasks and self._settings.events_keep_s:
            try:
                async with asyncio.timeout(GIVE_UP_S):
                    await self._recording.give_up()
            except (RedschedError, TimeoutError) as error:
                log.info("upkeep", cell=self._cell.name, problem=str(error))

    async def record(self) -> None:
        """Record what has happened, if that is this scheduler's to do. Raises StoreUnavailable, OutcomeUnknown."""
        if await self._recording.is_mine(max(RECORD_LEASE_S, 3 * self._settings.tick_s)):
            await self._recorder.record()

    async def check(self) -> AuditReport:
        """Check the replica, and the store if that is this scheduler's to do, and repair. Raises StoreUnavailable."""
        # Kept for less than the time to the next check, so that each time it is whoever comes first.
        if await self._checking.is_mine(self._settings.check_s * 0.7):
            report = await repair_cell(self._cell, operator=False)
        else:
            report = await repair_replica(self._cell)
        for one in report.broken:
            log.error("broken", cell=one.cell, thing=one.thing, problem=one.detail, advice=one.advice)
        return report

    def _begin(self, work: Callable[[], Awaitable[object]], every_s: float) -> None:
        name = f"redsched-{work.__name__}-{self._cell.name}"
        working = repeat(work, every_s, log.bind(cell=self._cell.name), "upkeep", first_s=every_s)
        self._tasks.append(asyncio.create_task(working, name=name))
