"""Quota usage of claims: amounts by class, over all their slots, and the number of claims as `claims`."""

from collections import Counter
from collections.abc import Mapping

from redsched.model import CLAIMS, Amounts
from redsched.model.validation import parse_int, split_slot
from redsched.store.codec.fields import AMOUNT, placement_fields


def by_class(slots: Amounts) -> Counter[str]:
    """Return the total amounts of all slots, by class."""
    total: Counter[str] = Counter()
    for slot, amount in slots.items():
        total[split_slot(slot)[1]] += amount
    return total


def quota_usage(slots: Amounts) -> Amounts:
    """Return what one claim with these slots uses of a quota: amounts by class, and 1 as `claims`."""
    return {**by_class(slots), CLAIMS: 1}


def usage_of(fields: Mapping[str, str]) -> Amounts:
    """Return the quota usage of a live claim from its hash: while it moves, the largest amount over its placements."""
    usage: Counter[str] = Counter()
    for one in placement_fields(fields):
        amounts = {name[len(AMOUNT) :]: parse_int(value, 0) for name, value in one.items() if name.startswith(AMOUNT)}
        usage |= Counter(quota_usage(amounts))
    return usage
