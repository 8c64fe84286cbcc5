"""Route a request to one of several cells: that of its ids or of its server group, else the best one."""

import asyncio
from collections.abc import Iterator
from random import Random

from redsched import aio
from redsched.cache.columns import Columns
from redsched.errors import NoValidHost
from redsched.model import GroupPolicy, Request
from redsched.scheduler.cells import Cell, Cells, refuse
from redsched.scheduler.claims.by_id import find_known
from redsched.scheduler.selection.attempt import Proposal, SchedulingAttempt
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.bindings import BOUND_MS

_PER_HOST = frozenset((GroupPolicy.ANTI_AFFINITY, GroupPolicy.SOFT_ANTI_AFFINITY))


class CellRouter:
    """Routes requests to cells, and binds them before they are claimed."""

    def __init__(self, cells: Cells, rng: Random) -> None:
        self._cells = cells
        self._all = list(cells)
        self._ids = ClaimIds(cells)
        self._groups = GroupCells(cells)
        self._rng = rng

    async def find_home(self, attempt: SchedulingAttempt) -> None:
        """Find the cell to which the caller's own ids are bound. Raises Settling."""
        attempt.home = await self._ids.home(attempt.request)

    async def route_to_cell(self, attempt: SchedulingAttempt) -> list[Cell]:
        """Return the cells that may take the request. Raises NoValidHost for groups pinned to different cells."""
        attempt.pinned = await self._groups.home(attempt.request)
        only = attempt.home or attempt.pinned
        return self._all if only is None else [only]

    async def bind(self, attempt: SchedulingAttempt, proposal: Proposal) -> bool:
        """Bind the ids and the server groups to the proposal's cell. Returns False if they are bound to another one.

        Raises Settling.
        """
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
        cell = self._with_places(attempt)
        if cell is None:
            return False
        attempt.home = await self._ids.move(attempt.request, before, cell)
        # If they stay bound, another copy of the call has an outcome there, which only the script can return.
        return attempt.home is not before

    def _with_places(self, attempt: SchedulingAttempt) -> Cell | None:
        """Return a cell that has places and has not been full before."""
        for cell in self._all:
            if cell.name not in attempt.full_cells:
                with attempt.limit.working():
                    if cell.decider.decide(attempt.resolved, self._rng).places:
                        return cell
        return None


class ClaimIds:
    """Binds callers' own ids to cells.

    An id must not have outcomes in two cells, even if two schedulers decide on two copies of the request at once. So an
    id is bound to a cell before it is claimed there, and is bound to another cell only after it has been voided in the
    first (docs/architecture.md, "Ids").
    """

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
        if not request.claim_ids:
            return None
        unsettled, first = await self._cells.unsettled(), request.claim_ids[0]
        bound_to = next(iter(self._cells)).store.bindings.cell_of(first)
        found, bound = await asyncio.gather(find_known(self._cells, request.claim_ids), bound_to)
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
        if not request.claim_ids:
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


class GroupCells:
    """Pins server groups to cells.

    Rules per host are exact over all cells, because each host is in only one. Affinity, and rules that count by zone or
    label, need all members in one cell, where a script can read their counts. Such a group is pinned to the cell of its
    first claim for as long as the group exists.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def home(self, request: Request) -> Cell | None:
        """Return the cell to which the groups of the request are pinned; None if they are not pinned.

        Raises NoValidHost for groups that are pinned to different cells.
        """
        groups = self._groups(request)
        if not groups:
            return None
        any_cell = next(iter(self._cells))
        found = await aio.gather(any_cell.store.bindings.cell_of_group(group) for group in groups)
        pinned = {group: name for group, name in zip(groups, found, strict=True) if name}
        if len(set(pinned.values())) > 1:
            where = ", ".join(f"{group} in {name}" for group, name in sorted(pinned.items()))
            raise NoValidHost(f"the server groups of this request have their members in different cells: {where}")
        return self._cells.named(next(iter(pinned.values()))) if pinned else None

    async def pin(self, request: Request, cell: Cell) -> Cell:
        """Pin the request's groups to a cell. Returns the cell to which they are pinned, which may be another one."""
        for group in self._groups(request):
            pinned = await cell.store.bindings.bind_group(group)
            if pinned != cell.name:
                return self._cells.named(pinned)
        return cell

    def _groups(self, request: Request) -> list[str]:
        columns = next(iter(self._cells)).updater.columns  # groups are declared in every cell
        return sorted(set(_pinned(request, columns)))


def _pinned(request: Request, columns: Columns) -> Iterator[str]:
    for one in request.members:
        yield from _pinned(one.request, columns)
    group = columns.declared.groups.get(request.server_group)
    if group is None:
        return
    if request.spread or group.group.by != "host" or group.group.policy not in _PER_HOST:
        yield request.server_group
