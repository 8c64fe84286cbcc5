"""Carry out planned moves, one after the other, each by the ordinary move of a claim."""

import asyncio
from collections.abc import Sequence

from redsched import aio
from redsched.errors import ClaimState, Conflict, NotFound, TooHard, Unavailable
from redsched.model import ENDING_OR_ENDED, Claim, ClaimStatus
from redsched.model.records.plans import Applied, AppliedMove, Move
from redsched.scheduler.claims.claims import ClaimService

PAUSE_S = 0.2
"""How often it is looked whether the work of a moved claim runs."""


async def carried_out(claims: ClaimService, moves: Sequence[Move], timeout_s: float) -> Applied:
    """Carry out moves as `PlanService.apply` does."""
    found: list[AppliedMove] = []
    for move in moves:
        try:
            problem = await _problem(claims, move, timeout_s)
        except Unavailable as error:
            if not found:
                raise
            problem = error.detail
        found.append(AppliedMove(move.claim_id, move.source, move.target, problem))
        if problem:
            break
    return Applied(tuple(found))


async def _problem(claims: ClaimService, move: Move, timeout_s: float) -> str:
    """Make a move; return '' or why it failed."""
    try:
        claim = await claims.get(move.claim_id)
        if _is_there(claim, move):
            return ""
        _refuse_changed(claim, move)
        await claims.move(move.claim_id, move.token, (move.target,))
        return await _until_there(claims, move, timeout_s)
    except (Conflict, NotFound, TooHard) as error:
        return error.detail


async def _until_there(claims: ClaimService, move: Move, timeout_s: float) -> str:
    until_s = aio.now_s() + timeout_s
    while True:
        claim = await claims.get(move.claim_id)
        if _is_there(claim, move):
            return ""
        if _has_failed(claim, move):
            reason = f": {claim.reason.line}" if claim.reason is not None else ""
            return f"its work could not be started on {move.target}, and it stays on {move.source}{reason}"
        if _has_ended(claim, move):
            where = " and ".join(claim.hosts) or "no host"
            return f"the claim is {claim.state} on {where} by now: its move has ended"
        if aio.now_s() >= until_s:
            return f"it was not active on {move.target} alone within {timeout_s:g} s; the move goes on"
        await asyncio.sleep(PAUSE_S)


def _refuse_changed(claim: Claim, move: Move) -> None:
    if claim.host != move.source or claim.token != move.token or claim.state is not ClaimStatus.ACTIVE:
        where = claim.host or "no host"
        raise ClaimState(
            f"claim {claim.claim_id} is {claim.state} on {where} and has changed since the plan: plan again"
        )


def _is_there(claim: Claim, move: Move) -> bool:
    return claim.hosts == (move.target,) and claim.state is ClaimStatus.ACTIVE


def _has_ended(claim: Claim, move: Move) -> bool:
    """Return whether a claim has ended, or was placed anew, while it was moved."""
    is_gone = claim.state in ENDING_OR_ENDED or claim.state is ClaimStatus.PENDING
    return is_gone or not {move.source, move.target}.intersection(claim.hosts)


def _has_failed(claim: Claim, move: Move) -> bool:
    return claim.hosts == (move.source,)
