"""What claims take of a quota: amounts by class, over all their slots, and `claims`, their number."""

from collections import Counter
from collections.abc import Mapping

from redsched.model import CLAIMS, Amounts
from redsched.model.validation import parse_int, split_slot
from redsched.store.codec.fields import AMOUNT, placement_fields


def by_class(slots: Amounts) -> Counter[str]:
    """Amounts of all slots together, by class."""
    total: Counter[str] = Counter()
    for slot, amount in slots.items():
        total[split_slot(slot)[1]] += amount
    return total


def quota_usage(slots: Amounts) -> Amounts:
    """What one claim of these slots takes of a quota: their classes, and itself."""
    return {**by_class(slots), CLAIMS: 1}


def usage_of(fields: Mapping[str, str]) -> Amounts:
    """What the hash of a living claim says that it takes: while it moves, the largest of its placements' amounts."""
    usage: Counter[str] = Counter()
    for one in placement_fields(fields):
        amounts = {name[len(AMOUNT) :]: parse_int(value, 0) for name, value in one.items() if name.startswith(AMOUNT)}
        usage |= Counter(quota_usage(amounts))
    return usage
