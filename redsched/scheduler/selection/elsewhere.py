"""Cells that this scheduler does not mirror: try them for a request that no cell here can take.

Each is ruled out by its summary and the changes since, or its replica is loaded and decides. So no request is refused
before every cell has been asked.
"""

from collections.abc import AsyncGenerator, Collection
from random import Random

from redsched import aio
from redsched.cache.loaded import LoadedReplicas
from redsched.decide.summary import hosts_that_may_fit, ruled_out_by
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.mirroring.ruling_out import rule_out
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.references import refuse_undeclared, undeclared

AGAIN_AFTER_S = 5.0
"""How long a request that waits for room does not try other cells again: each try may load several."""
UNKNOWN_HOSTS = 0.5
"""The rank of a cell without a known summary, between those where some hosts may fit and those where none does."""


class Elsewhere:
    """The other cells of one scheduler, for its selections."""

    def __init__(self, cells: Cells, replicas: LoadedReplicas, rng: Random) -> None:
        self._cells = cells
        self._replicas = replicas
        self._rng = rng

    async def cells(self, attempt: SchedulingAttempt, decided: Collection[Cell]) -> AsyncGenerator[Cell, None]:
        """Yield the cells beside the `decided` ones that may take the request, best first, with their replicas loaded.

        A replica is kept until the next one is requested. Close the iterator. `attempt.refusals` has the reasons
        of the cells that were ruled out without their replicas. Raises NotFound, Settling, Unavailable.
        """
        attempt.looked_elsewhere_s = aio.now_s()
        tried = set(decided)
        while cell := await self._next(attempt, tried):
            tried.add(cell)
            async with self._replicas.using(cell.updater):
                await self._require_declared(attempt, cell)
                yield cell

    async def load(self, attempt: SchedulingAttempt, cell: Cell) -> None:
        """Load the replica of the only cell that can take the request. Raises NotFound, Settling, Unavailable."""
        async with self._replicas.using(cell.updater):
            await self._require_declared(attempt, cell)
            self.hold(attempt, cell)

    def hold(self, attempt: SchedulingAttempt, cell: Cell) -> None:
        """Keep a cell's replica until `let_go`, instead of the one held for the attempt before."""
        self._replicas.hold(cell.updater)
        self.let_go(attempt)
        attempt.held = cell

    def let_go(self, attempt: SchedulingAttempt) -> None:
        """Let the replica be dropped that is held for an attempt."""
        if attempt.held is not None:
            self._replicas.let_go(attempt.held.updater)
            attempt.held = None

    def may_fit(self, attempt: SchedulingAttempt) -> bool:
        """Return whether it is worth trying the other cells again, from what is known without reading anything."""
        only = attempt.home or attempt.pinned
        if aio.now_s() - attempt.looked_elsewhere_s < AGAIN_AFTER_S:
            return False
        return any(self._rank(attempt, cell) > 0 for cell in self._cells.elsewhere if only in (None, cell))

    async def _next(self, attempt: SchedulingAttempt, tried: set[Cell]) -> Cell | None:
        """Return the best cell that is not ruled out."""
        left = [cell for cell in self._cells if cell not in tried and cell.name not in attempt.full_cells]
        for cell in sorted(left, key=lambda one: self._rank(attempt, one), reverse=True):
            tried.add(cell)
            found = await rule_out(cell, attempt.resolved)
            if found is None:
                return cell
            attempt.refusals[cell.name] = found
        return None

    def _rank(self, attempt: SchedulingAttempt, cell: Cell) -> float:
        """Return about how many hosts of a cell may fit, blurred, so that schedulers choose different cells."""
        if cell.summary is None:
            return UNKNOWN_HOSTS
        if ruled_out_by([cell.summary], attempt.resolved):
            return 0.0
        return hosts_that_may_fit(cell.summary, attempt.resolved) * self._rng.uniform(0.5, 1.0)

    async def _require_declared(self, attempt: SchedulingAttempt, cell: Cell) -> None:
        if what := undeclared(attempt.resolved, [cell]):
            await refuse_undeclared(what, self._cells)
