"""Compute the absolute amounts of a claim from the changes requested, and explain why its host refuses them."""

from collections.abc import Sequence

from redsched.errors import InvalidRequest, NoValidHost
from redsched.model import Amounts, Claim
from redsched.model.records.problems import NoValidHostFacts
from redsched.model.reserved_for import UNNAMED, ReservedFor
from redsched.model.validation import check_amount, check_class, check_slot, split_slot

KEPT = "kept"
"""The rule of a host that keeps the amounts for another request."""


def absolute(claim: Claim, slots: Amounts, resources: Amounts) -> dict[str, int]:
    """Return all amounts that the claim is to hold, by slot.

    Slots and classes that are not named keep their amount, or the amount of a resize in progress. Raises InvalidRequest
    for a class that the claim holds in several pools, and if no amount would be left.
    """
    amounts = {**(claim.resizing_to or claim.slots)}
    for resource_class, amount in resources.items():
        amounts[_slot(claim, check_class(resource_class))] = check_amount(resource_class, amount, 0)
    for slot, amount in slots.items():
        amounts[check_slot(slot)] = check_amount(slot, amount, 0)
    left = {slot: amount for slot, amount in amounts.items() if amount}
    if not left:
        raise InvalidRequest(f"nothing would be left of claim {claim.claim_id}: release it instead")
    return left


def _slot(claim: Claim, resource_class: str) -> str:
    """Return the slot that the claim takes a class from; the host's own slot if it holds none of the class yet."""
    of = sorted(slot for slot in claim.slots if split_slot(slot)[1] == resource_class)
    if len(of) > 1:
        raise InvalidRequest(
            f"claim {claim.claim_id} holds {resource_class} in several slots: use `slots` to resize one of "
            f"{', '.join(of)}"
        )
    return of[0] if of else resource_class


def resize_refusal(claim: Claim, amounts: Amounts, facts: Sequence[str], kept: ReservedFor | None) -> NoValidHost:
    """Return the refusal of new amounts, from the facts of the script's reply (resize.lua).

    `kept`: what the host keeps for a request that waits, if that is the reason.
    """
    slot, rule, value, below, above = facts[0], facts[1], *map(int, facts[2:5])
    asked, held = amounts.get(slot, 0), claim.slots.get(slot, 0)
    near = tuple(one for one in (below, above) if one)
    found = NoValidHostFacts(
        claim_id=claim.claim_id, slot=slot, asked=asked, rule=rule or "room", value=value, next=near, kept=kept
    )
    others = [str(one) for one in near if one != held]
    choices = [f"request {' or '.join(others)} {slot}"] if others else []
    choices += [f"keep the {held} that it has"] if held in near else []
    what = f"{asked} {slot} of claim {claim.claim_id}"
    return NoValidHost(f"{_why(claim.host, what, slot, rule, value)}: {', or '.join([*choices, 'move it'])}", found)


def _why(host: str, what: str, slot: str, rule: str, value: int) -> str:
    if rule == KEPT:
        return f"host {host} has room for {what}, but {value} {slot} there are {UNNAMED}"
    if rule:
        return f"the {rule} of {slot} on host {host} is {value}, which forbids {what}"
    return f"host {host} has no room for {what}, which may have {value} there"
