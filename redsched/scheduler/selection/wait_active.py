"""Answer only when the hosts have confirmed the claims, and undo the claims otherwise.

Undo is atomic for each claim: the script releases it unless it has become active. If all claims of a request have
become active in the meantime, the request succeeds; otherwise all are released. A claim that has moved is awaited or
undone at its new place. If the caller disconnects, its claims are undone in the background, because the caller does not
learn about them; claims that another call with the same ids has returned are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redsched import aio, logs
from redsched.errors import NotConfirmed, NotDurable, OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.model import Claim, ClaimStatus, EndReason, Request
from redsched.model.records.problems import FailedAttempt, NotConfirmedFacts, UnavailableFacts, members
from redsched.model.records.selections import Selection, Selections
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.selection.confirmations import ConfirmationWaiter
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult

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
            raise OutcomeUnknown(
                message, UnavailableFacts(claim_ids=tuple(one.claim_id or "" for one in found.selections))
            ) from error
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
        if missing and await self._undone(cell, now, _Undoing(EndReason.FAILED, _not_in_time(missing))):
            raise _not_confirmed(now, missing)
        # Claims may have moved, or failed on their first hosts and been placed again.
        return await _present(cell, now)

    async def _undo(self, placing: Awaitable[Selections], call_id: str) -> None:
        """Release what was claimed for a caller who went away, active or not."""
        try:
            found = await placing
        except RedschedError:
            return
        if not found.fresh or not found.selections:
            return
        cell = self._cells.named(found.selections[0].cell)
        undoing = _Undoing(EndReason.RELEASED, "its caller went away before it was active", call_id)
        for claim in _claims(cell, found).values():
            try:
                answer = await self._give_back(cell, claim, ReleaseMode.ASK, undoing)
            except RedschedError as error:
                log.warning("undo failed", problem=members(error))
            else:
                _remember(cell, claim.claim_id, answer, undoing)

    async def _undone(self, cell: Cell, claims: Mapping[str, Claim], undoing: _Undoing) -> bool:
        """Release the claims. Returns False if all have become active, in which case they are kept.

        Raises OutcomeUnknown, with the ids of all claims.
        """
        answers = dict[str, ScriptResult]()
        try:
            for claim_id, claim in claims.items():
                answers[claim_id] = await self._give_back(cell, claim, ReleaseMode.UNLESS_ACTIVE, undoing)
            active = [claim_id for claim_id, answer in answers.items() if answer.outcome is Outcome.ACTIVE]
            if len(active) == len(claims):
                return False
            for claim_id in active:
                answers[claim_id] = await self._give_back(cell, claims[claim_id], ReleaseMode.ASK, undoing)
        except OutcomeUnknown as error:
            raise OutcomeUnknown(error.detail, UnavailableFacts(claim_ids=tuple(claims))) from error
        # Only ends that the caller learns of may be repeated: one who gets an error may send the ids again, and be
        # answered with claims that hosts have restored.
        for claim_id, answer in answers.items():
            _remember(cell, claim_id, answer, undoing)
        return True

    async def _give_back(self, cell: Cell, claim: Claim, how: ReleaseMode, undoing: _Undoing) -> ScriptResult:
        """Release a claim, retrying while that cannot be known to be done. Returns the reply. Raises OutcomeUnknown."""
        until = aio.now_s() + UNDONE_WITHIN_S
        objects = counting_objects(claim.server_group, claim.slots, claim.gang, claim.project)
        while aio.now_s() < until:
            try:
                return await cell.store.claims.release(
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
        raise OutcomeUnknown(
            f"claim {claim.claim_id} was not confirmed in time and could not be undone either: read it, or release it"
        )


def _remember(cell: Cell, claim_id: str, answer: ScriptResult, undoing: _Undoing) -> None:
    """Note a release, for epochs whose store may have lost it."""
    if answer.outcome is Outcome.UNKNOWN:
        # Its host may still restore it, so it is closed in this epoch too, up to now: its caller may send the id again.
        cell.released.abandon([claim_id], answer.facts[0])
    elif answer.outcome is not Outcome.STALE and answer.facts[0]:
        cell.released.note(claim_id, answer, undoing.end_reason)


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
    return f"released, because not everything that was claimed was active in time: {_sentence(missing)}"


def _sentence(attempts: Sequence[FailedAttempt]) -> str:
    """Describe the attempts of the first claim in a sentence, with the number of further claims."""
    claim_ids = tuple(dict.fromkeys(one.claim_id for one in attempts))
    first = "; ".join(str(one) for one in attempts if one.claim_id == claim_ids[0])
    more = f", and {len(claim_ids) - 1} more" if len(claim_ids) > 1 else ""
    return f"claim {claim_ids[0]}: {first}{more}"


def _not_confirmed(claim_ids: Iterable[str], missing: Sequence[FailedAttempt]) -> NotConfirmed:
    facts = NotConfirmedFacts(claim_ids=tuple(claim_ids), failed_attempts=tuple(missing))
    return NotConfirmed(f"{_sentence(missing)}; everything that was claimed is released", facts)


def _active(place: Selection, now: Claim) -> Selection:
    """Return the selection as active, with the place where its claim is now."""
    where = place
    if now.placements:
        where = replace(place, host=now.host, token=now.token, slots=now.slots, alternates=now.alternates)
    return replace(where, state=ClaimStatus.ACTIVE, expires_at_ms=None)
