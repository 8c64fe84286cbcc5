"""Quotas: the first stop of a claim and its last. Reserve in the project's ledger, claim, hold; void, and free.

        reserve --OVER--> refuse          the claim's end --> its chore, or whoever released it --.
           |                              a reservation whose lease ran out -----------------------+--> settle
        claim.lua --OK--> hold                                                                    |
           `--refused--> void its ids in the cell, so that no late copy can claim --> free        |
                                                                 the claim lives: hold, else void, free

Exact, because each step names the call that reserved last: a word on an id counts only while nobody else relies on it.
So a claim call is decided before it is reserved for, and an id is freed only once its cell is closed to whatever was
decided before. What a crash leaves between two steps has a lease, and is settled by any scheduler (quota_settle.py).

A project without a quota costs a look into memory. A picture that is behind is found out by claim.lua (BEHIND).
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

import structlog

from redsched import tasks
from redsched.decide import Decision, Exceeded, taken_by
from redsched.errors import RedschedError, Settling
from redsched.model import CLAIMS, Amounts, Claim, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.identity import unique
from redsched.scheduler.quota_count import QuotaCount
from redsched.scheduler.quota_settle import RESERVED_MS, QuotaSettler, ledger_id, present_epochs
from redsched.scheduler.quota_takings import exceeded, over, places_take
from redsched.scheduler.repeating import repeat
from redsched.scheduler.taken import taken
from redsched.store import Answer, ClaimAnswer, ClaimCall, Ledgers, Outcome, Taking

CLOSED_WITHIN_S = 5.0
MOST_TRIES = 5
SWEEP_S = 5.0
"""How often each scheduler looks for what crashes have left."""

log = structlog.get_logger(__name__)


class Quotas:
    """The quotas of all projects, over all cells of a scheduler."""

    def __init__(self, cells: Cells, ledgers: Ledgers) -> None:
        self._cells = cells
        self._ledgers = ledgers
        self.counting = QuotaCount(cells, ledgers)
        self.settler = QuotaSettler(cells, ledgers, self.counting)
        self._later = tasks.Later("redsched-quota")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to settle, now and then, what crashes have left."""
        sweeping = repeat(self.settler.sweep, SWEEP_S, log, "quota-sweep", logging.INFO)
        self._task = asyncio.create_task(sweeping, name="redsched-quotas")

    async def stop(self) -> None:
        """Return when what is under way is done, or some seconds were not enough: a lease runs for the rest."""
        await tasks.end(self._task)
        await self._later.stop(CLOSED_WITHIN_S)

    def is_limited(self, project: str, cell: Cell) -> bool:
        """Whether a project has a quota, as far as the pictures of a cell and of the first one know."""
        first = next(iter(self._cells))
        return project in cell.mirror.columns.declared.quotas or project in first.mirror.columns.declared.quotas

    async def claim(self, cell: Cell, call: ClaimCall, former: Claim | None = None) -> ClaimAnswer:
        """Run the claim script, within the project's quota where it has one.

        `former`: what the call's one member is to succeed: both are counted under the id by which the owner knows it.
        Raises QuotaExceeded, Settling, StoreUnavailable, OutcomeUnknown (then the reservation's lease runs on).
        """
        return await cell.store.claim(call)

    async def grow(self, cell: Cell, claim: Claim, amounts: Amounts) -> None:
        """Take what a claim is to hold above what it does. Raises QuotaExceeded, Settling."""
        if self.is_limited(claim.project, cell):
            await self.reserve(claim.project, [Taking(ledger_id(claim), taken(amounts))])

    async def changed(self, cell: Cell, claim: Claim) -> None:
        """Count at once what is left of a claim that has just ended or changed, so that its owner can claim again.

        Its chore, or the lease of what was reserved, would have it done later.
        """
        if self.is_limited(claim.project, cell):
            await self._settle_quietly(claim.project, [ledger_id(claim)])

    async def told(self, claim: Claim) -> bool:
        """Count what is left of a claim that is a chore; False where it cannot be counted yet. Raises Unavailable."""
        if not self._is_limited_anywhere(claim.project):
            if not claim.quota:
                return True
            # Marked by who knew of a quota that this picture has not heard of yet.
            await self._cells.catch_up()
            if not self._is_limited_anywhere(claim.project):
                return True
        known_as = ledger_id(claim)
        return known_as in await self.settler.settle(claim.project, [known_as])

    def _is_limited_anywhere(self, project: str) -> bool:
        return any(self.is_limited(project, cell) for cell in self._cells)

    async def reserve(self, project: str, takings: Sequence[Taking]) -> str | None:
        """Take amounts within the quota; the name of the reservation, None where the project has no quota any more.

        Raises QuotaExceeded, Settling.
        """
        while True:
            by = unique()
            answer = await self._ledgers.reserve(project, by, takings, RESERVED_MS, present_epochs(self._cells))
            if answer.outcome in (Outcome.OK, Outcome.SAME):
                return by
            if answer.outcome is Outcome.OVER:
                raise exceeded(project, over(answer))
            if answer.outcome is not Outcome.LATE:
                has_quota = await self.counting.counted(project)
                # What it was counted in, or that it is not there any more, this process may not have seen yet.
                await self._cells.catch_up()
                if not has_quota:
                    return None

    async def hold(self, project: str, by: str, takings: Sequence[Taking]) -> Answer:
        """Say what was really taken by a reservation; of nothing: freed."""
        return await self._ledgers.hold(project, by, takings)

    async def exceeded(self, request: Request) -> tuple[Exceeded, ...] | None:
        """What the request would exceed; None while that is being counted. Writes nothing."""
        asked = {**taken_by(request), CLAIMS: request.places}
        try:
            return tuple(Exceeded(*one) for one in await self.over(request.project, asked))
        except Settling:
            return None

    async def check(self, project: str, decision: Decision) -> None:
        """Raise QuotaExceeded if claims of these places would be refused now. Writes nothing. Raises Settling."""
        found = await self.over(project, places_take(decision))
        if found:
            raise exceeded(project, found)

    async def over(self, project: str, amounts: Amounts) -> list[tuple[str, int, int, int]]:
        """What these amounts would exceed: class, limit, used, asked of each. Raises Settling."""
        if not project or not self._is_limited_anywhere(project):
            return []
        if not await self.counting.counted(project):
            return []
        state = (await self._ledgers.read([project])).get(project)
        if state is None:
            return []
        used = {name: state.used.get(name, 0) for name in amounts}
        return [
            (name, state.limits[name], used[name], asked)
            for name, asked in sorted(amounts.items())
            if name in state.limits and asked and used[name] + asked > state.limits[name]
        ]

    async def _hold(self, call: ClaimCall, by: str, takings: Sequence[Taking]) -> None:
        if any(member.again for member in call.members):
            # Both claims are there for a while: what counts is the larger of them.
            return await self._settle_quietly(call.project, [one.id for one in takings])
        try:
            await self._ledgers.hold(call.project, by, takings)
        except RedschedError as error:
            log.info("quota-hold", project=call.project, problem=error.detail)

    async def _settle_quietly(self, project: str, ids: Collection[str]) -> None:
        left = set(ids)
        try:
            for _ in range(MOST_TRIES):
                # Another one may be at it, and not through yet: who waits for this is to find it done.
                left -= await self.settler.settle(project, left)
                if not left:
                    return
        except RedschedError as error:
            log.info("quota-settle", project=project, problem=error.detail)

    async def _give_back(self, cell: Cell, call: ClaimCall, by: str, takings: Sequence[Taking]) -> None:
        """After a refusal: no late copy of the call may claim any more, and then nothing is taken."""
        voids = await asyncio.gather(*(cell.store.void(member.id, call.digest) for member in call.members))
        if any(member.again for member in call.members) or any(one.outcome is Outcome.CONFLICT for one in voids):
            await self.settler.settle(call.project, [one.id for one in takings])
        else:
            await self._ledgers.hold(call.project, by, [Taking(one.id) for one in takings])
