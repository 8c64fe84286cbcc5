"""Who a claim is: the ids that the scheduler makes, and the cell that a caller's own id belongs to.

With one cell there is nothing to find out. With several, one id must not get an outcome in two of them, though two
copies of the request are decided by two schedulers at once: so an id is bound to a cell before it is claimed there, and
moves on only after it has been voided there (docs/architecture.md, "Ids").
"""

import asyncio
import os

from redsched.model import Request
from redsched.scheduler.cells import Cell, Cells, refuse
from redsched.store.codec.outcomes import Outcome

BOUND_MS = 1_200_000
"""A binding outlives every copy of the call: those are refused as late after remember_s. Longer-lived claims are found
by reading."""


def unique() -> str:
    """A name that nothing else has: of one call, or one count."""
    return os.urandom(12).hex()


def claim_id_in(cell: Cell) -> str:
    """The id of a new claim, which says by its name where it is."""
    return f"{cell.name}.{unique()}"


class ClaimIds:
    """Ids over all cells of a scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def home(self, request: Request) -> Cell | None:
        """The cell in which one of the request's own ids is known or bound; None where that is open.

        It is open only once all cells are settled: one that has lost its last writes may have lost the id's claim and
        its binding with them, and a host may bring the claim back. A cell without hosts is no exception. One that has
        never had any is settled by `init`, and stays so in every new epoch, for it waits for nobody. One that waits
        without hosts was wiped: they are on their way, with their claims.

        Whether cells are settled is read before the claims: so what a host brought back before is seen. Raises
        Settling.
        """
        if not self._shared(request):
            return None
        unsettled, first = await self._cells.unsettled(), request.claim_ids[0]
        bound_to = next(iter(self._cells)).store.bindings.cell_of(first)
        found, bound = await asyncio.gather(self._cells.known(request.claim_ids), bound_to)
        if found is not None:
            return found[0]
        if bound in (cell.name for cell in self._cells):
            return self._cells.named(bound)
        refuse(unsettled, f"claim {first}")
        return None

    async def bind(self, request: Request, cell: Cell) -> Cell:
        """Bind the request's own ids to a cell; the cell they are bound to, which may be another by now.

        Where they are bound to several, the first one says which. Raises Settling.
        """
        return await self._bind(request, cell, former="")

    async def move(self, request: Request, former: Cell, cell: Cell) -> Cell:
        """Void the request's own ids where they were, and bind them to a cell; the cell they are bound to now.

        Raises Settling, as `bind` does.
        """
        for claim_id in request.claim_ids:
            answer = await former.store.claims.void(claim_id, request.digest())
            if answer.outcome is Outcome.CONFLICT:
                return former
        return await self._bind(request, cell, former=former.name)

    async def _bind(self, request: Request, cell: Cell, former: str) -> Cell:
        if not self._shared(request):
            return cell
        first = request.claim_ids[0]
        for claim_id in request.claim_ids:
            bound = await cell.store.bindings.bind(claim_id, former, BOUND_MS)
            if bound != cell.name and claim_id != first:
                bound = await self._follow(claim_id, request, self._cells.named(bound), cell)
            if bound != cell.name:
                return self._cells.named(bound)
        return cell

    async def _follow(self, claim_id: str, request: Request, former: Cell, cell: Cell) -> str:
        """Have an id follow the first one of its request to a cell; the cell it is bound to now. Raises Settling.

        Who was taking them all there has died on the way, or a failover has lost the rest of it.
        """
        await self._cells.refuse_unsettled(f"claim {claim_id}")
        if (await former.store.claims.void(claim_id, request.digest())).outcome is Outcome.CONFLICT:
            return former.name
        return await cell.store.bindings.bind(claim_id, former.name, BOUND_MS)

    def _shared(self, request: Request) -> bool:
        return bool(request.claim_ids) and len(self._cells) > 1
