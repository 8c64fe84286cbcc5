"""Weighers of how much room a host keeps: spread, pack."""

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.fit import free
from redsched.decide.rules import Rows
from redsched.decide.weighers.weigher import Score
from redsched.model import Request


def spread(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that keeps the largest part of itself free.

    The mean, over the classes asked for, of (free - amount) / capacity: the free fraction after placing.
    """
    total: Score = np.float64(0.0)
    # In the order of names, so that equal shapes add up their floats in the same order.
    for slot, amount in sorted(request.resources.items()):
        capacity = columns.capacity[slot][rows]
        total = total + (free(capacity, columns.claimed[slot][rows], columns.external[slot][rows]) - amount) / capacity
    return total / len(request.resources)


def pack(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that is fullest after placing: 1 - spread."""
    return 1.0 - spread(columns, request, rows)
