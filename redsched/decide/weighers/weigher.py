"""What a weigher is, and how the weighers of a request add up to a host's score."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Rows
from redsched.model import Request

Score = Any
"""np.float64 for one row, else a float64 array over the rows; higher is better."""


def _nothing(_columns: Columns) -> Hashable:
    return None


@dataclass(frozen=True, slots=True)
class Weigher:
    """One view on how good a host is.

    `raw(columns, request, rows)` is pure, is called only for rows that fit, and gives the same for a row alone as for
    that row among others. An absolute weigher gives 0..1 by itself, so that a change of one host changes one score. A
    `relative` one gives any number, and is stretched to 0..1 over the hosts that fit at each decision (as Nova does):
    the best of them has 1, the worst 0. `depends` and `dynamic` are what they are for a rule.
    """

    name: str
    raw: Callable[[Columns, Request, Rows], Score]
    relative: bool = False
    depends: Callable[[Columns], Hashable] = _nothing
    dynamic: bool = False


Weighing = Mapping[Weigher, float]
"""The multiplier of each weigher that a request is weighed by."""


def score(columns: Columns, request: Request, weighing: Weighing, rows: Rows) -> Score:
    """Sum of the weighers times their multipliers, of the shape of the rows. Only for rows that fit.

    Of relative weighers the rows must be all that fit, or the stretching would be over others.
    """
    total: Score = np.float64(0.0)
    for weigher, multiplier in weighing.items():
        value = weigher.raw(columns, request, rows)
        total = total + multiplier * (stretched(value) if weigher.relative else value)
    return total


def stretched(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as 0..1 between the lowest and the highest (float64 of the same shape); all 0 where these are equal.

    Source: Nova's `weights.normalize`. What is not a number is taken for the lowest.
    """
    values = np.asarray(values, np.float64)
    known = values[~np.isnan(values)]
    if not known.size or known.max() == known.min():
        return np.zeros_like(values)
    between: NDArray[np.float64] = np.nan_to_num((values - known.min()) / (known.max() - known.min()), nan=0.0)
    return between
