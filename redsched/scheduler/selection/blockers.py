"""What a refused request would have to wait for: the one claim after whose end a near host would take it."""

from dataclasses import replace

from redsched.decide import Explanation, Miss
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell

MAX_READ = 200
"""Claims of one host that are read."""
MAX_TRIED = 20
"""Claims of one host that are tried: deciding again for each holds up whoever waits for this process."""


async def with_claims(cell: Cell, request: Request, found: Explanation) -> Explanation:
    """The explanation with, for each near host, the claim that stands in the way."""
    return replace(found, nearest=tuple([await _with_claim(cell, request, miss) for miss in found.nearest]))


async def _with_claim(cell: Cell, request: Request, miss: Miss) -> Miss:
    if not cell.decider.could_wait(request, miss):
        return miss
    ids = sorted(await cell.store.hosts.claim_ids(miss.host))[:MAX_READ]
    claims = (await cell.store.claims.read(ids)).values()
    held = [claim for claim in claims if claim.host == miss.host and claim.state is not ClaimStatus.ENDED]
    for claim in worth_trying(held):
        if cell.decider.takes_after(request, miss, claim):
            return replace(miss, after=claim.id)
    return miss


def worth_trying(claims: list[Claim]) -> list[Claim]:
    """Of claims just alike one, smallest first: the smallest that suffices is told; of very many kinds the largest."""
    kinds = {_kind(claim): claim for claim in sorted(claims, key=_size, reverse=True)}
    return sorted(kinds.values(), key=_size)[-MAX_TRIED:]


def _kind(claim: Claim) -> tuple[object, ...]:
    """Equal for claims whose end changes the same."""
    amounts, counted = frozenset(claim.amounts.items()), frozenset(claim.counted.items())
    return amounts, claim.group, counted, claim.state


def _size(claim: Claim) -> tuple[int, str]:
    return sum(claim.amounts.values()), claim.id
