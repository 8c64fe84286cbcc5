"""Compute the absolute amounts of a claim from the changes requested."""

from redsched.errors import InvalidRequest
from redsched.model import Amounts, Claim
from redsched.model.validation import check_amount, check_class, check_slot, split_slot


def absolute(claim: Claim, slots: Amounts, resources: Amounts) -> dict[str, int]:
    """Return all amounts that the claim is to hold, by slot.

    Slots and classes that are not named keep their amount, or the amount of a resize in progress. Raises InvalidRequest
    for a class that the claim holds in several pools, and if no amount would be left.
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
    """Return the slot that the claim takes a class from; the host's own slot if it holds none of the class yet."""
    of = sorted(slot for slot in claim.amounts if split_slot(slot)[1] == resource_class)
    if len(of) > 1:
        raise InvalidRequest(
            f"claim {claim.id} holds {resource_class} in several slots: use `slots` to resize one of {', '.join(of)}"
        )
    return of[0] if of else resource_class
