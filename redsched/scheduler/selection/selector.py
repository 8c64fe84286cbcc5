"""Selecting: decide on the columns, claim in one script call, and answer only what is true of the store.

        decide --nothing fits--> catch up --> decide --nothing fits--> refuse, with reasons
           |                        ^            |
           +------ candidates ------|------------+--> claim.lua --OK, SAME--> answer
                                    |                     |
                                    +--------FULL---------+

A refusal is an answer about the store after the request arrived: it is given only from columns that were brought up to
date after the last candidate turned out to be full.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random

from redsched.decide import Decision
from redsched.errors import (
    NotDurable,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    QuotaExceeded,
    RedschedError,
    Settling,
    StoreUnavailable,
)
from redsched.model import Claim, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.results import Effort, Selections
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.claim_call import claim_call, dry_run, from_existing, from_reply, gang_members
from redsched.scheduler.selection.claim_ids import ClaimIds, claim_id_in
from redsched.scheduler.selection.group_cells import GroupCells
from redsched.scheduler.selection.idempotency import existing_outcome
from redsched.scheduler.selection.references import refuse_undeclared, undeclared, with_hints
from redsched.scheduler.selection.refusal import refusal
from redsched.scheduler.selection.wait_active import ActiveWaiter
from redsched.scheduler.selection.wait_queue import WaitQueue
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ClaimAnswer

Observe = Callable[[Effort], None]


class Selector:
    """Selects over all cells of a scheduler."""

    def __init__(
        self,
        cells: Cells,
        settings: Settings,
        identity: ClaimIds,
        line: WaitQueue,
        quotas: Quotas,
        until_active: ActiveWaiter,
        observe: Observe | None = None,
    ) -> None:
        self._cells = cells
        self._settings = settings
        self._identity = identity
        self._quotas = quotas
        self._pins = GroupCells(cells)
        self._line = line
        self._until_active = until_active
        self._observe = observe or (lambda _: None)
        self._rng = Random()

    async def select(self, request: Request) -> Selections:
        """Claim a place for every member of the request, or show where they would go (`claim` False).

        Raises NoValidHost, QuotaExceeded, ClaimIdReused, ClaimState (some ids have ended or were lost), NotConfirmed,
        Settling, StoreUnavailable, OutcomeUnknown.
        """
        attempt = SchedulingAttempt(request)
        try:
            found = await self._placed(attempt)
            if request.until == "active" and request.claim:
                found = await self._until_active.confirmed(request, found, attempt.call_id)
        except RedschedError as error:
            self._observe(attempt.effort(error.problem))
            raise
        done = "claimed" if found.fresh else "same"
        self._observe(attempt.effort(done if request.claim else "dry-run"))
        return found

    async def _placed(self, attempt: SchedulingAttempt) -> Selections:
        """Place the request; where nothing fits, wait for room as long as it wants to."""
        request = attempt.request
        try:
            return await self._attempt_with_undo(attempt)
        except NoValidHost as refused:
            if not (request.queue_timeout_s and request.claim):
                raise
            return await self._line.place(
                lambda: self._attempt_with_undo(attempt),
                lambda: self._may_fit(attempt),
                request.queue_timeout_s,
                refused,
            )

    def _may_fit(self, attempt: SchedulingAttempt) -> bool:
        """Whether the pictures as they are, caught up or not, have a place."""
        return any(cell.decider.decide(attempt.asked, self._rng).places for cell in self._cells)

    async def _attempt_with_undo(self, attempt: SchedulingAttempt) -> Selections:
        """One try. Until active, what a caller who is gone by then has claimed is undone."""
        if attempt.request.until == "active" and attempt.request.claim:
            return await self._until_active.placed(lambda: self._try(attempt), attempt.call_id)
        return await self._try(attempt)

    async def _try(self, attempt: SchedulingAttempt) -> Selections:
        attempt.anew()
        try:
            async with asyncio.timeout(self._settings.select_timeout_s):
                return await self._select(attempt)
        except TimeoutError as error:
            raise self._late(attempt) from error
        except OutcomeUnknown as error:
            raise OutcomeUnknown(error.detail, _ids(attempt)) from error

    def _late(self, attempt: SchedulingAttempt) -> RedschedError:
        waited = f"within {self._settings.select_timeout_s:g} s"
        if attempt.sent:
            return OutcomeUnknown(
                f"a claim was sent to the store and no answer came {waited}; send it again with these claim_ids",
                _ids(attempt),
            )
        return StoreUnavailable(f"no host could be claimed {waited}, though some seemed free: retry")

    async def _select(self, attempt: SchedulingAttempt) -> Selections:
        try:
            return await self._place(attempt)
        except (NoValidHost, NotFound, QuotaExceeded):
            # What the request relied on may have gone since its ids were given what they have: they keep it.
            found = await existing_outcome(attempt.request, self._cells)
            if found is None:
                raise
            return found

    async def _place(self, attempt: SchedulingAttempt) -> Selections:
        request = attempt.request
        attempt.home = await self._identity.home(request)
        attempt.asked = await with_hints(request, self._cells)
        while True:
            if await self._has_undeclared(attempt):
                continue
            attempt.pinned = await self._pins.home(request)
            cell, decision = await self._decide(attempt)
            # Fewer places than were asked for (an incremental request gets them) are a refusal of the others.
            if len(decision.places) < request.places and not attempt.catch_up:
                attempt.catch_up = True
                continue
            if not request.claim:
                await self._quotas.check(request.project, decision)
                return dry_run(request, cell, decision) if decision.places else self._refuse(attempt)
            if not decision.places and await self._moves_on(attempt):
                continue
            found = await self._claim(attempt, cell, decision)
            if found is not None:
                return found

    async def _decide(self, attempt: SchedulingAttempt) -> tuple[Cell, Decision]:
        """The best decision of all cells, or that of the cell in which the request's ids are at home."""

        def look(cell: Cell) -> tuple[Cell, Decision]:
            return cell, self._decide_in(cell, attempt)

        home = attempt.home or attempt.pinned
        cells = list(self._cells) if home is None else [home]
        looks = await self._cells.read_at_head(look) if attempt.catch_up else [look(cell) for cell in cells]
        mine = [found for found in looks if found[0] in cells]
        return max(mine, key=lambda found: (len(found[1].places), found[1].score))

    def _decide_in(self, cell: Cell, attempt: SchedulingAttempt) -> Decision:
        started = time.perf_counter()
        attempt.decided_on[cell.name] = (cell.mirror.epoch, cell.mirror.seq)
        decision = cell.decider.decide(attempt.asked, self._rng)
        if attempt.catch_up:
            attempt.seen.pop(cell.name, None)
            if not decision.places:
                attempt.seen[cell.name] = cell.decider.explain(attempt.asked)
        attempt.decide_s += time.perf_counter() - started
        return decision

    async def _moves_on(self, attempt: SchedulingAttempt) -> bool:
        """Take the caller's ids from a cell without room to one that may have it; False when there is none."""
        if attempt.home is None or attempt.pinned is not None:
            return False
        before = attempt.home
        attempt.left.add(before.name)
        for cell in self._cells:
            if cell.name not in attempt.left and cell.decider.decide(attempt.asked, self._rng).places:
                attempt.home = await self._identity.move(attempt.request, before, cell)
                # Where they stay, another copy of the call has got them an outcome there: it is to be asked for.
                return attempt.home is not before
        return False

    async def _claim(self, attempt: SchedulingAttempt, cell: Cell, decision: Decision) -> Selections | None:
        """Run the claim script. None: decide anew, on columns that know more than before."""
        request = attempt.request
        if not decision.places and not request.claim_ids:
            self._refuse(attempt)
        if not await self._belongs_to(attempt, cell, decision):
            return None
        if request.mode == "incremental" and (first := await existing_outcome(request, self._cells)):
            return first
        ids = self._ids_for(request, cell, decision)
        answer = await self._call(attempt, cell, decision, ids)
        if answer.outcome is Outcome.OK:
            return from_reply(request, cell, decision, ids, answer)
        if answer.outcome is Outcome.ALREADY_DONE:
            claims = await _read(cell, ids)
            if len(claims) == len(ids):
                return from_existing(request, cell, ids, claims)
        return await self._not_claimed(attempt, cell, decision, ids, answer)

    async def _belongs_to(self, attempt: SchedulingAttempt, cell: Cell, decision: Decision) -> bool:
        """Bind the request's ids and server group to the cell; False where they are bound to another one."""
        bound = await self._identity.bind(attempt.request, cell)
        if bound is not cell:
            attempt.home = bound
            return False
        return not decision.places or await self._pins.pin(attempt.request, cell) is cell

    async def _call(
        self, attempt: SchedulingAttempt, cell: Cell, decision: Decision, ids: tuple[str, ...]
    ) -> ClaimAnswer:
        """Call the claim script once, and apply what its reply says."""
        attempt.calls += 1
        attempt.sent = ids
        members = gang_members(attempt.request, decision, ids)
        call = claim_call(
            attempt.request, cell, decision, ids, *attempt.decided_on[cell.name], attempt.call_id, members
        )
        try:
            answer = await self._quotas.claim(cell, call)
        except NotDurable:
            _abandon(attempt.request, cell, ids)
            raise
        cell.mirror.apply_reply(answer)
        if answer.outcome is Outcome.OK:
            cell.requests.has_written(call.digest, answer.epoch)
        return answer

    async def _not_claimed(
        self, attempt: SchedulingAttempt, cell: Cell, decision: Decision, ids: tuple[str, ...], answer: ClaimAnswer
    ) -> Selections | None:
        """Return what the ids had got before, refuse, or have the caller decide again (None)."""
        request, outcome = attempt.request, answer.outcome
        attempt.sent = ()
        if outcome in (Outcome.ALREADY_DONE, Outcome.WRONG_EPOCH, Outcome.CONFLICT):
            # The store has lost them, or some of them. A host may have them, and may yet bring them back.
            _abandon(request, cell, ids)
        if outcome is Outcome.FULL and not decision.places:
            self._refuse(attempt)
        if outcome in (Outcome.ENDED, Outcome.CONFLICT):
            found = await existing_outcome(request, self._cells)
            attempt.catch_up |= found is None  # the store has lost the outcome since: the ids are free again
            return found
        if outcome is Outcome.SETTLING:
            raise _settling(request)
        # FULL, WRONG_EPOCH, EXPIRED, STALE_VIEW, UNKNOWN (a group or pool that is not there any more): what was decided
        # on is not what the store has. Only a later picture can refuse, and only one that knows more than the reply
        # told (a host shrank, or was disabled) is sure not to aim there again.
        await cell.mark_down(answer)
        attempt.catch_up = True
        return None

    def _ids_for(self, request: Request, cell: Cell, decision: Decision) -> tuple[str, ...]:
        """One id for each place that is proposed; of a caller's ids the first ones, where only some places are."""
        if not request.claim_ids:
            return tuple(claim_id_in(cell) for _ in decision.places)
        return request.claim_ids[: len(decision.places)] if decision.places else request.claim_ids

    async def _has_undeclared(self, attempt: SchedulingAttempt) -> bool:
        """Whether to look again, caught up, for something that the request names. Raises NotFound, Settling."""
        what = undeclared(attempt.asked, self._cells)
        if not what:
            return False
        if attempt.looked_for:
            await refuse_undeclared(what, self._cells)
        attempt.looked_for = True
        await self._cells.catch_up()
        return True

    def _refuse(self, attempt: SchedulingAttempt) -> Selections:
        found = [attempt.seen.get(cell.name) or cell.decider.explain(attempt.asked) for cell in self._cells]
        raise refusal(self._cells, attempt.request, found)


def _abandon(request: Request, cell: Cell, ids: tuple[str, ...]) -> None:
    """Have ids that were made for the request given back, should they turn up; a caller's own may be sent again."""
    if not request.claim_ids:
        cell.released.abandon(ids)


def _settling(request: Request) -> Settling:
    ids = ", ".join(request.claim_ids)
    what = f"claim id {ids}" if ids else "what the request is to be counted in, or draws on,"
    return Settling(
        f"{what} may be known to hosts that have not attested to the new epoch yet: try again",
        {"claim_ids": list(request.claim_ids)},
    )


async def _read(cell: Cell, ids: Sequence[str]) -> Mapping[str, Claim]:
    """The claims of a call that was carried out. Raises OutcomeUnknown: nobody else knows ids that were made for it."""
    try:
        return await cell.store.claims.read(ids)
    except StoreUnavailable as error:
        raise OutcomeUnknown(f"the claim was made, and could not be read: {error.detail}") from error


def _ids(attempt: SchedulingAttempt) -> dict[str, list[str]]:
    """What the caller needs to learn the outcome: the ids, its own or those that were made for the call."""
    return {"claim_ids": list(attempt.sent or attempt.request.claim_ids)}
