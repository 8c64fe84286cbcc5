"""Check locally that a host can hold a claim, by its capacity, its other claims and its measured usage.

The claim script has checked the same against the host's last report. Only the host knows what has changed since.
"""

from collections.abc import Sequence

from redsched.model import Amounts, HostReport
from redsched.model.validation import SHARED_POOL


def missing_capacity(report: HostReport, others: Sequence[Amounts], amounts: Amounts) -> str:
    """Return what the host lacks to hold `amounts` beside `others`, as text; '' when it can hold them.

    Shared pools are not checked: only the store knows what other hosts take from them.
    """
    slots = report.slots()
    for slot, amount in amounts.items():
        if slot.startswith(SHARED_POOL):
            continue
        if slot not in slots:
            return f"the host has no {slot}"
        capacity, external = slots[slot].capacity, report.external.get(slot, 0)
        held = sum(one.get(slot, 0) for one in others)
        if not held + external + amount <= capacity:
            return (
                f"it needs {amount} {slot}: of {capacity} its other claims hold {held}, "
                f"and {external} are in use by work that no claim explains"
            )
    return ""
