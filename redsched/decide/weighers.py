"""How good a host is that may take a request: weighers, and policies, which are named multipliers of weighers.

A weigher looks at each row by itself and gives 0..1, so that a change of one host changes one score and no other.
(Normalising over the hosts that fit, as is often done, would make every score depend on every host.)
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.fit import free
from redsched.decide.rules import Rows
from redsched.errors import InvalidRequest
from redsched.model import Request

Score = Any
"""np.float64 for one row, else a float64 array over the rows; higher is better."""

Weigher = Callable[[Columns, Request, Rows], Score]
"""Pure; called only for rows that fit; gives the same for a row alone as for that row among others."""


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


WEIGHERS: Mapping[str, Weigher] = {"spread": spread, "pack": pack}
POLICIES: Mapping[str, Mapping[str, float]] = {"spread": {"spread": 1.0}, "pack": {"pack": 1.0}}


def multipliers(request: Request, policy: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the multiplier of each weigher: the policy's, over these `weights`, over those of the request.

    `policy` and `weights` are the settings'; a request that names a policy has its own. Raises InvalidRequest for a
    policy or weigher that does not exist.
    """
    chosen = request.policy or policy
    if chosen not in POLICIES:
        raise InvalidRequest(f"unknown policy {chosen!r}: use one of {', '.join(sorted(POLICIES))}")
    merged = {**POLICIES[chosen], **weights, **request.weights}
    for name in merged:
        if name not in WEIGHERS:
            raise InvalidRequest(f"unknown weigher {name!r} in weights: use one of {', '.join(sorted(WEIGHERS))}")
    return {name: multiplier for name, multiplier in sorted(merged.items()) if multiplier}


def score(columns: Columns, request: Request, weighing: Mapping[str, float], rows: Rows) -> Score:
    """Sum of the weighers times their multipliers; of the shape of the rows. Only for rows that fit."""
    total: Score = np.float64(0.0)
    for name, multiplier in weighing.items():
        total = total + multiplier * WEIGHERS[name](columns, request, rows)
    return total
