"""Maintenance of a cell: record events, and check the store for consistency.

One scheduler at a time does both. Every scheduler checks its own replica, and announces itself.
"""

import asyncio
import os
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import ceil

from redsched import aio, logs
from redsched.errors import RedschedError
from redsched.model.records.audit import AuditReport, Problem
from redsched.operate.audit.audit import repair_between, repair_cell, repair_replica, with_problems
from redsched.operate.observe.recorder import Recorder
from redsched.release import release
from redsched.scheduler.background.lease import GIVE_UP_S, DutyLease
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.results import Finding
from redsched.settings import Settings
from redsched.store.commands.status import ANNOUNCED_MS, Announcement, AuditNote

RECORD_LEASE_S = 5.0
"""The lease of the recording duty, or three ticks if those are longer: a dead recorder is replaced after that."""
ANNOUNCED_EVERY_S = ANNOUNCED_MS / 1000 / 6
"""How often a scheduler announces itself: several times before the store forgets it."""

log = logs.get_logger(__name__)


class Maintenance:
    """Maintenance of one cell. `cells` are all cells of the scheduler, for the audit of repeated claim ids."""

    def __init__(self, cell: Cell, cells: Cells, settings: Settings) -> None:
        self._cell, self._cells, self._settings = cell, cells, settings
        self._recorder = Recorder(cell.store, settings, cell.updater, cell.own)
        self._recording, self._checking = DutyLease(cell.store, "record"), DutyLease(cell.store, "check")
        self._announcer = Announcer(cell, max(1, ceil(settings.write_off_after_s)) if settings.fence else 0)
        self._tasks: list[asyncio.Task[None]] = []
        self.audits = Counter[str]()
        """How many checks were made, by AUDIT_SCOPES."""
        self.findings = Counter[Finding]()

    def start(self) -> None:
        """Start the tasks that the settings enable."""
        settings = self._settings
        self._begin(self._announcer.announce, ANNOUNCED_EVERY_S, first_s=0)
        if settings.events_keep_s:
            self._begin(self.record, settings.tick_s, settings.tick_s)
        if settings.check_s:
            self._begin(self.check, settings.check_s, settings.check_s)

    async def stop(self) -> None:
        """Stop the tasks, and release the recording duty."""
        tasks, self._tasks = self._tasks, []
        await aio.end_all(tasks)
        self._cell.own.keep(False)
        if tasks:
            await self._announcer.withdraw()
        if tasks and self._settings.events_keep_s:
            await self._recording.close(log, "maintenance failed")

    async def record(self) -> None:
        """Record new events if this scheduler holds the duty. Raises StoreUnavailable, OutcomeUnknown."""
        is_mine = await self._recording.is_mine(max(RECORD_LEASE_S, 3 * self._settings.tick_s))
        self._cell.own.keep(is_mine)
        if is_mine:
            await self._recorder.record()

    async def check(self) -> AuditReport:
        """Check and repair the replica, and the store if this scheduler holds the duty. Raises StoreUnavailable."""
        # The lease is shorter than the time to the next check, so that the first scheduler to try gets each check.
        if not await self._checking.is_mine(self._settings.check_s * 0.7):
            report = await repair_replica(self._cell)
            self._record("replica", report.problems)
            return report
        report = await repair_cell(self._cell, operator=False)
        self._record("cell", report.problems)
        await self._cell.store.status.note_audit(_note(report))
        # These come last: they are compared with other cells, which may be unavailable.
        shared = await repair_between(self._cell, self._cells)
        self._record("ids", shared)
        if shared:
            report = with_problems(report, shared)
            await self._cell.store.status.note_audit(_note(report))
        return report

    def _record(self, scope: str, problems: Sequence[Problem]) -> None:
        """Count a check and its findings, and log those that were not repaired."""
        self.audits[scope] += 1
        self.findings.update(Finding(one.invariant, one.repaired) for one in problems)
        for one in problems:
            if not one.repaired:
                log.error("broken", cell=one.cell, thing=one.thing, problem=one.detail, advice=one.advice)

    def _begin(self, work: Callable[[], Awaitable[object]], every_s: float, first_s: float) -> None:
        name = f"redsched-{work.__name__}-{self._cell.name}"
        working = repeat(work, every_s, log.bind(cell=self._cell.name), work.__name__, first_s=first_s)
        self._tasks.append(aio.detached(working, name=name))


def _note(report: AuditReport) -> AuditNote:
    """Return the note about a report that the store keeps."""
    broken, repaired = report.broken, len(report.problems) - len(report.broken)
    texts = tuple(f"{one.thing}: {one.detail}" for one in broken)
    return AuditNote(0, report.hosts, report.claims, len(broken), repaired, texts)


class Announcer:
    """Announces this scheduler in one cell, with its version and how far its replica is behind: `status` shows it."""

    def __init__(self, cell: Cell, fences_after_s: int = 0) -> None:
        """`fences_after_s`: how long a host must be down before this scheduler fences it; 0: it fences none."""
        self._cell, self._id, self._fences_after_s = cell, secrets.token_hex(8), fences_after_s

    async def announce(self) -> None:
        """Announce this scheduler once. Raises StoreUnavailable, OutcomeUnknown."""
        lag_ms = int((self._cell.updater.lag_s() or 0.0) * 1000)
        found = (release(), socket.gethostname(), os.getpid(), lag_ms, self._fences_after_s)
        await self._cell.store.status.announce(Announcement(self._id, 0, *found))

    async def withdraw(self) -> None:
        """Remove the announcement, if the store can be reached; otherwise it is forgotten in time. Raises nothing."""
        with suppress(RedschedError, TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                await self._cell.store.status.withdraw(self._id)
