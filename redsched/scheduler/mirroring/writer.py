"""Write the summary of a cell that this scheduler mirrors. One scheduler of the cell does it at a time."""

import asyncio

from redsched import aio
from redsched.cache.summarize import Summarizing
from redsched.cache.updater import ReplicaUpdater
from redsched.logs import get_logger
from redsched.pacing import in_slices
from redsched.scheduler.background.lease import DutyLease
from redsched.scheduler.background.periodic import repeat
from redsched.store.cell import CellStore

EVERY_S = 1.0
ANYWAY_AFTER_S = 3.0
"""How long a summary of a cell that does not change is left as it is."""
LEASE_S = 5.0
MAX_SHARE = 0.05
"""The largest part of a process's time that is spent on the summaries of one cell."""

log = get_logger(__name__)


class SummaryWriter:
    """Writes the summary of one cell, while this scheduler holds the lease for it."""

    def __init__(self, store: CellStore, replica: ReplicaUpdater) -> None:
        self._store, self._replica = store, replica
        self.lease = DutyLease(store, "summary")
        self._written = ("", 0)
        """The epoch and seq of the last summary."""
        self._again_at_s = self._anyway_at_s = 0.0
        self.is_pausing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to write summaries, once the replica is loaded."""
        if self._task is None:
            work = repeat(self.write, EVERY_S, log.bind(cell=self._store.name), "summary")
            self._task = aio.detached(work, name=f"redsched-summary-{self._store.name}")

    async def stop(self) -> None:
        """Stop, and let another scheduler write at once."""
        if self._task is None:
            return
        task, self._task = self._task, None
        await aio.end(task)
        await self.lease.close(log, "summary")

    async def take_over(self) -> bool:
        """Take or renew the lease; return whether this scheduler has it. Raises StoreUnavailable, OutcomeUnknown."""
        return await self.lease.is_mine(LEASE_S)

    async def pause(self) -> None:
        """Let any other scheduler take over, until `resume`. Raises StoreUnavailable, OutcomeUnknown."""
        self.is_pausing = True
        await self.lease.give_up()

    def resume(self) -> None:
        """Write again."""
        self.is_pausing = False

    async def write(self) -> None:
        """Write the summary if that is due and up to this scheduler. Raises StoreUnavailable, OutcomeUnknown."""
        now_s, replica = aio.now_s(), self._replica
        if self.is_pausing or not await self.take_over() or not replica.is_loaded:
            return
        is_new = self._written != (replica.epoch, replica.seq)
        if now_s < (self._again_at_s if is_new else self._anyway_at_s):
            return
        await self._write(now_s)

    async def _write(self, now_s: float) -> None:
        replica = self._replica
        columns, position = replica.columns, (replica.epoch, replica.seq, replica.entry_id)
        making = Summarizing(columns)
        await in_slices(making.steps())
        spent_s = aio.now_s() - now_s
        if replica.columns is columns:
            await self._store.summary.write(making.summary(*position))
            self._written = position[:2]
        self._again_at_s = now_s + spent_s / MAX_SHARE
        self._anyway_at_s = max(self._again_at_s, now_s + ANYWAY_AFTER_S)
