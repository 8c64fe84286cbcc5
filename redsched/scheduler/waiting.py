"""What a refused request would have to wait for: the one claim after whose end a near host would take it."""

from dataclasses import replace

from redsched.decide import Explanation, Miss
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell

MOST_CLAIMS = 200
"""Claims of one host that are tried, smallest first: the smallest that suffices is told."""


async def with_claims(cell: Cell, request: Request, found: Explanation) -> Explanation:
    """The explanation with, for each near host, the claim that stands in the way."""
    return replace(found, nearest=tuple([await _with_claim(cell, request, miss) for miss in found.nearest]))


async def _with_claim(cell: Cell, request: Request, miss: Miss) -> Miss:
    ids = sorted(await cell.store.held_ids(miss.host))[:MOST_CLAIMS]
    claims = (await cell.store.read_claims(ids)).values()
    for claim in sorted(claims, key=_size):
        held = claim.host == miss.host and claim.state is not ClaimStatus.ENDED
        if held and cell.decider.takes_after(request, miss.host, claim):
            return replace(miss, after=claim.id)
    return miss


def _size(claim: Claim) -> tuple[int, str]:
    return sum(claim.amounts.values()), claim.id
