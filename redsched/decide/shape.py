"""A cached shape: for one kind of request, which rows fit, why the others do not, and how good each is.

Everything is computed for all rows once, by array, and afterwards only for rows that changed, one by one and by the
very same rules; so what a repeated decision costs depends on what changed and not on how many hosts there are.
"""

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.answers import ReasonCount
from redsched.decide.filters import COUNT
from redsched.decide.front import Entry, Front
from redsched.decide.pick import best_rows
from redsched.decide.rules import ALL_ROWS, Rule, first_failure
from redsched.decide.weighers import score
from redsched.decide.weighers.weigher import Weighing
from redsched.model import Request

NO_HOST = -1
FRONT = 128
"""Fewest hosts kept in order for a shape, as far as they fit."""


class Shape:
    """What is known of one request shape over one cell's columns.

    `reasons` is int32 of shape (size,): the index of the first rule that a row fails, len(rules) where it fits, NO_HOST
    where there is no host. `scores` is float64 of shape (size,), valid where the row fits.
    """

    def __init__(self, columns: Columns, request: Request, rules: tuple[Rule, ...], weighing: Weighing) -> None:
        self.columns = columns
        self.request = request
        self.rules = rules
        self.weighing = weighing
        self._front = Front()
        self._seen = 0
        self._evaluate_all()

    @property
    def fits(self) -> int:
        """Hosts with room for one place."""
        return self._counts[len(self.rules)]

    def counts(self) -> tuple[ReasonCount, ...]:
        """Hosts removed, by reason, in the order of the rules."""
        return tuple(
            ReasonCount(rule.reason, hosts) for rule, hosts in zip(self.rules, self._counts, strict=False) if hosts
        )

    def refusal(self) -> tuple[ReasonCount, ...]:
        """Return the counts of a refused request: also hosts that fit once, with too few places for its count."""
        return self.counts() + ((ReasonCount(COUNT, self.fits),) if self.fits else ())

    def refresh(self) -> None:
        """Take up what changed in the columns since the last time."""
        changed = self.columns.dirty.since(self._seen)
        # One row at a time costs about as much as 256 rows by array.
        if changed is None or len(changed) > max(8, self.columns.size // 256):
            self._evaluate_all()
            return
        for row in changed:
            self._evaluate(row)
        self._seen = self.columns.dirty.now

    def best(self, count: int) -> list[Entry]:
        """Return the `count` best rows that fit, best first; fewer only where no more fit."""
        found = self._front.first(count)
        if found is None:
            self._fill_front(count)
            found = self._front.first(count)
        return found or []

    def _evaluate_all(self) -> None:
        columns, fitting = self.columns, self.columns.present.copy()
        self.reasons = np.where(fitting, len(self.rules), NO_HOST).astype(np.int32)
        for index, rule in enumerate(self.rules):
            passing = fitting & rule.passes(columns, ALL_ROWS)
            self.reasons[fitting ^ passing] = index
            fitting = passing
        self._counts: list[int] = np.bincount(self.reasons + 1, minlength=len(self.rules) + 2)[1:].tolist()
        rows = np.flatnonzero(fitting)
        self.scores = np.zeros(columns.size)
        self.scores[rows] = score(columns, self.request, self.weighing, rows)
        self._seen = columns.dirty.now
        self._fill_front(0)

    def _evaluate(self, row: int) -> None:
        columns, old = self.columns, self.reasons.item(row)
        new = first_failure(self.rules, columns, row) if columns.present[row] else NO_HOST
        if new != old:
            self.reasons[row] = new
            self._count(old, -1)
            self._count(new, 1)
        self._front.update(row, self._entry(row) if new == len(self.rules) else None)

    def _count(self, reason: int, hosts: int) -> None:
        if reason != NO_HOST:
            self._counts[reason] += hosts

    def _entry(self, row: int) -> Entry:
        value = float(score(self.columns, self.request, self.weighing, row))
        self.scores[row] = value
        return (-value, self.columns.name(row), row)

    def _fill_front(self, count: int) -> None:
        # A part of the fleet, so that going through all of it is shared by as many decisions as hosts were kept.
        room = max(2 * count, FRONT, self.columns.size // 32)
        rows = np.flatnonzero(self.reasons == len(self.rules))
        best = best_rows(rows, self.scores, self.columns.order, room).tolist()
        entries = [(-self.scores.item(row), self.columns.name(row), row) for row in best]
        self._front.fill(entries, complete=len(entries) == len(rows))
