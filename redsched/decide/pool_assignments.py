"""The ways to take a request from the pools of hosts, found out lazily and remembered until a host changes.

none known      nobody asked yet
taker           it can be taken; which ways there are nobody asked
ways            up to WAYS of them, best first; [] where the pools cannot give all parts together
"""

from collections.abc import Iterable
from dataclasses import replace

from redsched.cache.columns import Columns
from redsched.decide.pools import PoolDemand, assignments
from redsched.model import Amounts

WAYS = 2
"""Ways to take a request from one host's pools that are looked for: the second is for a claim that lost a race."""
SEARCHED = 128
"""Hosts whose pools are searched only to be counted, at one decision: those of a whole fleet would take a second."""
GIVEN_UP = 4
"""The hosts that such searches count as given up before them: each is 16 times shorter than that of a decision."""


class PoolAssignments:
    """What is known of the pools of hosts that pass every rule, for one request. Rows are of these columns."""

    def __init__(self, columns: Columns, needs: PoolDemand) -> None:
        self._columns = columns
        self._needs = needs
        self._ways: dict[int, list[Amounts]] = {}
        self._takers: set[int] = set()

    def of(self, row: int) -> list[Amounts]:
        """The ways of a host, best first; none: its pools fail."""
        found = self._ways.get(row)
        if found is None:
            found = self._ways[row] = self.now(row)
        return found

    def now(self, row: int) -> list[Amounts]:
        """The same while places are tried out, of which nothing may be kept."""
        return assignments(self._columns, row, self._needs, WAYS)

    def exist(self, row: int) -> bool:
        """Whether there is any way; cheaper than to find the ways."""
        if not self._is_known(row):
            if assignments(self._columns, row, self._needs, 1):
                self._takers.add(row)
            else:
                self._ways[row] = []
        return row in self._takers or bool(self._ways[row])

    def failing(self, rows: list[int]) -> tuple[list[int], int]:
        """Those of the rows whose pools fail, and of how many this is not known.

        Of those that were not asked for before SEARCHED are searched, and not for long.
        """
        needs = replace(self._needs, given_up=GIVEN_UP)
        for row in [row for row in rows if not self._is_known(row)][:SEARCHED]:
            self._look(row, needs)
        known = [row for row in rows if self._is_known(row)]
        return [row for row in known if not self.exist(row)], len(rows) - len(known)

    def _look(self, row: int, needs: PoolDemand) -> None:
        """Find out whether there is a way, unless that takes too long."""
        given_up = needs.given_up
        if assignments(self._columns, row, needs, 1):
            self._takers.add(row)
        elif needs.given_up == given_up:
            self._ways[row] = []

    def forget(self, rows: Iterable[int]) -> None:
        """Forget rows that have changed."""
        for row in rows:
            self._ways.pop(row, None)
            self._takers.discard(row)

    def forget_all(self) -> None:
        """Forget what was found out."""
        self._ways.clear()
        self._takers.clear()

    def _is_known(self, row: int) -> bool:
        return row in self._ways or row in self._takers
