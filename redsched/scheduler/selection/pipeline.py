"""A selection: resolve > route_to_cell > decide > claim > interpret, repeated until it is done or refused.

    resolve        find the cell of the caller's ids, the hosts of the hints, the groups and aggregates named
    route_to_cell  choose the cells that may take the request
    decide         choose candidates from the columns in memory
    bind           bind the ids and groups to the cell
    claim          call the claim script once
    interpret      map the reply to Done, or to Retry on newer columns

A refusal must reflect the state of the store after the request arrived, so it is based only on columns that have caught
up after the last candidate turned out to be full.
"""

import asyncio
import time
from random import Random

from redsched.decide.steps import Undecided
from redsched.errors import NotDurable, NotFound, NoValidHost, QuotaExceeded, RedschedError
from redsched.model import Request
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.results import Selections
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.claim_call import claim_call, dry_run, gang_members
from redsched.scheduler.selection.claim_ids import ClaimIds, claim_id_in
from redsched.scheduler.selection.idempotency import existing_outcome
from redsched.scheduler.selection.interpret import abandon, interpret
from redsched.scheduler.selection.joint_calls import JointCalls
from redsched.scheduler.selection.references import refuse_undeclared, undeclared, with_hints
from redsched.scheduler.selection.refusal import PendingRefusal, refusal
from redsched.scheduler.selection.routing import CellRouter
from redsched.scheduler.selection.steps import ClaimReply, Done, Proposal, Refuse, Retry, Step
from redsched.store.codec.outcomes import Outcome

MAX_SEARCHES = 4
"""The most hosts whose pools are searched in vain before other tasks run."""


class SelectionPipeline:
    """Runs the stages, over all cells of a scheduler."""

    def __init__(self, cells: Cells, ids: ClaimIds, quotas: Quotas) -> None:
        self._cells = cells
        self._quotas = quotas
        self._joint_calls = JointCalls(quotas)
        self._rng = Random()
        self._router = CellRouter(cells, ids, self._rng)
        self._running = 0

    async def run(self, attempt: SchedulingAttempt) -> Selections:
        """Take a request through the stages until it is done. Raises as `Selector.select` does."""
        self._running += 1
        try:
            return await self._run(attempt)
        finally:
            self._running -= 1

    async def _run(self, attempt: SchedulingAttempt) -> Selections:
        while True:
            match await self._try_once(attempt):
                case Done(selections):
                    return selections
                case Refuse(error):
                    # Ids keep their outcome, even if something that the request names no longer exists.
                    known = await existing_outcome(attempt.request, self._cells)
                    if known is None:
                        raise error
                    return known

    def may_fit(self, attempt: SchedulingAttempt) -> bool:
        """Return whether the request has a place according to the columns as they are, without catching up."""
        return any(cell.decider.decide(attempt.resolved, self._rng).places for cell in self._cells)

    async def _try_once(self, attempt: SchedulingAttempt) -> Step:
        try:
            return await self._run_stages(attempt)
        except (NoValidHost, NotFound, QuotaExceeded) as error:
            return Refuse(error)

    async def _run_stages(self, attempt: SchedulingAttempt) -> Step:
        """Take a request through all stages once."""
        await self._resolve(attempt)
        cells = await self._router.route_to_cell(attempt)
        proposal = await self._decide(attempt, cells)
        if not attempt.request.claim:
            return await self._show(attempt, proposal)
        if step := await self._bind(attempt, proposal):
            return step
        reply = await self._claim(attempt, proposal)
        if reply.answer.outcome is Outcome.FULL and not proposal.decision.places:
            raise await self._refusal(attempt)
        return await interpret(self._cells, attempt, proposal, reply)

    async def _resolve(self, attempt: SchedulingAttempt) -> None:
        """Look up the claims, groups and aggregates that the request names. Raises NotFound, Settling, NoValidHost."""
        if not attempt.is_resolved:
            await self._router.find_home(attempt)
            attempt.resolved = await with_hints(attempt.request, self._cells)
            attempt.is_resolved = True
        if undeclared(attempt.resolved, self._cells):
            await self._cells.catch_up()
            if missing := undeclared(attempt.resolved, self._cells):
                await refuse_undeclared(missing, self._cells)

    async def _decide(self, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        """Return the best proposal of these cells."""
        while True:
            try:
                return await self._best_proposal(attempt, cells)
            except Undecided as undecided:
                # Other tasks run while pools are searched, so the columns may change, and with them the decision.
                await in_slices(undecided.steps)

    async def _best_proposal(self, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        if attempt.catch_up:
            proposals = await self._cells.read_at_head(lambda cell: self._propose(attempt, cell))
        else:
            if self._running > 1:
                # Requests that arrive together apply all of their replies first, and then share the work of deciding.
                await asyncio.sleep(0)
            proposals = [self._propose(attempt, cell) for cell in cells]
        best = max((one for one in proposals if one.cell in cells), key=lambda one: one.rank)
        # Fewer places than requested (as an incremental request may get) amount to a refusal of the rest.
        if len(best.decision.places) < attempt.request.places and not attempt.catch_up:
            attempt.catch_up = True
            return await self._best_proposal(attempt, cells)
        return best

    def _propose(self, attempt: SchedulingAttempt, cell: Cell) -> Proposal:
        started, updater = time.perf_counter(), cell.updater
        decision = cell.decider.decide(attempt.resolved, self._rng, MAX_SEARCHES)
        proposal = Proposal(cell, decision, updater.epoch, updater.seq)
        if attempt.catch_up:
            attempt.refusals.pop(cell.name, None)
            if not proposal.decision.places:
                attempt.refusals[cell.name] = PendingRefusal(cell, attempt.resolved)
        attempt.decide_s += time.perf_counter() - started
        return proposal

    async def _show(self, attempt: SchedulingAttempt, proposal: Proposal) -> Step:
        """Return the result of a dry run. Raises QuotaExceeded, Settling, NoValidHost."""
        await self._quotas.check(attempt.request.project, proposal.decision)
        if not proposal.decision.places:
            raise await self._refusal(attempt)
        return Done(dry_run(attempt.request, proposal.cell, proposal.decision))

    async def _bind(self, attempt: SchedulingAttempt, proposal: Proposal) -> Step | None:
        """Bind the request to the proposal's cell. Returns None if it may be claimed there, else the pass's result.

        Raises NoValidHost, Settling.
        """
        request, has_places = attempt.request, bool(proposal.decision.places)
        if not has_places and await self._router.leave_full_cell(attempt):
            return Retry()
        # A caller's own ids may have an outcome even if nothing fits, which only the script can tell.
        if not has_places and not request.claim_ids:
            raise await self._refusal(attempt)
        if not await self._router.bind(attempt, proposal):
            return Retry()
        if request.mode == "incremental" and (known := await existing_outcome(request, self._cells)):
            return Done(known)
        return None

    async def _claim(self, attempt: SchedulingAttempt, proposal: Proposal) -> ClaimReply:
        """Call the claim script, and apply its reply to the replica. Raises QuotaExceeded, Unavailable."""
        request, cell = attempt.request, proposal.cell
        ids = _ids_for(request, proposal)
        attempt.calls += 1
        attempt.sent = ids
        try:
            # Only with others in the pipeline is it worth to wait for a turn of the loop.
            joint = await self._joint_calls.claim(request, proposal, ids) if self._running > 1 else None
            if joint is not None:
                return ClaimReply(ids, joint)
            members = gang_members(request, proposal.decision, ids)
            call = claim_call(
                request, cell, proposal.decision, ids, proposal.epoch, proposal.seq, attempt.call_id, members
            )
            answer = await self._quotas.claim(cell, call)
        except NotDurable:
            abandon(request, cell, ids)
            raise
        cell.updater.apply_reply(answer)
        if answer.outcome is Outcome.OK:
            cell.requests.has_written(call.digest, answer.epoch)
        return ClaimReply(ids, answer)

    async def _refusal(self, attempt: SchedulingAttempt) -> RedschedError:
        pending = [attempt.refusals.get(cell.name) or PendingRefusal(cell, attempt.resolved) for cell in self._cells]
        settled = all(one.settled for one in pending)
        if attempt.waits_for_room:
            # Requests have to enter the queue in the order in which they came.
            return refusal(settled, attempt.request, [one.found_at_once() for one in pending])
        return refusal(settled, attempt.request, [await one.found() for one in pending])


def _ids_for(request: Request, proposal: Proposal) -> tuple[str, ...]:
    """Return an id for each proposed place: the caller's first ids, or new ones; without places, all caller's ids."""
    places = proposal.decision.places
    if not request.claim_ids:
        return tuple(claim_id_in(proposal.cell) for _ in places)
    return request.claim_ids[: len(places)] if places else request.claim_ids
