"""Rows sorted by score, updated row by row: for kinds in which each row's score is independent of the others."""

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Entry = tuple[float, int, int]
"""(-score, rank of the host's name, row): sorts in the order of picking."""


class SortedRows:
    """Some rows, best first. `scores` and `order` are of shape (size,)."""

    def __init__(self, rows: NDArray[np.intp], scores: NDArray[np.float64], order: NDArray[np.int64]) -> None:
        self._order = order
        entries = zip((-scores[rows]).tolist(), order[rows].tolist(), rows.tolist(), strict=True)
        self._entries: list[Entry] = sorted(entries)
        self._by_row = {entry[2]: entry for entry in self._entries}

    def __contains__(self, row: object) -> bool:
        return row in self._by_row

    def __iter__(self) -> Iterator[int]:
        # A copy: a caller may pause its iteration, change the rows, restore them, and go on.
        return (row for _, _, row in tuple(self._entries))

    def score(self, row: int) -> float:
        """Return the score of a row that was not removed."""
        return -self._by_row[row][0]

    def move(self, row: int, score: float | None) -> None:
        """Move a row to the position of its score; None removes it, as it takes nothing now."""
        entry = self._by_row[row]
        at = bisect_left(self._entries, entry)
        if at < len(self._entries) and self._entries[at] == entry:
            del self._entries[at]
        if score is not None:
            entry = (-float(score), self._order.item(row), row)
            insort(self._entries, entry)
            self._by_row[row] = entry
