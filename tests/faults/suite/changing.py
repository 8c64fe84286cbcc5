"""Changing what an owner holds: resized, moved, failed, shelved, unshelved. Said before, and what came of it after."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from random import Random
from typing import Any

from redsched.errors import ClaimState, Conflict, NotFound, NoValidHost, QuotaExceeded, RedschedError, Unavailable
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.scheduler import Scheduler
from tests.faults.suite import traffic
from tests.faults.suite.speech import say

AGAIN_S = (0.05, 0.2)
"""Before asking again after an error that says so."""

RESIZE = 0.5
"""How many of the changes that nothing is promised of are resizes, where the kind allows it."""

REFUSED = (Conflict, QuotaExceeded)
ENDING_OR_ENDED = (ClaimStatus.ENDING, ClaimStatus.ENDED)


class Left(Enum):
    """What its owner has of a claim after a change."""

    HELD = auto()
    SHELVED = auto()
    NOTHING = auto()
    UNCLEAR = auto()
    """It was refused, or is not known: the owner gives it back, whatever there is of it."""


class Changing:
    """The verbs that change claims, sent until they are answered."""

    def __init__(self, scheduler: Scheduler, rng: Random) -> None:
        self._claims = scheduler.claims
        self._migrations = scheduler.migrations
        self._rng = rng

    async def change(self, claim_id: str) -> Left:
        """Resize it or move it, once: nothing is promised but that it stays its owner's."""
        try:
            token = (await self._claims.get(claim_id)).token
            if traffic.kind_of(claim_id) in traffic.RESIZED and self._rng.random() < RESIZE:
                await self._claims.resize(claim_id, token, {}, {"VCPU": self._rng.choice((1, 2))})
            else:
                await self._migrations.move(claim_id, token)
        except (*REFUSED, NotFound):
            say("looked")
        except Unavailable as error:
            say("trouble", error=type(error).__name__)
        else:
            say("changed", id=claim_id)
        return Left.HELD

    async def fail(self, claim_id: str) -> Left:
        """Say that its work could not be started: it goes where there is room, or with no alternates it ends.

        Only of claims that stand alone: of several places the others may go with it.
        """
        if traffic.stands_with_others(claim_id):
            return Left.HELD
        alternates = self._rng.choice((None, ()))
        say("failing", id=claim_id)
        try:
            before = await self.answered(lambda: self._claims.get(claim_id), NotFound)
            now = await self.answered(
                lambda: self._migrations.fail(claim_id, before.token, alternates), NotFound, *REFUSED
            )
        except (NotFound, *REFUSED):
            return Left.UNCLEAR
        if now.state in ENDING_OR_ENDED and before.closed_reason is EndReason.SHELVED:
            return Left.UNCLEAR  # what could not be started again is shelved still
        if now.state in ENDING_OR_ENDED:
            say("gave", id=claim_id, how=f"failed, {now.state}")
            return Left.NOTHING
        return _kept(claim_id, now)

    async def shelve(self, claim_id: str) -> Left:
        """Give its place back and keep it."""
        say("shelving", id=claim_id)
        try:
            token = (await self.answered(lambda: self._claims.get(claim_id), NotFound)).token
            await self.answered(lambda: self._claims.shelve(claim_id, token), NotFound, *REFUSED)
        except (NotFound, *REFUSED):
            return Left.UNCLEAR
        say("shelved", id=claim_id)
        return Left.SHELVED

    async def unshelve(self, claim_id: str) -> Left:
        """Have a place for it again."""
        say("unshelving", id=claim_id)
        try:
            now, _ = await self.answered(lambda: self._migrations.unshelve(claim_id), NotFound, *REFUSED)
        except (NotFound, *REFUSED) as error:
            leaves = isinstance(error, ClaimState) and error.facts.get("state") == ClaimStatus.ENDING
            if not (leaves or isinstance(error, NoValidHost | QuotaExceeded)):
                return Left.UNCLEAR
            say("shelved", id=claim_id)
            return Left.SHELVED
        return _kept(claim_id, now)

    async def answered(self, call: Callable[[], Awaitable[Any]], *answers: type[RedschedError]) -> Any:
        """Call as often as it takes. `NotFound` is no answer to a request: the group is declared anew in a moment."""
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
