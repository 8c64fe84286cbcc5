"""Claim ids: generate new ones, and find the cell that a caller's own id belongs to.

With one cell this is trivial. With several, an id must not have outcomes in two of them, even if two schedulers decide
on two copies of the request at once. So an id is bound to a cell before it is claimed there, and is bound to another
cell only after it has been voided in the first (docs/architecture.md, "Ids").
"""

import asyncio
import os

from redsched.model import Request
from redsched.scheduler.cells import Cell, Cells, refuse
from redsched.store.codec.outcomes import Outcome

BOUND_MS = 1_200_000
"""How long a binding is kept: longer than any copy of the call can be accepted, as copies are refused after remember_s.
After that, claims are found by reading all cells."""


def unique() -> str:
    """Return a random unique name."""
    return os.urandom(12).hex()


def claim_id_in(cell: Cell) -> str:
    """Return an id for a new claim, in the form that `Cell.has_made` recognizes."""
    return f"{cell.name}.{unique()}"


class ClaimIds:
    """Binds callers' ids to cells, over all cells of a scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def home(self, request: Request) -> Cell | None:
        """Return the cell in which one of the request's own ids is known or bound; None if any cell will do.

        None is returned only if all cells are settled: a cell that lost its last writes may have lost the id's claim
        and binding with them, and a host may still restore the claim. This includes cells without hosts. If a cell
        never had hosts, `init` settled it, and it stays settled in every new epoch, because there is no host to wait
        for. If it is unsettled without hosts, it was wiped, and its hosts are about to report with their claims.

        Whether the cells are settled is read before the claims, so that claims restored earlier are seen. Raises
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
        """Bind the request's own ids to a cell. Returns the cell to which they are bound, which may be another one.

        If they are bound to several cells, the first id decides. Raises Settling.
        """
        return await self._bind(request, cell, former="")

    async def move(self, request: Request, former: Cell, cell: Cell) -> Cell:
        """Void the request's own ids in their former cell, and bind them to another.

        Returns the cell to which they are bound then. Raises Settling, as `bind` does.
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
        """Bind an id to the cell of its request's first id. Returns the name of the cell to which it is bound then.

        This completes a move of the ids whose scheduler died midway, or whose rest a failover lost. Raises Settling.
        """
        await self._cells.refuse_unsettled(f"claim {claim_id}")
        if (await former.store.claims.void(claim_id, request.digest())).outcome is Outcome.CONFLICT:
            return former.name
        return await cell.store.bindings.bind(claim_id, former.name, BOUND_MS)

    def _shared(self, request: Request) -> bool:
        return bool(request.claim_ids) and len(self._cells) > 1
