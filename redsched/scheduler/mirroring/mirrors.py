"""Which cells a scheduler mirrors, and what it does about the others.

A scheduler does all background work of the cells that it mirrors. Of the others it reads summaries and clocks. A cell
whose summary is missing is mirrored by no scheduler: one of them adopts it, by the lease to write its summary, and
gives it up once another one is found that mirrors it.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress

from redsched import aio
from redsched.cache.loaded import LoadedReplicas
from redsched.errors import RedschedError
from redsched.logs import get_logger
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.mirroring.cell_tasks import CellTasks
from redsched.store.codec.results import Clock
from redsched.store.codec.summary import CellSummary

EVERY_S = 1.0
MAX_AGE_MS = 10_000
"""The age from which a summary says nothing: its writer writes every few seconds."""
ADOPT_AFTER_S = 10.0
"""How long a cell has no summary before it is adopted: others may be loading it."""
ADOPTED_FOR_S = 60.0
"""How long a cell stays adopted before it is found out whether another scheduler mirrors it."""
PAUSE_S = 4.0
"""How long others have to take over an adopted cell."""

log = get_logger(__name__)


class Mirrors:
    """The cells that one scheduler mirrors."""

    def __init__(
        self, cells: Cells, tasks: Mapping[str, CellTasks], replicas: LoadedReplicas, wanted: Sequence[str] | int
    ) -> None:
        """Take the names of the cells to mirror, or their number."""
        self._cells, self._tasks, self._replicas, self._wanted = cells, tasks, replicas, wanted
        self._missing_since_s: dict[str, float] = {}
        """By cell: since when it has had no summary."""
        self._adopted: dict[Cell, float] = {}
        """The adopted cells, each with the time at which it is given up unless nobody takes it over."""
        self._watching: asyncio.Task[None] | None = None
        self._loading = aio.BackgroundTasks("redsched-load-cells")

    async def start(self) -> None:
        """Mirror the wanted cells, and watch the others. Raises StoreUnavailable, OutcomeUnknown."""
        names = await self._choose(self._wanted) if isinstance(self._wanted, int) else self._wanted
        for cell in self._cells:
            self._cells.mirror(cell, cell.name in names)
        mirrored = self._cells.here
        for cell in mirrored if len(self._cells) > 1 else ():
            self._tasks[cell.name].summaries.start()  # also while the replica is loading, as a sign for the others
        for cell in mirrored:
            await cell.updater.start()
            self._tasks[cell.name].start()
        if self._cells.elsewhere:
            await self.watch()
            watching = repeat(self.watch, EVERY_S, log, "watch-cells", first_s=EVERY_S)
            self._watching = aio.detached(watching, name="redsched-watch-cells")

    async def stop(self) -> None:
        """Stop watching the other cells, and the work on all of them."""
        await aio.end(self._watching)
        await self._loading.stop(0)
        for tasks in self._tasks.values():
            await tasks.end()
        for tasks in self._tasks.values():
            await tasks.close()

    async def _choose(self, number: int) -> list[str]:
        """Return so many cells: those that no other scheduler mirrors first, the rest at random."""
        names = [cell.name for cell in self._cells]
        if number == len(names):
            return names
        random.shuffle(names)
        free = list[str]()
        for name in names:
            if len(free) < number and await self._tasks[name].summaries.take_over():
                free.append(name)
        return [*free, *(name for name in names if name not in free)][:number]

    async def watch(self) -> None:
        """Read the clocks and summaries of the cells that are not mirrored, and adopt those that nobody mirrors.

        Raises nothing for a cell that cannot be reached: its summary is unknown then.
        """
        await aio.gather(self._watch(cell) for cell in self._cells)
        for cell in self._cells.here:
            if not cell.is_mirrored and cell not in self._adopted:
                self._replicas.may_drop(cell.updater)  # also one that a read has started by itself
        await self._replicas.drop_idle()

    async def _watch(self, cell: Cell) -> None:
        try:
            if cell in self._adopted:
                await self._give_up_in_time(cell)
            elif not cell.is_mirrored:
                await self._look_at(cell)
        except RedschedError as error:
            cell.summary = None
            log.warning("watch-cells", cell=cell.name, problem=error.detail)

    async def _look_at(self, cell: Cell) -> None:
        clock, summary = await cell.store.summary.read()
        if clock is None:
            clock = await cell.store.tick()  # gives a new or wiped cell its epoch
        cell.updater.observe(clock)
        cell.summary = summary if summary is not None and _is_fresh(summary, clock) else None
        await cell.released.replay_releases(clock.epoch)
        await self._adopt_if_alone(cell)

    async def _adopt_if_alone(self, cell: Cell) -> None:
        """Begin to mirror a cell that has had no summary for some time, if no other scheduler does."""
        if cell.summary is not None:
            self._missing_since_s.pop(cell.name, None)
            return
        now_s = aio.now_s()
        missing_s = now_s - self._missing_since_s.setdefault(cell.name, now_s)
        if missing_s >= ADOPT_AFTER_S and await self._tasks[cell.name].summaries.take_over():
            self._adopt(cell)

    def _adopt(self, cell: Cell) -> None:
        log.info("cell_adopted", cell=cell.name)
        self._adopted[cell] = aio.now_s() + ADOPTED_FOR_S
        self._tasks[cell.name].summaries.start()
        self._tasks[cell.name].start()
        self._loading.begin(self._load(cell))

    async def _load(self, cell: Cell) -> None:
        """Load an adopted cell. If that fails, the replica goes on trying."""
        with suppress(RedschedError):
            await cell.updater.start()
        self._mirror_if_loaded(cell)

    def _mirror_if_loaded(self, cell: Cell) -> None:
        """Let decisions use an adopted cell, once they need not wait for it."""
        if cell in self._adopted and cell.updater.is_loaded:
            self._replicas.never_drop(cell.updater)
            self._cells.mirror(cell, True)

    async def _give_up_in_time(self, cell: Cell) -> None:
        """Let others take an adopted cell over now and then; if one does, stop mirroring it."""
        self._mirror_if_loaded(cell)
        now_s, writer = aio.now_s(), self._tasks[cell.name].summaries
        if now_s < self._adopted[cell]:
            return
        if not writer.is_pausing:
            await writer.pause()
            self._adopted[cell] = now_s + PAUSE_S
        elif await writer.take_over():
            writer.resume()
            self._adopted[cell] = now_s + ADOPTED_FOR_S
        else:
            await self._give_up(cell)

    async def _give_up(self, cell: Cell) -> None:
        log.info("cell_given_up", cell=cell.name)
        del self._adopted[cell]
        self._missing_since_s.pop(cell.name, None)
        self._cells.mirror(cell, False)
        self._replicas.may_drop(cell.updater)
        await self._tasks[cell.name].end()


def _is_fresh(summary: CellSummary, clock: Clock) -> bool:
    return clock.now_ms - summary.at_ms <= MAX_AGE_MS
