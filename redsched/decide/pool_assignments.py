"""The assignments of a request to the pools of hosts, computed lazily and cached until a host changes.

nothing known   not computed yet
the best        the best assignment; None if the pools cannot give all parts together
all             up to WAYS assignments, best first, of hosts that are proposed first
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property

from redsched.cache.columns import Columns
from redsched.decide.pools import PoolDemand, assignments, demand_on, given_by_roots, is_plain
from redsched.model import Amounts, Request

WAYS = 2
"""The most assignments searched on one host's pools: the second one is for a claim that lost a race."""
SEARCHED = 128
"""The most hosts per decision whose pools are searched only for the counts: those of a whole fleet take a second."""
GIVEN_UP = 4
"""Assumed number of abandoned hosts before such searches, so that each is 16 times shorter than a decision's."""


class PoolAssignments:
    """The cached assignments of one request, for hosts that pass every rule. Rows are those of `columns`.

    A request that `is_plain` gets its amounts from hosts themselves, so that there is nothing to search. The profile
    sets that.
    """

    is_plain: bool

    def __init__(self, columns: Columns, request: Request) -> None:
        self._columns = columns
        self._request = request
        self._best: dict[int, Amounts | None] = {}
        self._all: dict[int, list[Amounts]] = {}
        self._failed: set[int] = set()

    @cached_property
    def needs(self) -> PoolDemand:
        """The parts of the request."""
        return demand_on(self._columns, self._request)

    def depended(self) -> tuple[Hashable, ...]:
        """Return a value that changes when all that is known must be forgotten; at its end, whether it is plain."""
        return given_by_roots(self._columns, self._request), is_plain(self._columns, self._request)

    def begin(self) -> None:
        """Give a decision a new budget of searches, so that those that were abandoned exclude no host from it."""
        if not self.is_plain:
            self.needs.given_up = 0

    def of(self, row: int) -> list[Amounts]:
        """Return the assignments on a host, best first; empty if its pools fail."""
        if self.is_plain:
            return [self._request.resources]
        found = self._all.get(row)
        if found is None:
            found = self._all[row] = self.now(row)
        return found

    def now(self, row: int) -> list[Amounts]:
        """Return what `of` returns, while tentative places are in the columns, without caching."""
        return [self._request.resources] if self.is_plain else assignments(self._columns, row, self.needs, WAYS)

    def best(self, row: int) -> Amounts | None:
        """Return the best assignment on a host; None if its pools fail. Cheaper than `of`."""
        if self.is_plain:
            return self._request.resources
        if row not in self._best:
            self._keep(row, assignments(self._columns, row, self.needs, 1))
        return self._best[row]

    def failed(self) -> list[int]:
        """Return the rows whose pools are known to fail."""
        return [] if self.is_plain else list(self._failed)

    def failing(self, rows: list[int]) -> tuple[list[int], int]:
        """Return those of the rows whose pools fail, and the number of rows for which that is unknown.

        Of the rows not computed before, at most SEARCHED are searched, each briefly.
        """
        needs = replace(self.needs, given_up=GIVEN_UP)
        for row in sorted(set(rows).difference(self._best))[:SEARCHED]:
            self._search_briefly(row, needs)
        return sorted(self._failed.intersection(rows)), len(set(rows).difference(self._best))

    def _search_briefly(self, row: int, needs: PoolDemand) -> None:
        """Search for an assignment, unless that takes too long, and cache the result."""
        given_up = needs.given_up
        found = assignments(self._columns, row, needs, 1)
        if found or needs.given_up == given_up:
            self._keep(row, found)

    def _keep(self, row: int, found: list[Amounts]) -> None:
        self._best[row] = found[0] if found else None
        if not found:
            self._failed.add(row)

    def forget(self, rows: Iterable[int] | None) -> None:
        """Drop rows that have changed from the cache; None: all, and what is known about the request."""
        if rows is None:
            self.__dict__.pop("needs", None)
            self._best, self._all, self._failed = {}, {}, set()
            return
        for row in rows:
            self._best.pop(row, None)
            self._all.pop(row, None)
            self._failed.discard(row)
