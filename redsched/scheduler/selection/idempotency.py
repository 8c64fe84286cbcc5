"""Look up the existing outcome of a caller's own claim ids, before a request is refused or placed again.

An id has one outcome (docs/architecture.md, "Ids"). The claim script ensures that for calls that pass it all of their
ids. This module handles calls that never reach the script, because something they name no longer exists, and
incremental calls, which used only the first of their ids.
"""

from collections.abc import Mapping

from redsched.errors import ClaimIdReused, ClaimState
from redsched.model import Claim, ClaimStatus, Request
from redsched.model.records.problems import ClaimIdsFacts, ClaimStateFacts
from redsched.model.records.selections import Selections
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import find_known
from redsched.scheduler.claims.owners import refuse_others
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.claim_call import from_existing


async def existing_outcome(attempt: SchedulingAttempt, cells: Cells) -> Selections | None:
    """Return the outcome of the request's own ids; None if it has no ids, or no claim with one is known.

    Raises ClaimIdReused (they belong to another request), Forbidden (others own them, and the attempt is for claims of
    its owner only), ClaimState (some have ended or are unknown), Settling, NotDurable.
    """
    request = attempt.request
    if not request.claim_ids or not request.claim:
        return None
    found = await find_known(cells, request.claim_ids)
    if found is not None and _is_partial(request, found[1]):
        await cells.refuse_unsettled(f"each of claims {', '.join(request.claim_ids)}")
        # Hosts may have restored the other claims after the first read, before the cell settled.
        found = await find_known(cells, request.claim_ids)
    if found is None:
        return None
    cell, held = found
    if any(_is_of_other(claim, request) for claim in held.values()):
        raise id_reused(request)
    if attempt.own_only:
        refuse_others(attempt.owner, held.values())
    existing = _existing(request, cell, held)
    await cell.store.claims.require_durable()
    return existing


def _is_of_other(claim: Claim, request: Request) -> bool:
    """Return whether a claim is that of another request.

    An ended claim without a digest is of an unknown one: the store had lost the claim, and a host has reported its end.
    """
    is_unknown = claim.state is ClaimStatus.ENDED and not claim.digest
    return claim.digest != request.digest() and not is_unknown


def _existing(request: Request, cell: Cell, held: dict[str, Claim]) -> Selections:
    gone = [claim_id for claim_id, claim in held.items() if not claim.is_live]
    if gone:
        raise has_ended(gone, held)
    if _is_partial(request, held):
        raise only_some_known(request, held)
    return from_existing(request, cell, request.claim_ids, held)


def _is_partial(request: Request, held: dict[str, Claim]) -> bool:
    return request.mode == "all" and len(held) < len(request.claim_ids)


def id_reused(request: Request) -> ClaimIdReused:
    """Return the error for ids that belong to another request."""
    return ClaimIdReused(
        f"claim id {', '.join(request.claim_ids)} exists with other content: "
        "repeat the original request, or use new ids",
        ClaimIdsFacts(claim_ids=tuple(request.claim_ids)),
    )


def only_some_known(request: Request, held: dict[str, Claim]) -> ClaimState:
    """Return the error for ids of which the store has lost some, and hosts have restored the others.

    The known claims are not ended here: they may have been active for long, and only their owner can tell whether they
    are useful without the others.
    """
    lost = [claim_id for claim_id in request.claim_ids if claim_id not in held]
    return ClaimState(
        f"of these claims only {', '.join(held)} is known: the store has lost {', '.join(lost)}, or never had them: "
        "release the known ones, and use new ids to claim again",
        ClaimStateFacts(claims=_states(held), unknown=tuple(lost)),
    )


def has_ended(gone: list[str], held: dict[str, Claim]) -> ClaimState:
    """Return the error for ids whose claims (`gone`) have ended; the request's other claims may still be held."""
    message = f"claim {', '.join(gone)} has ended or is ending: use new ids to claim again"
    return ClaimState(message, ClaimStateFacts(claims=_states(held)))


def _states(held: Mapping[str, Claim]) -> dict[str, ClaimStatus]:
    return {claim_id: claim.state for claim_id, claim in held.items()}
