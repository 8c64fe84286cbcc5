"""Owners of claims: who in a project may change a claim."""

from collections.abc import Iterable

from redsched.errors import Forbidden
from redsched.model import Claim
from redsched.model.records.problems import ForbiddenFacts


def refuse_others(owner: str, claims: Iterable[Claim]) -> None:
    """Raise Forbidden if one of these claims has another owner. All callers of a project own one without an owner."""
    for claim in claims:
        if claim.owner and claim.owner != owner:
            raise Forbidden(
                f"claim {claim.claim_id} belongs to {claim.owner!r}, and this token changes only claims of {owner!r}: "
                f"ask {claim.owner!r}, or an operator for a token that is project-wide",
                ForbiddenFacts(claim_id=claim.claim_id, owner=claim.owner),
            )
