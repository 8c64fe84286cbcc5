"""Explain over all cells why hosts fit a request or not."""

from collections.abc import Sequence

from redsched.decide.explain.closed import merge_closed
from redsched.decide.explain.places import merge_places
from redsched.decide.explain.ranking import merge_ranked, merge_spared
from redsched.decide.explain.unknown import merge_unknown
from redsched.decide.work_limit import TooMuchWork, WorkLimit, within
from redsched.model import Request
from redsched.model.records.explanations import Explanation, of_unknown
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.decide_apart.jobs import explained_apart
from redsched.scheduler.decide_apart.limits import DecisionLimits, too_hard
from redsched.scheduler.decide_apart.planner import Planner
from redsched.scheduler.hosts.hosts import HostService
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.references import refuse_undeclared, undeclared, with_hints
from redsched.scheduler.selection.blockers import with_claims
from redsched.scheduler.selection.refusal import merge_nearest, merge_reasons


class Explainer:
    """Explains requests. Writes nothing."""

    def __init__(self, cells: Cells, hosts: HostService, enforcement: Quotas, limits: DecisionLimits) -> None:
        self._cells = cells
        self._hosts = hosts
        self._enforcement = enforcement
        self._limits = limits

    async def explain(self, request: Request, hosts: Sequence[str]) -> Explanation:
        """Explain a request, with every check of these hosts. Raises as `Scheduler.explain` does."""
        try:
            return await self._over_cells(request, hosts, self._limits.of_request())
        except TooMuchWork as cut:
            if self._limits.planner is None:
                known = sum(len(cell.updater.columns) for cell in self._cells)
                raise too_hard(request, known, cut) from None
        return await self._over_cells(request, hosts, self._limits.of_request(), self._limits.planner)

    async def _over_cells(
        self, request: Request, hosts: Sequence[str], limit: WorkLimit, planner: Planner | None = None
    ) -> Explanation:
        """Explain a request, by a planner if there is one. Raises TooMuchWork beyond the limit."""
        request = await with_hints(request, self._cells)
        await self._cells.catch_up()
        if what := undeclared(request, self._cells):
            await refuse_undeclared(what, self._cells)
        for host in hosts:
            if all(host not in cell.updater.columns for cell in self._cells):
                await self._hosts.get(host)
        found = [await _in_cell(cell, request, hosts, limit, planner) for cell in self._cells]
        return Explanation(
            hosts=sum(one.hosts for one in found),
            fits=sum(one.fits for one in found),
            reasons=merge_reasons([one.reasons for one in found]),
            nearest=merge_nearest([one.nearest for one in found]),
            checks=tuple(sorted((check for one in found for check in one.checks), key=lambda check: check.host)),
            unsearched=sum(one.unsearched for one in found),
            exceeded=await self._enforcement.exceeded(request),
            cut_short=any(one.cut_short for one in found),
            ranked=merge_ranked(one.ranked for one in found),
            **of_unknown(merge_unknown(found)),
            closed=merge_closed(one.closed for one in found),
            places=merge_places(one.places for one in found),
            spared=merge_spared(one.spared for one in found),
        )


async def _in_cell(
    cell: Cell, request: Request, hosts: Sequence[str], limit: WorkLimit, planner: Planner | None
) -> Explanation:
    if planner is None:
        found = await in_slices(within(limit, cell.decider.explain_steps(request, *hosts)))
    else:
        found = await explained_apart(planner, cell, request, hosts)
    return await with_claims(cell, request, found, limit)
