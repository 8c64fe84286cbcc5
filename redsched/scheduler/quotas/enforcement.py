"""Enforce quotas, the limits on what a project's claims use together. claim.lua checks and counts as it claims.

With several cells, each has a share of the limits and refuses what exceeds it. If other cells can spare a part of their
shares, that part is transferred and the call repeated (shares.py).

        claim.lua --OVER_QUOTA--> has another cell a spare share? --yes: transfer it--> claim.lua
            |                              `--no--> refuse, with the numbers
            `--UNSHARED--> divide the limits over the cells again --> claim.lua
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from redsched import aio
from redsched.errors import QuotaExceeded, Settling
from redsched.model import CLAIMS, Amounts, Claim, Exceeded, Request
from redsched.model.records.problems import QuotaFacts
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.quotas.shares import QuotaShares, exceeded_by
from redsched.scheduler.quotas.usage import quota_usage
from redsched.store.codec.claim_codec import counting_objects, exceeded
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, ScriptResult
from redsched.store.commands.quotas import QuotaState

if TYPE_CHECKING:
    from redsched.decide.result import Decision

WITHIN_S = 5.0
"""How long a call is repeated while shares are being divided or transferred between cells."""
PAUSE_S = 0.05

NOTHING: Amounts = MappingProxyType({})

A = TypeVar("A", ScriptResult, ClaimReply)


class Quotas:
    """Enforces the quotas of all projects, over all cells of a scheduler."""

    def __init__(self, cells: Cells, shares: QuotaShares) -> None:
        self._cells = cells
        self.shares = shares

    async def claim(self, cell: Cell, call: ClaimCall) -> ClaimReply:
        """Run the claim script within the project's quota. Raises QuotaExceeded, Settling, Unavailable."""
        if not call.project:
            return await cell.store.claims.place(call)
        return await self._within(cell, call.project, lambda: self.claim_once(cell, call), lambda answer: answer.over)

    async def claim_once(self, cell: Cell, call: ClaimCall) -> ClaimReply:
        """Run the claim script once, whether the quota allows the call or not. Raises Unavailable."""
        limited = bool(call.project) and await self._is_shared(call.project)
        return await cell.store.claims.place(replace(call, limited=True) if limited else call)

    async def resize(self, cell: Cell, claim: Claim, token: str, amounts: Amounts) -> ScriptResult:
        """Resize a claim to `amounts` within its project's quota. Raises QuotaExceeded, Settling, Unavailable."""
        objects = counting_objects(claim.server_group, {**claim.slots, **amounts}, claim.gang, claim.project)

        async def attempt() -> ScriptResult:
            limited = await self._is_shared(claim.project)
            return await cell.store.claims.resize(claim.host, claim.claim_id, token, amounts, objects, limited)

        return await self._within(cell, claim.project, attempt, lambda answer: exceeded(answer.facts))

    async def check(self, project: str, decision: "Decision") -> None:
        """Check that claiming these places is within the quota now. Writes nothing. Raises QuotaExceeded, Settling."""
        total: Counter[str] = Counter()
        for place in decision.places:
            total.update(quota_usage(place.chosen.amounts))
        if found := await self._over(project, total):
            raise _refusal(project, found)

    async def exceeded(self, request: Request, besides: Amounts = NOTHING) -> tuple[Exceeded, ...] | None:
        """Return the limits that the request would exceed; None while hosts may still restore claims that count.

        `besides`: what else is to be counted. Writes nothing.
        """
        try:
            # With all rules and NumPy, which commands about claims do without.
            from redsched.decide.scoring.demand import taken_by

            total = Counter({**taken_by(request), CLAIMS: request.places})
            total.update(besides)
            return await self._over(request.project, total)
        except Settling:
            return None

    async def _over(self, project: str, amounts: Amounts) -> tuple[Exceeded, ...]:
        states = await self.shares.read(project) if project else {}
        if not any(state.limits for state in states.values()):
            return ()
        await self._cells.refuse_unsettled(f"what project {project} uses of its quota")
        return exceeded_by(list(states.values()), amounts)

    async def _within(
        self, cell: Cell, project: str, attempt: Callable[[], Awaitable[A]], over: Callable[[A], Sequence[Exceeded]]
    ) -> A:
        """Make a call, and repeat it while other cells can spare shares. Raises QuotaExceeded, Settling."""
        until = aio.now_s() + WITHIN_S
        while True:
            answer = await attempt()
            if answer.outcome is Outcome.OVER_QUOTA:
                beyond = [one for one in over(answer) if one.is_of_range]
                found = beyond or await self.shares.gather(cell, project, over(answer))
                if found:
                    raise _refusal(project, found)
            elif answer.outcome is Outcome.UNSHARED:
                await self.shares.divide(project)
            else:
                return answer
            if aio.now_s() > until:
                raise Settling(f"the quota of project {project} is being divided over the cells: try again")
            await asyncio.sleep(random.uniform(0, PAUSE_S))

    async def _is_shared(self, project: str) -> bool:
        """Return whether several cells share a quota of the project, as far as the first cell knows.

        A scheduler that was opened on demand may have no replica of it, and reads the store. Raises Unavailable.
        """
        first = next(iter(self._cells))
        if len(self._cells) == 1 or not project:
            return False
        if first.updater.is_loaded:
            return project in first.updater.columns.declared.quotas
        stored = await first.store.declared.read(Kind.QUOTA, [project])
        return bool(QuotaState.parse(stored.get(project, {})).limits)


def _refusal(project: str, found: Sequence[Exceeded]) -> QuotaExceeded:
    message = ", ".join(one.detail for one in found)
    if all(one.is_of_range for one in found):
        text = f"project {project} would use more than can be counted: {message}. Release claims, or request less"
    else:
        text = f"the quota of project {project} does not allow it: {message}. Release claims, or raise the quota"
    return QuotaExceeded(
        text,
        QuotaFacts(project=project, exceeded=tuple(found)),
    )
