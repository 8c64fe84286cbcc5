"""Answer only when the hosts have confirmed the claims, and undo the claims otherwise.

Undo is atomic for each claim: the script releases it unless it has become active. If all claims of a request have
become active in the meantime, the request succeeds; otherwise all are released. A claim that has moved is awaited or
undone at its new place. If the caller disconnects, its claims are undone in the background, because the caller does not
learn about them; claims that another call with the same ids has returned are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from redsched import aio, logs
from redsched.errors import NotConfirmed, NotDurable, OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.model import Claim, ClaimStatus, EndReason, Request
from redsched.model.records.selections import Selection, Selections
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.selection.confirmations import ConfirmationWaiter
from redsched.scheduler.selection.failed_attempts import FailedAttempt, sentence
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ReleaseMode

AGAIN_AFTER_S = 0.2
LEASE_NOTICED_S = 5.0
"""The longest time that a scheduler takes to notice that a claim's lease has expired and have it placed again."""
UNDONE_WITHIN_S = 30.0
"""How long an undo is retried while the store is unavailable or the host has not attested."""
CLOSED_WITHIN_S = 5.0
"""How long a closing scheduler continues to undo claims."""

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Undoing:
    """Why claims are released. With `call_id`, only claims that this claim call was the last to return."""

    end_reason: EndReason
    reason: str
    call_id: str = ""


class ActiveWaiter:
    """Delays answers until hosts have confirmed the claims."""

    def __init__(self, cells: Cells, confirmations: Mapping[str, ConfirmationWaiter]) -> None:
        """Take the `confirmations` by the name of their cell."""
        self._cells = cells
        self._confirmations = confirmations
        self._later = aio.BackgroundTasks("redsched-undo", inherits=True)

    async def stop(self) -> None:
        """Wait until the claims of disconnected callers are undone, for CLOSED_WITHIN_S at most."""
        await self._later.stop(CLOSED_WITHIN_S)

    async def placed(self, place: Callable[[], Coroutine[Any, Any, Selections]], call_id: str) -> Selections:
        """Return what `place` claims. If cancelled before that, undo the claims as soon as they are known.

        `call_id` is that of the claim calls, '' if they have none; with it, claims that another call has returned since
        are kept.
        """
        placing = asyncio.ensure_future(place())
        try:
            return await asyncio.shield(placing)
        except asyncio.CancelledError:
            self._later.begin(self._undo(placing, call_id))
            raise

    async def confirmed(self, request: Request, found: Selections, call_id: str) -> Selections:
        """Return the selections once the hosts have confirmed them. `call_id` is used as in `placed`.

        Raises NotConfirmed (all claims are released), OutcomeUnknown (they could not be released or read).
        """
        if not found.selections:
            return found
        cell = self._cells.named(found.selections[0].cell)
        try:
            now = await self._waited(cell, found, request)
        except asyncio.CancelledError:
            # Claims with ids that were sent before also belong to another call, which may still wait for them.
            if found.fresh:
                self._later.begin(self._undo(_ready(found), call_id))
            raise
        except StoreUnavailable as error:
            # The claims may be active, and only this error tells the caller the ids generated for the call.
            message = f"whether the claim is active could not be read: {error.detail}"
            raise OutcomeUnknown(message, {"claim_ids": [one.claim_id for one in found.selections]}) from error
        return replace(found, selections=tuple(_active(one, now[one.claim_id or ""]) for one in found.selections))

    async def _waited(self, cell: Cell, found: Selections, request: Request) -> Mapping[str, Claim]:
        """Wait until all claims are active, and return them by id. Raises NotConfirmed, OutcomeUnknown.

        Without a timeout in the request, each placement may take as long as its lease: if a host does not confirm, the
        wait continues for the next host.
        """
        lease_s = request.lease_s + LEASE_NOTICED_S
        now = _claims(cell, found)
        if not found.fresh:
            now = await _present(cell, now)
        hosts = {one.claim_id: one.host for one in now.values()}
        timeout_s = request.confirm_timeout_s
        missing = await self._confirmations[cell.name].wait(hosts, timeout_s or lease_s, 0 if timeout_s else lease_s)
        if missing and await self._undone(cell, now.values(), _Undoing(EndReason.FAILED, _not_in_time(missing))):
            raise _not_confirmed(now, missing)
        # Claims may have moved, or failed on their first hosts and been placed again.
        return await _present(cell, now)

    async def _undo(self, placing: Awaitable[Selections], call_id: str) -> None:
        try:
            found = await placing
            if found.fresh and found.selections:
                cell = self._cells.named(found.selections[0].cell)
                undoing = _Undoing(EndReason.RELEASED, "its caller went away before it was active", call_id)
                await self._undone(cell, _claims(cell, found).values(), undoing, although_active=True)
        except RedschedError as error:
            log.warning("undo failed", problem=error.detail, facts=dict(error.facts))

    async def _undone(
        self, cell: Cell, claims: Collection[Claim], undoing: _Undoing, although_active: bool = False
    ) -> bool:
        """Release the claims. Returns False if all have become active, in which case they are kept."""
        active = [one for one in claims if not await self._give_back(cell, one, ReleaseMode.UNLESS_ACTIVE, undoing)]
        if len(active) == len(claims) and not although_active:
            return False
        for one in active:
            await self._give_back(cell, one, ReleaseMode.ASK, undoing)
        return True

    async def _give_back(self, cell: Cell, claim: Claim, how: ReleaseMode, undoing: _Undoing) -> bool:
        """Release a claim, retrying until its host has attested. Returns False if it is active, and therefore kept."""
        claim_id, until = claim.claim_id, aio.now_s() + UNDONE_WITHIN_S
        while aio.now_s() < until:
            try:
                objects = counting_objects(claim.server_group, claim.slots, claim.gang, claim.project)
                answer = await cell.store.claims.release(
                    claim.host,
                    claim.claim_id,
                    "",
                    how,
                    objects,
                    undoing.call_id,
                    end_reason=undoing.end_reason,
                    reason=undoing.reason,
                )
            except (StoreUnavailable, OutcomeUnknown, NotDurable):  # a release can be repeated
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            if answer.outcome is Outcome.ACTIVE:
                return False
            if answer.outcome is Outcome.STALE and undoing.call_id:
                return True
            if answer.outcome is Outcome.UNKNOWN:
                # Its host may still restore it, so have it closed in this epoch too.
                cell.released.abandon([claim.claim_id])
            elif answer.facts and answer.facts[0]:
                cell.released.note(claim.claim_id, answer, undoing.end_reason)
            return True
        raise OutcomeUnknown(
            f"claim {claim_id} was not confirmed in time and could not be undone either: read it, or release it",
            {"claim_ids": [claim_id]},
        )


async def _ready(found: Selections) -> Selections:
    return found


def _claims(cell: Cell, found: Selections) -> Mapping[str, Claim]:
    """Return the claims that were made, by id."""
    return {
        one.claim_id or "": Claim(
            one.claim_id or "", cell.name, one.host, ClaimStatus.CLAIMED, one.token or "", one.slots
        )
        for one in found.selections
    }


async def _present(cell: Cell, known: Mapping[str, Claim]) -> Mapping[str, Claim]:
    """Return the claims as they are now, or as in `known` if the store lacks them. Raises StoreUnavailable."""
    return {**known, **await cell.store.claims.read(known)}


def _not_in_time(missing: Sequence[FailedAttempt]) -> str:
    """Return the reason of the release, which is stored with each claim."""
    return f"released, because not everything that was claimed was active in time: {sentence(missing)}"


def _not_confirmed(claim_ids: Iterable[str], missing: Sequence[FailedAttempt]) -> NotConfirmed:
    facts = {"claim_ids": list(claim_ids), "failed_attempts": [asdict(one) for one in missing]}
    return NotConfirmed(f"{sentence(missing)}; everything that was claimed is released", facts)


def _active(place: Selection, now: Claim) -> Selection:
    """Return the selection as active, with the place where its claim is now."""
    where = place
    if now.placements:
        where = replace(place, host=now.host, token=now.token, slots=now.slots, alternates=now.alternates)
    return replace(where, state=ClaimStatus.ACTIVE, expires_at_ms=None)
