"""What claims take of a quota: amounts by class, over all their slots, and `claims`, their number."""

from collections import Counter
from collections.abc import Mapping

from redsched.model import CLAIMS, Amounts
from redsched.names import split_slot, whole
from redsched.store.fields import AMOUNT, WITH_FORMER


def by_class(slots: Amounts) -> Counter[str]:
    """Amounts of all slots together, by class."""
    total: Counter[str] = Counter()
    for slot, amount in slots.items():
        total[split_slot(slot)[1]] += amount
    return total


def taken(slots: Amounts) -> Amounts:
    """What one claim of these slots takes of a quota: their classes, and itself."""
    return {**by_class(slots), CLAIMS: 1}


def usage_of(claim: Mapping[str, str]) -> Amounts:
    """What the hash of a living claim says that it takes, as include/quota_usage.lua reads it."""
    amounts = {name[len(AMOUNT) :]: whole(value, 0) for name, value in claim.items() if name.startswith(AMOUNT)}
    return {
        name: max(0, amount - whole(claim.get(f"{WITH_FORMER}{name}", "0"), 0))
        for name, amount in taken(amounts).items()
    }
