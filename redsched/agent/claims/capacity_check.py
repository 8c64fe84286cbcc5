"""The double check: whether a host can hold a claim by what it has itself, what its claims hold and what it measures.

The claim script has checked the same by the host's last report. What has come or gone since only the host can know.
"""

from collections.abc import Sequence

from redsched.model import Amounts, HostReport
from redsched.model.validation import SHARED_POOL


def lacking(report: HostReport, others: Sequence[Amounts], amounts: Amounts) -> str:
    """What is missing for `amounts` beside what `others` hold, in words; '' when the host can hold them.

    Shared pools are no part of a host: only the store knows what else is taken from them.
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
