"""Find the claims in the way: those whose end would let a nearly fitting host take a refused request.

That is a single claim if one suffices, the smallest of these; otherwise as few as possible.
"""

from dataclasses import replace

from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.model import Claim, ClaimStatus, Request
from redsched.model.records.explanations import Explanation, Miss
from redsched.pacing import paced
from redsched.scheduler.cells import Cell

MAX_READ = 200
"""The most claims of one host that are read."""
MAX_TRIED = 20
"""The most claims of one host that are tried: each takes another decision, which delays other requests."""


async def with_claims(cell: Cell, request: Request, found: Explanation, limit: WorkLimit) -> Explanation:
    """Return the explanation, with the claims in the way on each near host, as far as they are found in the limit."""
    nearest = list(found.nearest)
    try:
        for number, miss in enumerate(nearest):
            nearest[number] = await _with_claim(cell, request, miss, limit)
    except TooMuchWork:
        return replace(found, nearest=tuple(nearest), cut_short=True)
    return replace(found, nearest=tuple(nearest))


async def _with_claim(cell: Cell, request: Request, miss: Miss, limit: WorkLimit) -> Miss:
    with limit.working():
        if not cell.decider.may_fit_later(request, miss):
            return miss
    ids = sorted(await cell.store.hosts.claim_ids(miss.host))[:MAX_READ]
    claims = list((await cell.store.claims.read(ids)).values())
    held = [claim for claim in claims if claim.host == miss.host and claim.state is not ClaimStatus.ENDED]
    async for claim in paced(worth_trying(held)):
        with limit.working():
            if cell.decider.fits_after(request, miss, claim):
                return replace(miss, after=claim.claim_id, claims={claim.claim_id: claim.project})
    with limit.working():
        return cell.decider.in_the_way(request, miss, claims, cell.updater.now_ms())


def worth_trying(claims: list[Claim]) -> list[Claim]:
    """Return one claim of each kind, smallest first, so that the smallest sufficient one is found.

    If there are too many kinds, only the MAX_TRIED largest are returned.
    """
    kinds = {_kind(claim): claim for claim in sorted(claims, key=_size, reverse=True)}
    return sorted(kinds.values(), key=_size)[-MAX_TRIED:]


def _kind(claim: Claim) -> tuple[object, ...]:
    """Return a key that is equal for claims whose end would have the same effect."""
    amounts, counted = frozenset(claim.slots.items()), frozenset(claim.counted.items())
    return amounts, claim.server_group, counted, claim.state


def _size(claim: Claim) -> tuple[int, str]:
    return sum(claim.slots.values()), claim.claim_id
