"""The hosts that one kind of place may go to, best first, kept up while places are tried out."""

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.gang.board import Board
from redsched.decide.pick import best_rows
from redsched.decide.rules import Rule
from redsched.decide.shape import Shape
from redsched.decide.weighers import score
from redsched.model import Amounts, Candidate

FIRST = 8
"""Rows that are put in order at first; four times as many whenever these have run out."""

Option = tuple[int, Candidate]
"""A row, and what would be taken there."""


class Queue:
    """Some rows of a shape (`rows`, each once), with what every place on the board makes of them.

    `scores` is float64 of shape (size,), valid for these rows. `late` are the rules that are asked each time, beside
    those that change only with the row itself.
    """

    def __init__(
        self, shape: Shape, late: tuple[Rule, ...], board: Board, rows: NDArray[np.intp], scores: NDArray[np.float64]
    ) -> None:
        self.rows = rows
        self.late = late
        self._shape = shape
        self._columns = shape.columns
        self._board = board
        self._open = np.zeros(shape.columns.size, np.bool_)
        self._open[rows] = True
        self._within = self._open.copy()
        self._scores = scores.copy()
        self._seen = 0
        self._weighs_anew = any(one.relative or one.dynamic for one in shape.weighing)

    def __contains__(self, row: int) -> bool:
        return bool(self._within[row])

    def options(self) -> Iterator[Option]:
        """Where a place may go now, best first; after the best way on each row come the other ways."""
        others: list[Option] = []
        for row, ways in self.rows_now():
            yield row, _candidate(self._columns, row, ways[0])
            others += [(row, _candidate(self._columns, row, way)) for way in ways[1:]]
        yield from others

    def rows_now(self) -> Iterator[tuple[int, list[Amounts]]]:
        """The rows that may take a place now, best first, each with the ways to take it from there."""
        for row in chain.from_iterable(self._ordered()):
            ways = self._shape.assigned_now(row)
            if ways:
                yield row, ways

    def firsts(self, most: int) -> list[Option]:
        """The best way on each of the best rows, up to so many."""
        return [(row, _candidate(self._columns, row, ways[0])) for row, ways in islice(self.rows_now(), most)]

    def options_on(self, row: int) -> list[Option]:
        """The ways to put a place on this row now."""
        if row not in self or not self._shape.passes_now(row):
            return []
        if not all(rule.passes(self._columns, row) for rule in self.late):
            return []
        return [(row, _candidate(self._columns, row, way)) for way in self._shape.assigned_now(row)]

    def _ordered(self) -> Iterator[list[int]]:
        """The open rows, best first, a few at a time."""
        rows = self._rows_open()
        # By what was given and not by how many: scores move while the caller tries what lies further on.
        given: set[int] = set()
        count = FIRST
        while len(given) < len(rows):
            best = best_rows(rows, self._scores, self._columns.order, count).tolist()
            fresh = [row for row in best if row not in given]
            yield fresh
            given.update(fresh)
            count *= 4

    def _rows_open(self) -> NDArray[np.intp]:
        self._catch_up()
        rows = self.rows[self._open[self.rows]]
        for rule in self.late:
            rows = rows[rule.passes(self._columns, rows)]
        if self._weighs_anew and len(rows):
            self._scores[rows] = score(self._columns, self._shape.request, self._shape.weighing, rows)
        return rows

    def _catch_up(self) -> None:
        touched = self._board.touched
        if self._seen == len(touched):
            return
        rows = [row for row in set(touched[self._seen :]) if self._within[row]]
        self._seen = len(touched)
        if len(rows) > FIRST:
            self._look_again(np.array(rows, np.intp))
        else:
            for row in rows:
                self._look_again_at(row)

    def _look_again(self, rows: NDArray[np.intp]) -> None:
        passing = self._shape.passing_now(rows)
        self._open[rows] = passing
        rows = rows[passing]
        if len(rows) and not self._weighs_anew:
            self._scores[rows] = score(self._columns, self._shape.request, self._shape.weighing, rows)

    def _look_again_at(self, row: int) -> None:
        self._open[row] = self._shape.passes_now(row)
        if self._open[row] and not self._weighs_anew:
            self._scores[row] = score(self._columns, self._shape.request, self._shape.weighing, row)


def _candidate(columns: Columns, row: int, amounts: Amounts) -> Candidate:
    return Candidate(columns.name(row), amounts)
