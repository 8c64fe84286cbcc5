"""Chores: what claims leave to be done, of one cell. Successions to finish, gangs to end.

The scripts that make a chore note it in the same call, so a scheduler that dies between two steps leaves none undone:
any other one finds it here. Each can be done twice, or by two at once.
"""

import structlog

from redsched import tasks
from redsched.cache.mirror import CellMirror
from redsched.errors import RedschedError
from redsched.model import OVER, Claim, ClaimStatus
from redsched.store import CellStore, Outcome

BATCH = 100
AT_ONCE = 20
FIRST_PAUSE_MS = 1000
LONGEST_PAUSE_MS = 60_000
MOST_TRIES_KNOWN = 10_000
ANY_TIME_MS = 1 << 53

log = structlog.get_logger(__name__)


class Chores:
    """Those of one cell."""

    def __init__(self, store: CellStore, mirror: CellMirror) -> None:
        self._store = store
        self._mirror = mirror
        self._tries: dict[str, int] = {}
        """How often a chore could not be done yet, by claim. Who forgets it only asks sooner."""

    async def work_off(self) -> None:
        """Do what is due; what cannot be done yet is put off. Raises Unavailable."""
        seen = set[str]()
        if len(self._tries) > MOST_TRIES_KNOWN:
            self._tries.clear()
        while due := await self._store.due_chores(self._mirror.now_ms(), 0, BATCH):
            claims = await self._store.read_claims(due)
            for first in range(0, len(due), AT_ONCE):
                ids = due[first : first + AT_ONCE]
                # What is still due although it was done is put off: nothing may keep this loop from its end.
                again = seen.intersection(ids)
                seen.update(ids)
                await tasks.together(self._do(one, claims.get(one), one in again) for one in ids)
            if len(due) < BATCH:
                break

    async def lead_to(self, owners_id: str) -> None:
        """Have an owner's id lead to what its host has brought back of it, whenever that is due. Raises Unavailable.

        In a new epoch only the chore of the claim that lives knows that id, until it has been done.
        """
        theirs: list[str] = []
        offset = 0
        while some := await self._store.due_chores(ANY_TIME_MS, offset, BATCH):
            theirs += [one.id for one in (await self._store.read_claims(some)).values() if one.origin == owners_id]
            offset += BATCH
        for claim_id in theirs:  # not before all are read: each that is done moves up those behind it
            await self._store.succeed(claim_id)

    async def _do(self, claim_id: str, claim: Claim | None, is_again: bool) -> None:
        """Do one, or put it off. Raises Unavailable."""
        try:
            done = not is_again and await self._done(claim_id, claim)
        except RedschedError as error:
            log.warning("chore", cell=self._store.name, claim=claim_id, problem=error.detail)
            done = False
        if done:
            self._tries.pop(claim_id, None)
            return
        tries = self._tries[claim_id] = self._tries.get(claim_id, 0) + 1
        pause_ms = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(tries - 1, 6))
        await self._store.chore_done(claim_id, (), pause_ms)

    async def _done(self, claim_id: str, claim: Claim | None) -> bool:
        """Do what a claim's fields say; False to try again later."""
        if claim is None:
            await self._store.chore_done(claim_id, ())
            return True
        is_over, all_done, fields = claim.state is ClaimStatus.ENDED, True, set[str]()
        if claim.former or claim.origin or (is_over and claim.next):
            # When it is due again, if at all, succeed.lua says itself, unless a host has not attested yet.
            all_done = (await self._store.succeed(claim_id)).outcome is not Outcome.ATTEST
        if claim.gang and claim.state in OVER:
            # One that has come up keeps its gang's name too, until it ends.
            ended = await self._store.end_gang(claim.gang)
            fields |= {"gang"} if ended else set()
            all_done = all_done and ended
        if all_done or fields:
            await self._store.chore_done(claim_id, fields)
        return all_done
