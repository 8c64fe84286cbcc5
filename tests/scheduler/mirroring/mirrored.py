"""What the tests of mirroring share: settings, summaries, and what a scheduler has loaded."""

from redsched.cache.summarize import Summarizing
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.settings import Settings
from redsched.store.codec.summary import CellSummary

BOTH = ("a", "b")


def settings_of(cells: tuple[str, ...], mirrored: str, loaded: int = 1) -> Settings:
    return Settings(cells=cells, mirror_cells=mirrored, loaded_cells=loaded, pick_from=1, policy="pack")


def cell_of(scheduler: Scheduler, name: str) -> Cell:
    return scheduler._cells.named(name)


async def summary_of(scheduler: Scheduler, name: str) -> CellSummary:
    """Return the summary of a cell's replica, once it has caught up."""
    updater = cell_of(scheduler, name).updater
    await updater.catch_up()
    making = Summarizing(updater.columns)
    for _ in making.steps():
        pass
    return making.summary(updater.epoch, updater.seq, updater.entry_id)


async def summarize(scheduler: Scheduler, *names: str) -> None:
    """Write the summaries of these cells, or of all, as they are now."""
    for cell in scheduler._cells:
        if not names or cell.name in names:
            await cell.store.summary.write(await summary_of(scheduler, cell.name))


async def stop_writing(scheduler: Scheduler) -> None:
    """Have a scheduler write no summaries any longer."""
    for tasks in scheduler._tasks.values():
        await tasks.summaries.stop()


def loads(scheduler: Scheduler) -> int:
    """Return how often a scheduler has loaded a replica on demand."""
    return scheduler._replicas.loads


def has_replica(scheduler: Scheduler) -> list[str]:
    return [cell.name for cell in scheduler._cells if cell.updater.is_started]


async def place(scheduler: Scheduler, vcpu: int, **more: object) -> str:
    """Claim some VCPU, and return the name of the host."""
    found = await scheduler.select(Request({"VCPU": vcpu}, **more))  # type: ignore[arg-type]
    return found.selections[0].host
