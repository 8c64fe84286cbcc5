"""What a weigher is, and how the weighers of a request add up to a host's score."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Rows, depends_on_nothing
from redsched.model import Request

Score = Any
"""np.float64 for one row, else a float64 array over the rows; higher is better."""


def _never(_columns: Columns, _request: Request) -> bool:
    return False


def _as_given(_columns: Columns, _rows: Rows, multiplier: float) -> Score:
    return multiplier


@dataclass(frozen=True, slots=True)
class Weigher:
    """One view on how good a host is.

    `raw(columns, request, rows)` is pure, is called only for rows that fit, and gives the same for a row alone as for
    that row among others. An absolute weigher counts by that number, 0..1, so that a change of one host changes one
    score. A `relative` one gives any number, and is stretched to 0..1 over the hosts that fit at each decision (as Nova
    does): the best of them has 1, the worst 0. `lowest` and `highest` are its ends where they are not the worst and the
    best that there is; what lies beyond them is taken for them. `depends` and `dynamic` are what they are for a rule.

    While a dynamic one is `idle` it gives every host 0, and need not be asked: a request's group has another policy.

    `multiplied(columns, rows, multiplier)` is the multiplier of each row, where that is not the same for all of them.
    """

    name: str
    raw: Callable[[Columns, Request, Rows], Score]
    relative: bool = False
    depends: Callable[[Columns], Hashable] = depends_on_nothing
    dynamic: bool = False
    lowest: float | None = None
    highest: float | None = None
    multiplied: Callable[[Columns, Rows, float], Score] = _as_given
    idle: Callable[[Columns, Request], bool] = _never

    def value(self, columns: Columns, request: Request, rows: Rows) -> Score:
        """Return what is multiplied: the raw numbers, or these stretched."""
        raw = self.raw(columns, request, rows)
        return stretched(raw, self.lowest, self.highest) if self.relative else raw


Weighing = Mapping[Weigher, float]
"""The multiplier of each weigher that a request is weighed by."""


def score(columns: Columns, request: Request, weighing: Weighing, rows: Rows) -> Score:
    """Sum of the weighers times their multipliers, of the shape of the rows. Only for rows that fit.

    Of relative weighers the rows must be all that fit, or the stretching would be over others.
    """
    total: Score = np.float64(0.0)
    for weigher, multiplier in weighing.items():
        if weigher.dynamic and weigher.idle(columns, request):
            continue
        times = weigher.multiplied(columns, rows, multiplier)
        if isinstance(times, float) and not times:
            continue
        total = total + times * weigher.value(columns, request, rows)
    return total


def is_absolute(columns: Columns, request: Request, weighing: Weighing) -> bool:
    """Whether nothing but a row itself changes its score, now: no weigher that counts is relative or dynamic."""
    return not any((weigher.relative or weigher.dynamic) and not weigher.idle(columns, request) for weigher in weighing)


def stretched(
    values: NDArray[np.float64], lowest: float | None = None, highest: float | None = None
) -> NDArray[np.float64]:
    """Values as 0..1 between the lowest and the highest (float64 of the same shape); all 0 where these are equal.

    Source: Nova's `weights.normalize`, and its `minval` and `maxval`. What is not a number is taken for the lowest.
    """
    values = np.asarray(values, np.float64)
    if lowest is not None:
        values = np.maximum(values, lowest)
    if highest is not None:
        values = np.minimum(values, highest)
    least, most = _ends(values)
    low, high = least if lowest is None else lowest, most if highest is None else highest
    if not high > low:
        return np.zeros_like(values)
    between: NDArray[np.float64] = (values - low) / (high - low)
    if np.isfinite(between).all():
        return between
    return np.nan_to_num(between, nan=0.0, posinf=1.0, neginf=0.0)


def _ends(values: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest of the values that are numbers; 0 and 0 where there are none."""
    if not values.size:
        return 0.0, 0.0
    least, most = values.min(), values.max()
    if np.isfinite(least) and np.isfinite(most):
        return float(least), float(most)
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
