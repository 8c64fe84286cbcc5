"""Weighers of the room that a host keeps: spread, pack, best_fit, dot_product, balance. All are absolute.

Room is that of the host as a whole, including its pools.
"""

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import demand, demanded_room, room
from redsched.decide.scoring.weigher import Score
from redsched.model import Request

DIMENSIONS = frozenset(("VCPU", "MEMORY_MB", "DISK_GB"))
"""The classes that `balance` considers on every host, besides the requested ones. They are never scarce."""


def spread(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that keeps the largest fraction free.

    The mean, over the requested classes, of (free - amount) / capacity: the free fraction after placing.
    """
    total: Score = np.float64(0.0)
    requested = demanded_room(columns, request, rows)
    for amount, capacity, left in requested:
        total = total + (left - amount) / capacity
    return total / len(requested)


def pack(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that is fullest after placing: 1 - spread."""
    return 1.0 - spread(columns, request, rows)


def best_fit(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that the request fills most completely: 1 - the root mean square of the free fractions.

    Squares make a host that is nearly full in one class and empty in another worse than an evenly full one, which
    `pack` treats as equal. Source: the norm-based greedy (L2) of Panigrahy et al., Heuristics for Vector Bin Packing,
    2011, on fractions of the host.
    """
    total: Score = np.float64(0.0)
    requested = demanded_room(columns, request, rows)
    for amount, capacity, left in requested:
        rest = (left - amount) / capacity
        total = total + rest * rest
    return 1.0 - np.sqrt(total / len(requested))


def dot_product(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host that has the most free of what is requested most.

    The mean, over the requested classes, of (amount / capacity) * (free / capacity), before placing. Source: Grandl et
    al., Multi-Resource Packing for Cluster Schedulers (Tetris), SIGCOMM 2014; it is the dot-product greedy of vector
    bin packing.
    """
    total: Score = np.float64(0.0)
    requested = demanded_room(columns, request, rows)
    for amount, capacity, left in requested:
        total = total + (amount / capacity) * (left / capacity)
    return total / len(requested)


def balance(columns: Columns, request: Request, rows: Rows) -> Score:
    """Prefer the host whose classes are used evenly after placing, so that none of them strands the others.

    1 - 2 * the standard deviation of the used fractions, over DIMENSIONS and the requested classes, as far as the host
    has them; 1 is even. Source: Kubernetes' NodeResourcesBalancedAllocation, scaled so that the most uneven host has 0.
    """
    used, has = _used(columns, request, rows)
    # Added one by one: numpy sums a single row in another order than many rows, and the last bit differs.
    count = np.maximum(sum(has), 1)
    mean = sum(used) / count
    variance = sum(held * (part - mean) * (part - mean) for held, part in zip(has, used, strict=True)) / count
    return 1.0 - 2.0 * np.sqrt(variance)


def _used(columns: Columns, request: Request, rows: Rows) -> tuple[list[Score], list[Score]]:
    """Return the used fraction after placing, 0..1, and whether the host has the class at all, for each dimension."""
    amounts = demand(request)
    used, has = [], []
    for resource_class in sorted(DIMENSIONS | amounts.keys()):
        capacity, left = room(columns, resource_class, rows)
        held = (capacity > 0) * 1.0
        free_part = (left - amounts.get(resource_class, 0)) / np.maximum(capacity, 1)
        used.append(held * (1.0 - np.minimum(1.0, np.maximum(0.0, free_part))))
        has.append(held)
    return used, has
