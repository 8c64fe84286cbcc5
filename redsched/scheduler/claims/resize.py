"""The absolute amounts of a claim, by slot, out of what is to change of them."""

from redsched.errors import InvalidRequest
from redsched.model import Amounts, Claim
from redsched.model.validation import check_amount, check_class, check_slot, split_slot


def absolute(claim: Claim, slots: Amounts, resources: Amounts) -> dict[str, int]:
    """All that the claim is to hold. What is named in neither stays as it is, or as it is being resized to.

    Raises InvalidRequest for a class that the claim holds of several pools, and where nothing is left.
    """
    amounts = {**(claim.resizing_to or claim.amounts)}
    for resource_class, amount in resources.items():
        amounts[_slot(claim, check_class(resource_class))] = check_amount(resource_class, amount, 0)
    for slot, amount in slots.items():
        amounts[check_slot(slot)] = check_amount(slot, amount, 0)
    left = {slot: amount for slot, amount in amounts.items() if amount}
    if not left:
        raise InvalidRequest(f"nothing would be left of claim {claim.id}: release it instead")
    return left


def _slot(claim: Claim, resource_class: str) -> str:
    """The slot that a class of the claim comes from; the host's own where it has none of it yet."""
    of = sorted(slot for slot in claim.amounts if split_slot(slot)[1] == resource_class)
    if len(of) > 1:
        raise InvalidRequest(
            f"claim {claim.id} holds {resource_class} of {', '.join(of)}: say in `slots` which changes"
        )
    return of[0] if of else resource_class
