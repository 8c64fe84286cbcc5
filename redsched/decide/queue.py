"""The hosts that one kind of place may go to, best first, kept in order while places are tried out."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.front import Entry
from redsched.decide.shape import Shape
from redsched.decide.weighers import score
from redsched.model import Candidate


class Queue:
    """Some of the best rows of a shape in order. `touch` says that a row has changed in the trial."""

    def __init__(self, columns: Columns, shape: Shape, entries: Sequence[Entry]) -> None:
        self._columns = columns
        self._shape = shape
        self._entries = list(entries)
        self._by_row = {entry[2]: entry for entry in entries}

    def touch(self, row: int) -> None:
        """Take up that a place was put on a row, or taken from it."""
        entry = self._by_row.get(row)
        if entry is None:
            return
        at = bisect_left(self._entries, entry)
        if at < len(self._entries) and self._entries[at] == entry:
            del self._entries[at]
        if not self._shape.passes_now(row):
            return
        if self._shape.is_kept:
            value = float(score(self._columns, self._shape.request, self._shape.weighing, row))
            entry = (-value, entry[1], row)
        insort(self._entries, entry)
        self._by_row[row] = entry

    def options(self) -> Iterator[tuple[Entry, list[Candidate]]]:
        """Rows that may take a place now, best first, each with the ways to take it from there."""
        for entry in self._open():
            found = self._shape.assigned_now(entry[2])
            if found:
                yield entry, [Candidate(entry[1], amounts) for amounts in found]

    def _open(self) -> list[Entry]:
        if self._shape.is_kept or not self._entries:
            return list(self._entries)
        rows = np.array([entry[2] for entry in self._entries], np.intp)
        passing = np.ones(len(rows), np.bool_)
        for rule in self._shape.late_rules():
            passing &= rule.passes(self._columns, rows)
        rows = rows[passing]
        if not len(rows):
            return []
        # Relative to the others, and to where the places tried out so far lie: weighed anew.
        values = np.broadcast_to(score(self._columns, self._shape.request, self._shape.weighing, rows), rows.shape)
        entries = zip(
            (-values).tolist(), [self._columns.name(row) for row in rows.tolist()], rows.tolist(), strict=True
        )
        return sorted(entries)
