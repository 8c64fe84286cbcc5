"""Route a request to a cell: the one to which its ids are bound or its server group is pinned, else the best one."""

from contextlib import aclosing
from functools import partial
from random import Random

from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.claim_ids import ClaimIds
from redsched.scheduler.selection.elsewhere import Elsewhere
from redsched.scheduler.selection.group_cells import GroupCells
from redsched.scheduler.selection.steps import Proposal


class CellRouter:
    """Routes requests to cells, and binds them before they are claimed. With a single cell there is nothing to bind."""

    def __init__(self, cells: Cells, ids: ClaimIds, elsewhere: Elsewhere, rng: Random) -> None:
        self._cells = cells
        self._ids = ids
        self._elsewhere = elsewhere
        self._groups = GroupCells(cells)
        self._rng = rng
        self._only = list(cells) if len(cells) == 1 else None

    async def find_home(self, attempt: SchedulingAttempt) -> None:
        """Find the cell to which the caller's own ids are bound. Raises Settling."""
        if self._only is None:
            attempt.home = await self._ids.home(attempt.request)

    async def route_to_cell(self, attempt: SchedulingAttempt) -> list[Cell]:
        """Return the cells that may take the request. Raises NoValidHost for groups pinned to different cells."""
        if self._only is not None:
            return self._only
        attempt.pinned = await self._groups.home(attempt.request)
        only = attempt.home or attempt.pinned
        return self._cells.here if only is None else [only]

    async def bind(self, attempt: SchedulingAttempt, proposal: Proposal) -> bool:
        """Bind the ids and the server groups to the proposal's cell. Returns False if they are bound to another one.

        Raises Settling.
        """
        if self._only is not None:
            return True
        bound = await self._ids.bind(attempt.request, proposal.cell)
        if bound is not proposal.cell:
            attempt.home = bound
            return False
        return not proposal.decision.places or await self._groups.pin(attempt.request, bound) is bound

    async def leave_full_cell(self, attempt: SchedulingAttempt) -> bool:
        """Move the caller's ids from a full cell to one that may have room. Returns False if there is none.

        Raises Settling.
        """
        if attempt.home is None or attempt.pinned is not None:
            return False
        before = attempt.home
        attempt.full_cells.add(before.name)
        cell = await self._with_places(attempt)
        if cell is None:
            return False
        attempt.home = await self._ids.move(attempt.request, before, cell)
        # If they stay bound, another copy of the call has an outcome there, which only the script can return.
        return attempt.home is not before

    async def _with_places(self, attempt: SchedulingAttempt) -> Cell | None:
        """Return a cell that has places and has not been full before. Raises NotFound, Settling, Unavailable."""

        def has_places(cell: Cell) -> bool:
            with attempt.limit.working():
                return bool(cell.decider.decide(attempt.resolved, self._rng).places)

        here = self._cells.here
        for cell in here:
            if cell.name not in attempt.full_cells and has_places(cell):
                return cell
        async with aclosing(self._elsewhere.cells(attempt, here)) as others:
            async for cell in others:
                if await cell.read_at_head(partial(has_places, cell)):
                    self._elsewhere.hold(attempt, cell)
                    return cell
        return None
