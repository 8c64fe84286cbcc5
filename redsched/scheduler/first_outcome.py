"""What a caller's own claim ids were given before: read from the store, before anything is refused or placed anew.

An id has one outcome (docs/architecture.md, "Ids"). The claim script sees to that where all ids of a call go through
it; this is for calls that do not get there, because what they name is gone by now, and for incremental ones, of whose
ids only the first were used.
"""

from redsched.errors import ClaimIdReused, ClaimState
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claiming import known
from redsched.scheduler.views import Selections


async def first_outcome(request: Request, cells: Cells) -> Selections | None:
    """The outcome of the request's own ids; None where it has none, or none of them is known.

    Raises ClaimIdReused (they belong to other content), ClaimState (they have ended).
    """
    if not request.claim_ids or not request.claim:
        return None
    found = await cells.known(request.claim_ids)
    if found is None:
        return None
    cell, held = found
    return _told(request, cell, held)


def _told(request: Request, cell: Cell, held: dict[str, Claim]) -> Selections:
    others = [claim_id for claim_id, claim in held.items() if claim.digest != request.digest()]
    if others or (request.mode == "all" and len(held) < len(request.claim_ids)):
        raise id_reused(request)
    gone = [claim_id for claim_id, claim in held.items() if claim.state is ClaimStatus.ENDED]
    if gone:
        raise has_ended(gone, held)
    return known(request, cell, request.claim_ids, held)


def id_reused(request: Request) -> ClaimIdReused:
    """The refusal of ids that stand for something else."""
    return ClaimIdReused(
        f"claim id {', '.join(request.claim_ids)} is known with other content, or only some of these ids are known: "
        "send what it was first sent with, or use new ids",
        {"claim_ids": list(request.claim_ids)},
    )


def has_ended(gone: list[str], held: dict[str, Claim]) -> ClaimState:
    """The refusal of ids whose claims have ended; with several places the others may still be there."""
    states = {claim_id: claim.state for claim_id, claim in held.items()}
    return ClaimState(f"claim {', '.join(gone)} has ended: use new ids to claim again", {"claims": states})
