"""A selection: resolve > route_to_cell > decide > bind > claim > interpret, repeated until it is done or refused.

    resolve        find the cell of the caller's ids, the hosts of the hints, the groups and aggregates named
    route_to_cell  choose the cells that may take the request
    decide         choose candidates from the columns in memory
    bind           bind the ids and groups to the cell
    claim          call the claim script once
    interpret      map the reply to Done, or to Retry on newer columns

The stages are methods below, in this order. A refusal is an error of a stage. It must reflect the state of the store
after the request arrived, so it is based only on columns that have caught up after the last candidate turned out to be
full.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from random import Random

from redsched import tracing
from redsched.decide.reserving import usable
from redsched.decide.steps import Undecided
from redsched.decide.work_limit import TooMuchWork, within
from redsched.errors import NotDurable, NotFound, NoValidHost, QuotaExceeded, RedschedError, TooHard
from redsched.model import ReasonCount, Request
from redsched.model.records.selections import Selections
from redsched.pacing import TurnQueue, in_slices
from redsched.scheduler.cells import Cell, Cells, wait_text
from redsched.scheduler.claims.by_id import new_claim_id
from redsched.scheduler.decide_apart.jobs import decided_apart
from redsched.scheduler.decide_apart.limits import DecisionLimits, HardShapes, too_hard
from redsched.scheduler.decide_apart.planner import Planner
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.references import refuse_undeclared, undeclared, with_hints
from redsched.scheduler.results import ClaimCost
from redsched.scheduler.selection.attempt import CallAndReply, Done, Proposal, Retry, SchedulingAttempt, Step
from redsched.scheduler.selection.claim_call import claim_call, dry_run, gang_members
from redsched.scheduler.selection.idempotency import existing_outcome
from redsched.scheduler.selection.interpret import abandon, interpret
from redsched.scheduler.selection.joint_calls import JointCalls
from redsched.scheduler.selection.refusal import FoundRefusal, PendingRefusal, refusal
from redsched.scheduler.selection.routing import CellRouter
from redsched.store.codec.outcomes import Outcome

UNKNOWN_CLASS = "unknown-class"
"""The reason of a refusal for a class that no host has."""


class SelectionPipeline:
    """Runs the stages, over all cells of a scheduler."""

    def __init__(self, cells: Cells, quotas: Quotas, limits: DecisionLimits) -> None:
        self._cells = cells
        self._quotas = quotas
        self._joint_calls = JointCalls(quotas)
        self._rng = Random()
        self._router = CellRouter(cells, self._rng) if len(cells) > 1 else None
        """None: with a single cell there is nothing to find and nothing to bind."""
        self._limits = limits
        self._hard = HardShapes()
        self._turns, self._explaining = TurnQueue(), asyncio.Lock()
        self._running = 0

    async def run(self, attempt: SchedulingAttempt) -> Selections:
        """Take a request through the stages until it is done. Raises as `Selector.select` does."""
        self._running += 1
        try:
            while True:
                step = await self._run_stages(attempt)
                if isinstance(step, Done):
                    return step.selections
        except (NoValidHost, NotFound, QuotaExceeded, TooHard) as error:
            return await self._existing_or(attempt, error)
        except TooMuchWork as cut:
            return await self._existing_or(attempt, too_hard(attempt.resolved, self._hosts(), cut))
        finally:
            self._running -= 1

    async def _existing_or(self, attempt: SchedulingAttempt, error: RedschedError) -> Selections:
        """Return the outcome that the request's own ids have already; else raise `error`.

        Ids keep their outcome, even if something that the request names no longer exists.
        """
        known = await existing_outcome(attempt, self._cells)
        if known is None:
            raise error
        return known

    async def _run_stages(self, attempt: SchedulingAttempt) -> Step:
        """Take a request through all stages once."""
        await self._resolve(attempt)
        cells = await self._router.route_to_cell(attempt) if self._router else list(self._cells)
        with tracing.span("redsched.decide"):
            proposal = await self._decide(attempt, cells)
        if not attempt.request.claim:
            return await self._show(attempt, proposal)
        if step := await self._bind(attempt, proposal):
            return step
        sent = time.perf_counter()
        with tracing.span("redsched.claim", cell=proposal.cell.name):
            reply = await self._claim(attempt, proposal)
        attempt.claims.append(_cost(reply, time.perf_counter() - sent))
        if reply.answer.outcome is Outcome.FULL and not proposal.decision.places:
            raise await self._refusal(attempt)
        return await interpret(self._cells, attempt, proposal, reply)

    async def _resolve(self, attempt: SchedulingAttempt) -> None:
        """Look up the claims, groups and aggregates that the request names. Raises NotFound, Settling, NoValidHost."""
        if not attempt.is_resolved:
            if self._router:
                await self._router.find_home(attempt)
            attempt.resolved = await with_hints(attempt.request, self._cells)
            attempt.is_resolved = True
        if undeclared(attempt.resolved, self._cells):
            await self._cells.catch_up()
            if missing := undeclared(attempt.resolved, self._cells):
                await refuse_undeclared(missing, self._cells)

    async def _decide(self, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        """Return the best proposal of these cells. Raises TooMuchWork, or TooHard if a planner decides."""
        planner = self._limits.planner
        if planner is None:
            return await self._best_proposal(attempt, cells)
        if not self._is_hard(attempt):
            try:
                return await self._best_proposal(attempt, cells)
            except TooMuchWork:
                self._note_hard(attempt)
        return await self._best_planned(planner, attempt, cells)

    def _is_hard(self, attempt: SchedulingAttempt) -> bool:
        attempt.is_hard = attempt.is_hard or attempt.resolved in self._hard
        return attempt.is_hard

    def _note_hard(self, attempt: SchedulingAttempt) -> None:
        attempt.is_hard = True
        self._hard.add(attempt.resolved)

    async def _best_planned(self, planner: Planner, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        """Return the planner's proposal for the first of these cells that has all places, else the best one.

        It is claimed like any other proposal. A refusal is the planner's too, on columns at the head of the feed.
        Raises TooHard, PlannerBusy, Unavailable.
        """
        planned: list[Proposal] = []
        for cell in cells:
            planned.append(await self._planned(planner, attempt, cell))
            if not _lacks_places(attempt, planned[-1]):
                break
        return max(planned, key=lambda one: one.rank)

    async def _planned(self, planner: Planner, attempt: SchedulingAttempt, cell: Cell) -> Proposal:
        found = await decided_apart(planner, cell, attempt.resolved, attempt.reservation)
        attempt.catch_up = True
        attempt.refusals.pop(cell.name, None)
        if found.explanation is not None:
            attempt.refusals[cell.name] = FoundRefusal(found.explanation, found.settled)
        return Proposal(cell, found.decision, found.epoch, found.seq)

    async def _best_proposal(self, attempt: SchedulingAttempt, cells: list[Cell]) -> Proposal:
        """Return the best proposal, on columns at the head of the feed if it lacks places otherwise."""
        while True:
            try:
                proposals = await self._proposals(attempt, cells)
            except Undecided as undecided:
                # Other tasks run while pools are searched, so the columns may change, and with them the decision.
                await in_slices(within(attempt.limit, undecided.steps))
                attempt.max_searches *= 2
                continue
            best = max(proposals, key=lambda one: one.rank)
            if attempt.catch_up or not _lacks_places(attempt, best):
                return best
            attempt.catch_up = True

    async def _proposals(self, attempt: SchedulingAttempt, cells: list[Cell]) -> list[Proposal]:
        """Return the proposals of these cells, on columns at the head of the feed if the attempt needs that."""
        if attempt.catch_up:
            found = await self._cells.read_at_head(lambda cell: self._propose(attempt, cell))
            return [one for one in found if one.cell in cells]
        if self._running > 1:
            # Requests that arrive together apply all of their replies first, and then share the work of deciding.
            await asyncio.sleep(0)
        await self._turns.wait()
        return [self._propose(attempt, cell) for cell in cells]

    def _propose(self, attempt: SchedulingAttempt, cell: Cell) -> Proposal:
        started, worked, updater = time.perf_counter(), time.thread_time(), cell.updater
        try:
            with attempt.limit.working(), self._usable(attempt, cell):
                decision = cell.decider.decide(attempt.resolved, self._rng, attempt.max_searches)
        finally:
            self._turns.spent(time.thread_time() - worked)
        proposal = Proposal(cell, decision, updater.epoch, updater.seq)
        if attempt.catch_up:
            attempt.refusals.pop(cell.name, None)
            if not proposal.decision.places:
                attempt.refusals[cell.name] = self._refused(attempt, cell, decision.reasons)
        attempt.decide_s += time.perf_counter() - started
        return proposal

    def _usable(self, attempt: SchedulingAttempt, cell: Cell) -> AbstractContextManager[None]:
        return usable(cell.updater.columns, attempt.resolved, cell.updater.now_ms(), attempt.reservation)

    def _refused(self, attempt: SchedulingAttempt, cell: Cell, counts: Sequence[ReasonCount] = ()) -> PendingRefusal:
        limit = self._limits.of_explanation(at_once=attempt.waits_for_room)
        return PendingRefusal(cell, attempt.resolved, limit, counts)

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
        if not has_places and self._router and await self._router.leave_full_cell(attempt):
            return Retry()
        # A caller's own ids may have an outcome even if nothing fits, which only the script can tell.
        if not has_places and not request.claim_ids:
            raise await self._refusal(attempt)
        if self._router and not await self._router.bind(attempt, proposal):
            return Retry()
        if request.mode == "incremental" and (known := await existing_outcome(attempt, self._cells)):
            return Done(known)
        return None

    async def _claim(self, attempt: SchedulingAttempt, proposal: Proposal) -> CallAndReply:
        """Call the claim script, and apply its reply to the replica. Raises QuotaExceeded, Unavailable."""
        request, cell = attempt.request, proposal.cell
        ids = _ids_for(request, proposal)
        attempt.calls += 1
        attempt.sent = ids
        try:
            # Only with others in the pipeline is it worth to wait for a turn of the loop.
            may_join = self._running > 1 and not attempt.reservation
            joint = await self._joint_calls.claim(request, proposal, ids, attempt.owner) if may_join else None
            if joint is not None:
                return CallAndReply(ids, joint)
            members = gang_members(request, proposal.decision, ids)
            seen = proposal.epoch, proposal.seq
            call = claim_call(
                request,
                cell,
                proposal.decision,
                ids,
                *seen,
                attempt.call_id,
                members,
                attempt.reservation,
                owner=attempt.owner,
                own_only=attempt.own_only,
            )
            answer = await self._quotas.claim(cell, call)
        except NotDurable:
            abandon(request, cell, ids)
            raise
        cell.apply(call, answer)
        return CallAndReply(ids, answer)

    async def _refusal(self, attempt: SchedulingAttempt) -> RedschedError:
        refusals = [attempt.refusals.get(cell.name) or self._refused(attempt, cell) for cell in self._cells]
        settled = all(one.settled for one in refusals)
        # One after the other: slices of many refusals would all be part of one turn of the loop.
        async with self._explaining:
            if attempt.waits_for_room:
                # Requests have to enter the queue in the order in which they came.
                found = [one.found_at_once() for one in refusals]
            else:
                found = [await one.found() for one in refusals]
        waits = (
            "" if settled else next(filter(None, (wait_text(one.name, one.updater.clock) for one in self._cells)), "")
        )
        return refusal(settled, attempt.request, found, is_complete=True, waits=waits)

    def may_fit(self, attempt: SchedulingAttempt) -> bool:
        """Return whether the request may have a place according to the columns as they are, without catching up."""
        return any(self._may_fit_in(attempt, cell) for cell in self._cells)

    def _may_fit_in(self, attempt: SchedulingAttempt, cell: Cell) -> bool:
        gains = attempt.gains.get(cell.name)
        if gains is None or gains.columns is not cell.updater.columns:
            gains = attempt.gains[cell.name] = cell.decider.gains(attempt.resolved)
        try:
            with self._limits.of_check().working(), self._usable(attempt, cell):
                if not gains.may_matter():
                    return False
                if not self._is_hard(attempt) and not cell.decider.decide(attempt.resolved, self._rng).places:
                    return False
        except TooMuchWork:
            self._note_hard(attempt)
        del attempt.gains[cell.name]  # until the attempt has been made, it may fit
        return True

    def main_reason(self, error: RedschedError) -> str:
        """Return the reason for which most hosts were ruled out, if none fitted: a filter or a class; '' otherwise.

        The parts of reasons that requests may choose freely are left out, so that there are few different ones.
        """
        reasons = error.facts.reasons if isinstance(error, NoValidHost) else None
        if not reasons:
            return ""
        name = str(max(reasons, key=lambda one: one.hosts).reason).partition(":")[0]
        if not name.isupper():
            return name
        # Requests may name classes that no host has.
        return name if any(_has_class(cell, name) for cell in self._cells) else UNKNOWN_CLASS

    def _hosts(self) -> int:
        return sum(len(cell.updater.columns) for cell in self._cells)


def _cost(reply: CallAndReply, seconds: float) -> ClaimCost:
    looked_at = reply.answer.looked_at
    # The answer to one of several joint requests has its place alone.
    return ClaimCost(seconds, len(looked_at) or len(reply.answer.placed), any(one.cause for one in looked_at))


def _has_class(cell: Cell, name: str) -> bool:
    capacity = cell.updater.columns.capacity
    return name in capacity or bool(capacity.in_pools(name))


def _lacks_places(attempt: SchedulingAttempt, best: Proposal) -> bool:
    """Return whether there are fewer places than requested (as an incremental request may get): the rest is refused."""
    return len(best.decision.places) < attempt.request.places


def _ids_for(request: Request, proposal: Proposal) -> tuple[str, ...]:
    """Return an id for each proposed place: the caller's first ids, or new ones; without places, all caller's ids."""
    places = proposal.decision.places
    if not request.claim_ids:
        return tuple(new_claim_id(proposal.cell.name) for _ in places)
    return request.claim_ids[: len(places)] if places else request.claim_ids
