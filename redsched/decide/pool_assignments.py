"""The assignments of a request to the pools of hosts, computed lazily and cached until a host changes.

none known      not computed yet
taker           an assignment exists; which ones is not computed yet
assignments     up to WAYS assignments, best first; [] if the pools cannot give all parts together
"""

from collections.abc import Iterable
from dataclasses import replace

from redsched.cache.columns import Columns
from redsched.decide.pools import PoolDemand, assignments
from redsched.model import Amounts

WAYS = 2
"""The most assignments searched on one host's pools: the second one is for a claim that lost a race."""
SEARCHED = 128
"""The most hosts per decision whose pools are searched only for the counts: those of a whole fleet take a second."""
GIVEN_UP = 4
"""Assumed number of abandoned hosts before such searches, so that each is 16 times shorter than a decision's."""


class PoolAssignments:
    """The cached assignments of one request, for hosts that pass every rule. Rows are those of `columns`."""

    def __init__(self, columns: Columns, needs: PoolDemand) -> None:
        self._columns = columns
        self._needs = needs
        self._cached: dict[int, list[Amounts]] = {}
        self._feasible: set[int] = set()

    def of(self, row: int) -> list[Amounts]:
        """Return the assignments on a host, best first; empty if its pools fail."""
        found = self._cached.get(row)
        if found is None:
            found = self._cached[row] = self.now(row)
        return found

    def now(self, row: int) -> list[Amounts]:
        """Return what `of` returns, while tentative places are in the columns, without caching."""
        return assignments(self._columns, row, self._needs, WAYS)

    def exist(self, row: int) -> bool:
        """Return whether there is any assignment. Cheaper than `of`."""
        if not self._is_known(row):
            if assignments(self._columns, row, self._needs, 1):
                self._feasible.add(row)
            else:
                self._cached[row] = []
        return row in self._feasible or bool(self._cached[row])

    def failing(self, rows: list[int]) -> tuple[list[int], int]:
        """Return those of the rows whose pools fail, and the number of rows for which that is unknown.

        Of the rows not computed before, at most SEARCHED are searched, each briefly.
        """
        needs = replace(self._needs, given_up=GIVEN_UP)
        for row in [row for row in rows if not self._is_known(row)][:SEARCHED]:
            self._is_feasible(row, needs)
        known = [row for row in rows if self._is_known(row)]
        return [row for row in known if not self.exist(row)], len(rows) - len(known)

    def _is_feasible(self, row: int, needs: PoolDemand) -> None:
        """Search for an assignment, unless that takes too long, and cache whether there is one."""
        given_up = needs.given_up
        if assignments(self._columns, row, needs, 1):
            self._feasible.add(row)
        elif needs.given_up == given_up:
            self._cached[row] = []

    def forget(self, rows: Iterable[int]) -> None:
        """Drop rows that have changed from the cache."""
        for row in rows:
            self._cached.pop(row, None)
            self._feasible.discard(row)

    def forget_all(self) -> None:
        """Clear the cache."""
        self._cached.clear()
        self._feasible.clear()

    def _is_known(self, row: int) -> bool:
        return row in self._cached or row in self._feasible
