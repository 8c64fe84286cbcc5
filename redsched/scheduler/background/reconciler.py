"""Deferred reconciliation work of one cell: placements to release, gangs to end, failed claims to place.

A script that leaves work unfinished lists the claim in `reconcile` in the same call, so nothing is lost if a scheduler
dies between two steps: any other scheduler finds it there. Each step can be repeated, or run by two schedulers at once.
"""

import asyncio
from collections.abc import Awaitable, Callable

from redsched import aio, logs, origin
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import ClaimState, NoValidHost, QuotaExceeded, RedschedError
from redsched.model import ENDING_OR_ENDED, Claim, ClaimStatus, GangOnExit
from redsched.origin import SCHEDULER
from redsched.pacing import Spread
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by

BATCH = 100
AT_ONCE = 20
CLOSED_WITHIN_S = 1.0
"""How long a closing scheduler continues with placements that it has begun. Other schedulers do the rest."""

PlaceAgain = Callable[[Claim], Awaitable[object]]
"""Finds another place for a pending claim, or ends it. Raises RedschedError if it must be retried later."""

log = logs.get_logger(__name__)


class Reconciler:
    """Reconciles the due claims of one cell."""

    def __init__(self, store: CellStore, updater: ReplicaUpdater, place_again: PlaceAgain) -> None:
        self._store = store
        self._updater = updater
        self._place_again = place_again
        self._begun: set[tuple[str, str]] = set()
        """Pending claims that are being placed outside the sweeps, by id and the token that has failed."""
        self._later = aio.BackgroundTasks("redsched-place-again")

    async def stop(self) -> None:
        """Stop the placements in the background."""
        await self._later.stop(CLOSED_WITHIN_S)

    def begin(self, claim: Claim) -> None:
        """Place a pending claim as soon as it is due, in the background, because a caller waits for it."""
        attempt = (claim.claim_id, claim.retry_from)
        if attempt not in self._begun:
            self._begun.add(attempt)
            self._later.begin(self._place_in_time(claim, attempt))

    async def _place_in_time(self, claim: Claim, attempt: tuple[str, str]) -> None:
        origin.enter(SCHEDULER)
        try:
            due_ms = await self._store.due.reconcile_at_ms(claim.claim_id)
            if due_ms is None:
                return  # another scheduler has placed it
            await asyncio.sleep(max(0, due_ms - self._updater.now_ms()) / 1000)
            await self._reconcile(claim.claim_id, claim)
        except RedschedError as error:
            log.warning("reconcile failed", cell=self._store.name, claim=claim.claim_id, problem=error.detail)
        finally:
            self._begun.discard(attempt)

    async def run_once(self) -> None:
        """Reconcile each due claim once; what cannot be done yet is left for the next call. Raises Unavailable."""
        seen, offset = Spread[bool](), 0
        while due := await self._store.due.to_reconcile(self._updater.now_ms(), offset, BATCH):
            fresh = [one for one in due if one not in seen]
            offset += len(due) - len(fresh)  # skip claims that are still due after their reconciliation
            seen.update(dict.fromkeys(fresh, True))
            claims = await self._store.claims.read(fresh)
            for first in range(0, len(fresh), AT_ONCE):
                await aio.gather(self._reconcile(one, claims.get(one)) for one in fresh[first : first + AT_ONCE])
            if len(due) < BATCH:
                break
        await seen.free_in_slices()

    async def _place(self, claim: Claim) -> None:
        try:
            await self._place_again(claim)
        except (NoValidHost, QuotaExceeded, ClaimState) as error:
            # The claim has ended, or waits for room; its events and its reason record that.
            log.debug("reconcile failed", cell=self._store.name, claim=claim.claim_id, problem=error.detail)

    async def _end_gang(self, claim: Claim) -> bool:
        """Release the others of a gang that ends with this claim. Returns whether it does, and all are released."""
        if claim.gang_exit is GangOnExit.RELEASE:
            return await self._store.gangs.release_others(claim)
        return bool(claim.gang) and await self._store.gangs.end(claim.gang)

    async def _reconcile(self, claim_id: str, claim: Claim | None) -> None:
        """Reconcile one claim. Errors are logged."""
        try:
            if claim is not None and claim.state is ClaimStatus.PENDING:
                await self._place(claim)
            gang_done = claim is not None and claim.state in ENDING_OR_ENDED and await self._end_gang(claim)
            await self._store.claims.reconcile([claim_id], counted_by(claim) if claim else (), gang_done)
        except RedschedError as error:
            log.warning("reconcile failed", cell=self._store.name, claim=claim_id, problem=error.detail)
