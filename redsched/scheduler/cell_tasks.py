"""The background tasks of a scheduler for one cell."""

from dataclasses import dataclass

from redsched.cache.updater import ReplicaUpdater
from redsched.model.workload import GPU_SHARES
from redsched.operate.maintenance import Maintenance
from redsched.scheduler.background.delays import Delays
from redsched.scheduler.background.reconciler import PlaceAgain, Reconciler
from redsched.scheduler.background.sweeper import Sweeper
from redsched.scheduler.background.workload import WorkloadCounter
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.hosts.drain import DrainWorker
from redsched.scheduler.hosts.fencing import Fencer
from redsched.scheduler.selection.confirmations import ConfirmationWaiter
from redsched.settings import Settings


@dataclass(frozen=True, slots=True)
class CellTasks:
    """The tasks of one cell. `confirmations` and `reconciler` also work for a scheduler that was opened on demand."""

    updater: ReplicaUpdater
    reconciler: Reconciler
    confirmations: ConfirmationWaiter
    sweeper: Sweeper
    maintenance: Maintenance
    workload: WorkloadCounter
    drain: DrainWorker
    delays: Delays
    fencer: Fencer

    async def start(self) -> None:
        """Load the cell's replica, then sweep and maintain the cell.

        Raises StoreUnavailable, and InvalidRequest if there is a fence command that cannot be run.
        """
        await self.updater.start()
        self.fencer.start()
        self.sweeper.start()
        self.maintenance.start()
        self.workload.start()

    async def end(self) -> None:
        """Stop what `start` started, but for following the cell."""
        await self.fencer.stop()
        await self.workload.stop()
        await self.maintenance.stop()
        await self.sweeper.stop()

    async def close(self) -> None:
        """Stop following the cell for good."""
        await self.confirmations.stop()
        await self.reconciler.stop()
        await self.updater.stop()


def build_tasks(cell: Cell, cells: Cells, settings: Settings, place_again: PlaceAgain, drain: DrainWorker) -> CellTasks:
    """Build the background work on a cell. `place_again` gives a pending claim its next placement."""
    reconciler = Reconciler(cell.store, cell.updater, place_again)
    confirmations = ConfirmationWaiter(cell.store, cell.updater, on_pending=reconciler.begin)
    cell.updater.add_listener(confirmations)
    delays = Delays(cell.store, cell.updater)
    rounds = (reconciler.run_once, drain.run_once, delays.read, cell.updater.report_missing)
    return CellTasks(
        cell.updater,
        reconciler,
        confirmations,
        Sweeper(cell, rounds, settings.tick_s),
        Maintenance(cell, cells, settings),
        WorkloadCounter(cell.store, cell.updater, {GPU_SHARES: settings.gpu_beside, **settings.scarce}),
        drain,
        delays,
        Fencer(cell, settings),
    )
