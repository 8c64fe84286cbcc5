"""Change what an owner holds: resize, move, fail, shelve, unshelve. Announce each change, then report its result."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from random import Random
from typing import Any

from redsched.errors import ClaimState, Conflict, NotFound, NoValidHost, QuotaExceeded, RedschedError, Unavailable
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.scheduler import Scheduler
from tests.faults.suite.callers import traffic
from tests.faults.suite.processes.speech import say

AGAIN_S = (0.05, 0.2)
"""Pause before a retry after an error that asks for one."""

RESIZE = 0.5
"""The share of resizes among the changes that promise nothing, for kinds that allow resizes."""

REFUSED = (Conflict, QuotaExceeded)
ENDING_OR_ENDED = (ClaimStatus.ENDING, ClaimStatus.ENDED)


class Left(Enum):
    """What the owner holds of a claim after a change."""

    HELD = auto()
    SHELVED = auto()
    NOTHING = auto()
    UNCLEAR = auto()
    """The change was refused, or the claim is unknown: the owner releases it in either case."""


class Changing:
    """The verbs that change claims, retried until they are answered."""

    def __init__(self, scheduler: Scheduler, rng: Random) -> None:
        self._claims = scheduler.claims
        self._rng = rng

    async def change(self, claim_id: str) -> Left:
        """Resize or move the claim once. Nothing is promised except that it stays its owner's."""
        try:
            token = (await self._claims.get(claim_id)).token
            if traffic.kind_of(claim_id) in traffic.RESIZED and self._rng.random() < RESIZE:
                say("resizing", id=claim_id)
                await self._claims.resize(claim_id, token, {"VCPU": self._rng.choice((1, 2))})
            else:
                say("moving", id=claim_id)
                await self._claims.move(claim_id, token)
        except (*REFUSED, NotFound) as error:
            say("looked", id=claim_id, error=type(error).__name__)
        except Unavailable as error:
            say("trouble", id=claim_id, error=type(error).__name__)
        else:
            say("changed", id=claim_id)
        return Left.HELD

    async def fail(self, claim_id: str) -> Left:
        """Report that its work could not be started: it is placed where there is room, or without alternates it ends.

        Used only for claims that stand alone: with several places the others might end too.
        """
        if traffic.stands_with_others(claim_id):
            return Left.HELD
        alternates = self._rng.choice((None, ()))
        say("failing", id=claim_id)
        try:
            before = await self.answered(lambda: self._claims.get(claim_id), NotFound)
            now = await self.answered(lambda: self._claims.fail(claim_id, before.token, alternates), NotFound, *REFUSED)
        except (NotFound, *REFUSED):
            return Left.UNCLEAR
        if now.state in ENDING_OR_ENDED and before.closed_reason is EndReason.SHELVED:
            return Left.UNCLEAR  # still shelved, because it could not be started again
        if now.state in ENDING_OR_ENDED:
            say("gave", id=claim_id, how=f"failed, {now.state}")
            return Left.NOTHING
        return _kept(claim_id, now)

    async def shelve(self, claim_id: str) -> Left:
        """Shelve the claim: release its place and keep it."""
        say("shelving", id=claim_id)
        try:
            token = (await self.answered(lambda: self._claims.get(claim_id), NotFound)).token
            await self.answered(lambda: self._claims.shelve(claim_id, token), NotFound, *REFUSED)
        except (NotFound, *REFUSED):
            return Left.UNCLEAR
        say("shelved", id=claim_id)
        return Left.SHELVED

    async def unshelve(self, claim_id: str) -> Left:
        """Unshelve the claim."""
        say("unshelving", id=claim_id)
        try:
            now = await self.answered(lambda: self._claims.unshelve(claim_id), NotFound, *REFUSED)
        except (NotFound, *REFUSED) as error:
            leaves = isinstance(error, ClaimState) and error.facts.state == ClaimStatus.ENDING
            if not (leaves or isinstance(error, NoValidHost | QuotaExceeded)):
                return Left.UNCLEAR
            say("shelved", id=claim_id)
            return Left.SHELVED
        return _kept(claim_id, now)

    async def answered(self, call: Callable[[], Awaitable[Any]], *answers: type[RedschedError]) -> Any:
        """Retry a call until it is answered. `NotFound` is not final: the operator declares the group again soon."""
        while True:
            try:
                return await call()
            except answers:
                raise
            except (Unavailable, NotFound) as error:
                say("trouble", error=type(error).__name__)
            await asyncio.sleep(self._rng.uniform(*AGAIN_S))


def _kept(claim_id: str, now: Claim) -> Left:
    say("kept", id=claim_id, host=now.host, token=now.token, expires_at_ms=now.expires_at_ms)
    return Left.HELD
