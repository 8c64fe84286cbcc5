"""What claims take of a quota: amounts by class, over all their slots, and `claims`, their number."""

from collections import Counter
from collections.abc import Iterable

from redsched.model import CLAIMS, Amounts, Claim
from redsched.names import split_slot


def by_class(slots: Amounts) -> Counter[str]:
    """Amounts of all slots together, by class."""
    total: Counter[str] = Counter()
    for slot, amount in slots.items():
        total[split_slot(slot)[1]] += amount
    return total


def taken(slots: Amounts) -> Amounts:
    """What one claim of these slots takes of a quota: their classes, and itself."""
    return {**by_class(slots), CLAIMS: 1}


def taken_together(claims: Iterable[Claim]) -> Amounts:
    """What claims take of which one succeeds the other: the larger of each class; nothing where there is none."""
    most: Counter[str] = Counter()
    for claim in claims:
        most |= Counter(taken(claim.amounts))
    return most
