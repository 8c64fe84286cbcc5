"""The only rule for whether an amount fits a slot. The same rule in Lua is decisive; a property test compares them.

The host checks its capacity once more before its hook starts: redsched/agent/claims/capacity_check.py.
"""

from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.rules import Rows


def free(capacity: Any, claimed: Any, external: Any) -> Any:
    """Return what is free of a slot; negative if the host is overcommitted. Integers or int64 arrays."""
    return capacity - claimed - external


def free_on(columns: Columns, slot: str, rows: Rows) -> Any:
    """Return what is free of a host's own slot on some rows: int64 of their shape, or a number for one row."""
    return free(columns.capacity[slot][rows], columns.claimed[slot][rows], columns.external[slot][rows])


def unscaled_free_on(columns: Columns, slot: str, rows: Rows) -> Any:
    """Return what is free of a host's own slot without its allocation ratio: total - reserved - claimed - external.

    float64 of the rows' shape; negative where more is taken than there is.
    """
    # Rounded up, because the capacity was rounded down.
    whole = np.ceil(np.round(columns.capacity[slot][rows] / columns.ratios[slot][rows], 6))
    return free(whole, columns.claimed[slot][rows], columns.external[slot][rows])


def fits(amount: int, capacity: Any, claimed: Any, external: Any, minimum: Any, maximum: Any, step: Any) -> Any:
    """Return whether `amount` (at least 1) may be taken from a slot, in the unit of the slot's class.

    Every argument but `amount` is an integer from 0 to 2^53-1 (`step` from 1), and the result is a bool; or an int64
    array of such integers, and the result is a bool array of its shape. Nothing overflows: all intermediate values are
    within -2^54..2^53. The rule for units is Placement's: min_unit <= amount <= max_unit, and amount is a multiple of
    step_size.
    """
    in_units = (minimum <= amount) & (amount <= maximum) & (amount % step == 0)
    return in_units & (amount <= free(capacity, claimed, external))


def largest_fit(free: Any, minimum: Any, maximum: Any, step: Any) -> Any:
    """Return the largest amount for which `fits` is true on a slot with so much free; 0 if there is none.

    The arguments are integers or int64 arrays; so is the result.
    """
    most = np.minimum(free, maximum) // step * step
    return most * ((most >= minimum) & (most > 0))
