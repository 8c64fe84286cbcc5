"""Arrays derived from the columns, shared by all decisions on them, and recomputed only for rows that have changed.

Requests differ in their amounts, but most of what a decision reads does not: what is free of a slot, which hosts are up
and have a trait. A request of a new shape finds these arrays current, and is left with a few passes of its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.dirty import DirtyRows

Rows = int | slice | NDArray[np.intp]
"""The rows to evaluate: one, or many. Indexing an array of columns with it gives a numpy scalar or an array."""

ALL_ROWS = slice(None)

Compute = Callable[[Rows], Any]
"""Returns the values of some rows: a scalar or an array. It reads nothing but the columns at these rows."""

MANY = 4
"""Up to this number of changed rows, it costs less to compute them one by one than as an array."""
MAX_ARRAYS = 64
"""The most arrays kept, because each has as many elements as the fleet has hosts."""


class RowCache:
    """An array of shape (size,) with the values that `compute` gives for the rows. Do not write to it."""

    __slots__ = ("_array", "_seen")

    def __init__(self) -> None:
        self._seen = -1
        self._array: NDArray[Any] = np.zeros(0)

    def current(self, dirty: DirtyRows, compute: Compute) -> NDArray[Any]:
        """Return the array after recomputing the rows that have changed since the last call."""
        if self._seen != dirty.now:
            self._update(dirty, compute)
            self._seen = dirty.now
        return self._array

    def clear(self) -> None:
        """Have all rows computed again, because `compute` has changed."""
        self._seen = -1

    def _update(self, dirty: DirtyRows, compute: Compute) -> None:
        changed = dirty.since(self._seen)
        if changed is None or len(changed) > max(MANY, len(self._array) // 8):
            # A copy, as the values may be a column itself.
            self._array = np.array(compute(ALL_ROWS))
        elif len(changed) > MANY:
            rows = np.fromiter(changed, np.intp, len(changed))
            self._array[rows] = compute(rows)
        else:
            for row in changed:
                self._array[row] = compute(row)


class Derived:
    """The derived arrays of one cell's columns, by key; the latest MAX_ARRAYS are kept."""

    def __init__(self) -> None:
        self._arrays: OrderedDict[Hashable, RowCache] = OrderedDict()

    def array(self, key: Hashable, dirty: DirtyRows, compute: Compute) -> NDArray[Any]:
        """Return the array of this key, current. Equal keys must come with functions that compute the same."""
        cache = self._arrays.get(key)
        if cache is None:
            cache = self._arrays[key] = RowCache()
            if len(self._arrays) > MAX_ARRAYS:
                self._arrays.popitem(last=False)
        else:
            self._arrays.move_to_end(key)
        return cache.current(dirty, compute)
