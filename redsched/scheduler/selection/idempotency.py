"""What a caller's own claim ids were given before: read from the store, before anything is refused or placed anew.

An id has one outcome (docs/architecture.md, "Ids"). The claim script sees to that where all ids of a call go through
it; this is for calls that do not get there, because what they name is gone by now, and for incremental ones, of whose
ids only the first were used.
"""

from redsched.errors import ClaimIdReused, ClaimState
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.results import Selections
from redsched.scheduler.selection.claim_call import from_existing


async def existing_outcome(request: Request, cells: Cells) -> Selections | None:
    """The outcome of the request's own ids; None where it has none, or none of them is known.

    Raises ClaimIdReused (they belong to other content), ClaimState (some have ended, or are not known), Settling.
    """
    if not request.claim_ids or not request.claim:
        return None
    found = await cells.known(request.claim_ids)
    if found is not None and _is_partial(request, found[1]):
        await cells.refuse_unsettled(f"each of claims {', '.join(request.claim_ids)}")
        # The cell may have settled since that was read, and hosts have brought the others back before.
        found = await cells.known(request.claim_ids)
    if found is None:
        return None
    cell, held = found
    return _told(request, cell, held)


def _told(request: Request, cell: Cell, held: dict[str, Claim]) -> Selections:
    others = [claim_id for claim_id, claim in held.items() if claim.digest != request.digest()]
    if others:
        raise id_reused(request)
    gone = [claim_id for claim_id, claim in held.items() if claim.state is ClaimStatus.ENDED]
    if gone:
        raise has_ended(gone, held)
    if _is_partial(request, held):
        raise only_some_known(request, held)
    return from_existing(request, cell, request.claim_ids, held)


def _is_partial(request: Request, held: dict[str, Claim]) -> bool:
    return request.mode == "all" and len(held) < len(request.claim_ids)


def id_reused(request: Request) -> ClaimIdReused:
    """The refusal of ids that stand for something else."""
    return ClaimIdReused(
        f"claim id {', '.join(request.claim_ids)} is known with other content: "
        "send what it was first sent with, or use new ids",
        {"claim_ids": list(request.claim_ids)},
    )


def only_some_known(request: Request, held: dict[str, Claim]) -> ClaimState:
    """The refusal of ids of which the store has lost some, and hosts have brought back the others.

    These are not ended here: they may have been active for long, and only their owner knows what they are worth alone.
    """
    lost = [claim_id for claim_id in request.claim_ids if claim_id not in held]
    return ClaimState(
        f"of these claims only {', '.join(held)} is known: the store has lost {', '.join(lost)}, or they were never "
        "claimed with it: release what is known, and use new ids to claim again",
        {"claims": {claim_id: claim.state for claim_id, claim in held.items()}, "unknown": lost},
    )


def has_ended(gone: list[str], held: dict[str, Claim]) -> ClaimState:
    """The refusal of ids whose claims have ended; with several places the others may still be there."""
    states = {claim_id: claim.state for claim_id, claim in held.items()}
    return ClaimState(f"claim {', '.join(gone)} has ended: use new ids to claim again", {"claims": states})
