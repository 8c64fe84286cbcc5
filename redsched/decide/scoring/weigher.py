"""Weighers, and how the weighers of a request add up to a host's score."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import ALL_ROWS, Rows, depends_on_nothing
from redsched.decide.work_limit import check_work
from redsched.model import Request

Score = Any
"""np.float64 for one row, else a float64 array over the rows; higher is better."""


def _never(_columns: Columns, _request: Request) -> bool:
    return False


def _as_given(_columns: Columns, _rows: Rows, multiplier: float) -> Score:
    return multiplier


@dataclass(frozen=True, slots=True)
class Weigher:
    """One criterion for how good a host is.

    `raw(columns, request, rows)` is pure, is called only for rows that fit, and gives the same for a row alone as among
    others. An absolute weigher uses that number directly, 0..1, so that a change of one host changes one score. A
    `relative` one gives any number, which is normalized at each decision to 0..1 over the hosts that fit (as in Nova):
    the best of them has 1, the worst 0. `lowest` and `highest` replace the worst and the best as ends of the range;
    values beyond them are clipped. `depends` and `dynamic` have the same meaning as in a rule.

    While a weigher is `idle`, it gives every host 0 and need not be called, as when a request's group has another
    policy. If it is not dynamic, this may change only when `depends` does.

    A weigher `of_host` does not read the request, so that requests share its values. One that is `total` may also be
    called for rows that do not fit: their values are ignored, but need not be numbers.

    A random one of the hosts that are as good as the best one is tried first (see `Peers`). A weigher `by_degree`
    measures what every claim changes, such as the room on a host, so hosts that differ little in it are equally good.
    In other weighers they have to be equal, and in `equal_in(columns, request, rows)` if that is given.

    `multiplied(columns, rows, multiplier)` returns the multiplier of each row, if it differs between rows.
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
    of_host: bool = False
    total: bool = False
    by_degree: bool = False
    equal_in: Callable[[Columns, Request, Rows], Score] | None = None

    def value(self, columns: Columns, request: Request, rows: Rows) -> Score:
        """Return the value to multiply: the raw numbers, normalized if the weigher is relative."""
        raw = self.raw(columns, request, rows)
        return normalized(raw, self.lowest, self.highest) if self.relative else raw

    def weighed(self, columns: Columns, request: Request, rows: Rows, multiplier: float) -> Score:
        """Return the value times the multiplier of each row; 0.0 if the multiplier is 0 for all of them."""
        times = self.multiplied(columns, rows, multiplier)
        if isinstance(times, float) and not times:
            return 0.0
        value = self.value(columns, request, rows)
        return value if isinstance(times, float) and times == 1.0 else times * value


NEAR = 0.03
"""The part of a weigher's range by which hosts may differ and be equally good, if the weigher is by degree."""

LOWEST = float(np.finfo(np.float64).min)
"""The lowest score of a host that fits."""

Weighing = Mapping[Weigher, float]
"""The multipliers of the weighers for a request."""


def score(
    columns: Columns, request: Request, weighing: Weighing, rows: Rows, parts: list[Score] | None = None
) -> Score:
    """Return the sum of the weighers times their multipliers, of the shape of the rows. Only for rows that fit.

    With relative weighers, the rows must be all rows that fit, or the normalization would be wrong. What each weigher
    adds is appended to `parts`.
    """
    total: Score = np.float64(0.0)
    for weigher, multiplier in weighing.items():
        if weigher.idle(columns, request):
            part: Score = 0.0
        else:
            check_work("weighing hosts")
            if weigher.of_host and rows is ALL_ROWS:
                part = _of_hosts(columns, request, weigher, multiplier)
            else:
                part = weigher.weighed(columns, request, rows, multiplier)
            total = total + part
        if parts is not None:
            parts.append(part)
    return total


def scores(
    columns: Columns,
    request: Request,
    weighing: Weighing,
    fitting: NDArray[np.bool_],
    parts: list[Score] | None = None,
) -> NDArray[np.float64]:
    """Return the score of each row that fits, -inf elsewhere: float64 of shape (size,). Only for absolute weighers.

    What each weigher adds is appended to `parts`, if that is known for all rows.
    """
    rows: Rows = ALL_ROWS
    # A pass over all rows costs less than gathering most of them.
    if not all(weigher.total for weigher in weighing) or 4 * np.count_nonzero(fitting) < len(fitting):
        rows = np.flatnonzero(fitting)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = score(columns, request, weighing, rows, parts if rows is ALL_ROWS else None)
    if rows is ALL_ROWS:
        return np.where(fitting, values, -np.inf)
    # Own weighers may give no number, or infinity. Such a host is the last one, and still fits.
    values = np.nan_to_num(values, nan=LOWEST, neginf=LOWEST)
    found = np.full(len(fitting), -np.inf)
    found[rows] = values
    return found


def _of_hosts(columns: Columns, request: Request, weigher: Weigher, multiplier: float) -> NDArray[np.float64]:
    """Return what `weighed` returns for all rows. The request does not matter."""
    key = (weigher, multiplier, weigher.depends(columns))

    def weighed(rows: Rows) -> Score:
        # A weigher may give one number for all rows.
        return weigher.weighed(columns, request, rows, multiplier) + columns.claims[rows] * 0.0

    found: NDArray[np.float64] = columns.derived(key, weighed, ALL_ROWS)
    return found


class Peers:
    """Tells which hosts are as good as the best one for a request, so that any of them may be tried first."""

    def __init__(self, weighing: Weighing) -> None:
        self._exact = [(one, times) for one, times in weighing.items() if one.equal_in or not one.by_degree]
        exact = {one for one, _ in self._exact}
        self._near = NEAR * max((abs(times) for one, times in weighing.items() if one not in exact), default=0.0)

    def count(self, columns: Columns, request: Request, rows: Sequence[int], scores: Sequence[float]) -> int:
        """Return how many of the first of some rows are as good as the first one, which has the best of the scores.

        Their scores differ by at most NEAR of the largest multiplier by degree alone; in the rest they are equal.
        """
        least = scores[0] - self._near
        count = next((at for at, one in enumerate(scores) if one < least), len(rows))
        for weigher, multiplier in self._exact if count > 1 else ():
            if not weigher.idle(columns, request):
                some = np.array(rows[:count], np.intp)
                values = (weigher.equal_in or weigher.raw)(columns, request, some)
                values = np.asarray(values * weigher.multiplied(columns, some, multiplier))
                if values.ndim:
                    best, *others = values.tolist()
                    count = 1 + next((at for at, one in enumerate(others) if _differ(best, one)), count - 1)
        return count


def _differ(one: float, other: float) -> bool:
    return one != other and not (isnan(one) and isnan(other))


def is_absolute(columns: Columns, request: Request, weighing: Weighing) -> bool:
    """Return whether a row's score now depends only on that row: no weigher in use is relative or dynamic."""
    return not any((weigher.relative or weigher.dynamic) and not weigher.idle(columns, request) for weigher in weighing)


def normalized(
    values: NDArray[np.float64], lowest: float | None = None, highest: float | None = None
) -> NDArray[np.float64]:
    """Normalize values to 0..1 between the lowest and the highest; all 0 if these are equal.

    The result is float64 of the same shape. NaN counts as the lowest. Source: Nova's `weights.normalize`, and its
    `minval` and `maxval`.
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
    """Return the lowest and the highest of the values that are numbers; 0 and 0 if there are none."""
    if not values.size:
        return 0.0, 0.0
    least, most = values.min(), values.max()
    if np.isfinite(least) and np.isfinite(most):
        return float(least), float(most)
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
