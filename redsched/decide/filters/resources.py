"""The filter about amounts: room for each."""

from collections.abc import Iterator

from redsched.cache.columns import Columns
from redsched.decide.fit import fits, free
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import Request


def resources(request: Request) -> Iterator[Rule]:
    """Room for each amount."""
    for slot, amount in sorted(request.resources.items()):
        yield _amount(slot, amount)


def _amount(slot: str, amount: int) -> Rule:
    def passes(columns: Columns, rows: Rows) -> Mask:
        return fits(
            amount,
            columns.capacity[slot][rows],
            columns.claimed[slot][rows],
            columns.external[slot][rows],
            columns.minimum[slot][rows],
            columns.maximum[slot][rows],
            columns.step[slot][rows],
        )

    return Rule(slot, passes, lambda columns, row: amount_detail(columns, slot, amount, row), slot)


def amount_detail(columns: Columns, slot: str, amount: int, row: int) -> str:
    """Say "needs 4096 MEMORY_MB, free 2048", and the units of the slot where they are what forbids the amount."""
    text = f"needs {amount} {slot}, free {slot_free(columns, slot, row)}"
    least, most, step = (f[slot].item(row) for f in (columns.minimum, columns.maximum, columns.step))
    if not least <= amount <= most:
        text += f"; one claim may take {least} to {most}"
    return text if amount % step == 0 else f"{text}; only multiples of {step}"


def slot_free(columns: Columns, slot: str, row: int) -> int:
    """Return what is left of a slot of one host, in the unit of its class."""
    left: int = free(
        columns.capacity[slot].item(row), columns.claimed[slot].item(row), columns.external[slot].item(row)
    )
    return left
