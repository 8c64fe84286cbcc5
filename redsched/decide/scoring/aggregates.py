"""Multipliers in an aggregate's metadata for its hosts, as in Nova: `ram_weight_multiplier` = `-1.0`."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

import numpy as np

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.aggregates import metadata
from redsched.decide.conditions import number_of
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score, Weigher

SUFFIX = "_weight_multiplier"

UNREADABLE = -math.inf
"""Lower than every multiplier: a host of such an aggregate has none of its aggregates' multipliers, as in Nova."""

Multipliers = Mapping[str, tuple[tuple[str, float], ...]]
"""By metadata key: the aggregates that have it, each with its multiplier."""


def multipliers_in(declared: Declared) -> Multipliers:
    """Read all multipliers of aggregates; a text that is not a finite number is UNREADABLE."""
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    for aggregate, key, text in metadata(declared):
        if key.endswith(SUFFIX):
            number = number_of(text)
            found[key] = (*found.get(key, ()), (aggregate, UNREADABLE if math.isnan(number) else number))
    return found


def overridable(
    weigher: Weigher,
    multipliers: Callable[[Columns], Multipliers],
    key: str = "",
    sign: float = 1.0,
    is_off_at_0: bool = False,
) -> Weigher:
    """Return the weigher with the multipliers that aggregates set under `key`, by default its name and SUFFIX.

    If a host is in several such aggregates, the lowest applies, or none of them if one is unreadable. `sign` is -1 for
    a weigher that counts against hosts. With `is_off_at_0`, aggregates do not change a multiplier of 0.
    """
    key = key or weigher.name + SUFFIX

    def depends(columns: Columns) -> Hashable:
        return weigher.depends(columns), multipliers(columns).get(key, ())

    def multiplied(columns: Columns, rows: Rows, multiplier: float) -> Score:
        aggregates = multipliers(columns).get(key, ())
        if not aggregates or (is_off_at_0 and not multiplier):
            return sign * multiplier
        lowest: Score = columns.claims[rows] * 0.0 + np.inf
        for name, number in aggregates:
            lowest = np.where(columns.aggregates[name][rows], np.minimum(lowest, number), lowest)
        return sign * np.where(np.isinf(lowest), multiplier, lowest)

    return replace(weigher, depends=depends, multiplied=multiplied)
