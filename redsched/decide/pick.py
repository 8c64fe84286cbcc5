"""Ordering by score, and picking from the order.

The order is stable: score, then host name. If all schedulers took the best host they would collide, so the first is a
random one of the best few. Ties are not broken randomly over the fleet: on a public GPU trace that costs 5 points of
packing, while a random pick among the top 4 of a stable order costs 0.1.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def best_rows(
    rows: NDArray[np.intp], scores: NDArray[np.float64], order: NDArray[np.int64], count: int
) -> NDArray[np.intp]:
    """Return the `count` best of `rows`, best first: highest of `scores`, then lowest of `order`.

    `scores` and `order` are of shape (size,), indexed by row. Only about as many are sorted.
    """
    if len(rows) > 4 * count:
        rows = _narrowed(rows, scores[rows], order, count)
    return rows[np.lexsort((order[rows], -scores[rows]))[:count]]


def best_of_all(scores: NDArray[np.float64], order: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """Return what `best_rows` returns for all rows whose score is above -inf, without sorting or gathering them all.

    Of the best scores of as many blocks of rows as `count` or more, the one at `count` is no better than the last row
    to return, so only the rows with at least that score need be compared.
    """
    blocks = 8 * count
    length = len(scores) // blocks
    least = -np.inf
    if length:
        best = scores[: blocks * length].reshape(length, blocks).max(axis=0)
        least = np.partition(best, blocks - count)[blocks - count]
    rows = np.flatnonzero(scores >= least if least > -np.inf else scores > -np.inf)
    return best_rows(rows, scores, order, count)


def _narrowed(
    rows: NDArray[np.intp], scores: NDArray[np.float64], order: NDArray[np.int64], count: int
) -> NDArray[np.intp]:
    last = np.partition(scores, len(rows) - count)[len(rows) - count]
    better = rows[scores > last]
    level = rows[scores == last]
    missing = count - len(better)
    if len(level) > missing:
        level = level[np.argpartition(order[level], missing - 1)[:missing]]
    return np.concatenate((better, level))


def pick(ordered: Sequence[T], pick_from: int, rng: Random) -> list[T]:
    """Move a random one of the first `pick_from` to the front; the others keep their order."""
    if not ordered:
        return []
    return with_first(ordered, choose(len(ordered), pick_from, rng))


def choose(count: int, pick_from: int, rng: Random) -> int:
    """Return the number (from 0) of a random one of the first `pick_from` of `count` options."""
    most = min(pick_from, count)
    return rng.randrange(most) if most > 1 else 0


def with_first(ordered: Sequence[T], first: int) -> list[T]:
    """Move one option to the front; the others keep their order."""
    return [ordered[first], *ordered[:first], *ordered[first + 1 :]]
