"""A cached request shape: which rows fit, how their pools give what is asked, and in which order they are proposed.

    fitting    the rows that pass the rules: fitting_rows.py
    pools      the assignments to the pools of a host, for as many of the best rows as needed: pool_assignments.py
    ranking    the order of the rows, by their scores: ranked_rows.py

The cost of a repeated decision depends on what changed, not on the number of hosts, unless some rule or weigher is
dynamic or relative to other hosts; then it is a few passes over arrays of the fleet's size.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.cache.derived import MANY
from redsched.decide.causes import KEPT
from redsched.decide.filters import COUNT, FILTERS
from redsched.decide.filters.pools import POOLS
from redsched.decide.fitting_rows import FittingRows
from redsched.decide.host_rules import HostRules
from redsched.decide.pool_assignments import PoolAssignments
from redsched.decide.ranked_rows import CachedRanking, OpenRanking, Ranking
from redsched.decide.result import Place
from redsched.decide.rules import Filter, depends_on_nothing
from redsched.decide.scoring.weigher import Weighing
from redsched.decide.top_hosts import Entry
from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.model import Amounts, Candidate, ReasonCount, Request

Verified = tuple[Entry, Candidate]
"""A row in the order, and the best candidate that its host offers."""
ROWS_PER_CHANGE = 64
"""Evaluating all rows, from arrays that shapes share, costs less than one changed row among so many."""
MAX_LOOKED_AT = 1024
"""The most hosts looked at together, if the pools of many fail."""


class _Walk:
    """A search for the `count` best hosts whose pools fit: those found so far, and the entries not yet examined."""

    __slots__ = ("count", "entries", "is_done", "verified")

    def __init__(self, entries: Iterator[Entry], count: int) -> None:
        self.entries = entries
        self.count = count
        self.is_done = False
        self.verified: list[Verified] = []

    def add(self, entry: Entry, amounts: Amounts) -> None:
        """Add a host that fits."""
        self.verified.append((entry, Candidate(entry[1], amounts)))
        self.is_done = len(self.verified) == self.count


class RequestProfile:
    """The cached results of one request shape over one cell's columns. `refresh` before each decision.

    `host_rules` are those of HOST_FILTERS for this request, if they are shared with other shapes.
    """

    def __init__(
        self,
        columns: Columns,
        request: Request,
        weighing: Weighing,
        filters: tuple[Filter, ...] = FILTERS,
        host_rules: HostRules | None = None,
    ) -> None:
        self.columns = columns
        self.request = request
        self.filters = filters
        self.fitting = FittingRows(columns, request, filters, host_rules)
        self.pools = PoolAssignments(columns, request)
        is_open = self.fitting.is_dynamic or any(weigher.relative or weigher.dynamic for weigher in weighing)
        self.ranking: Ranking = (OpenRanking if is_open else CachedRanking)(
            columns, request, weighing, self.fitting, self.pools
        )
        dependencies = self.fitting.dependencies | {weigher.depends for weigher in weighing}
        self._dependencies = tuple(dependencies - {depends_on_nothing})
        self._walks: dict[int, _Walk] = {}
        self.places: dict[int, Place] = {}
        """The places proposed since the last change, by the number of the best host that each tries first."""
        self.texts: object | None = None
        """The `DecisionTexts` of the decisions on it, if they are kept."""
        self._unassigned: tuple[list[int], int] | None = None
        self._evaluate_all()

    # Updates

    def refresh(self) -> None:
        """Apply the changes in the columns since the last call."""
        if self.ranking.is_cached and self.pools.is_plain and self._state() == self._seen:
            return None
        changed = self.columns.dirty.since(self._seen[0])
        if changed is None or self._depends_on() != self._depended:
            self.fitting.count_again(None)
            self.pools.forget(None)
            return self._evaluate_all()
        if not self.pools.is_plain:
            self.pools.forget(changed)
        self.fitting.reread_host_rules()
        if len(changed) > max(MANY, self.columns.size // ROWS_PER_CHANGE):
            self.fitting.count_again(changed)
            return self._evaluate_all()
        if len(changed) > MANY:
            self._evaluate_rows(np.array(sorted(changed), np.intp))
        else:
            for row in changed:
                self._evaluate(row)
        return self._begin()

    def _state(self) -> tuple[int, int]:
        """Return a number for each kind of change in the columns, of hosts and of declared objects."""
        return self.columns.dirty.now, self.columns.declared.changes

    def _depends_on(self) -> tuple[Hashable, ...]:
        depended = [depends(self.columns) for depends in self._dependencies]
        return (*depended, *self.fitting.host_rules_depended(), *self.pools.depended())

    def _evaluate_all(self) -> None:
        self._depended = self._depends_on()
        self.pools.is_plain = bool(self._depended[-1])
        self.fitting.evaluate_all()
        self._begin()
        self.ranking.evaluate_all()

    def _evaluate(self, row: int) -> None:
        self.ranking.evaluate(row, self.fitting.evaluate(row))

    def _evaluate_rows(self, rows: NDArray[np.intp]) -> None:
        self.ranking.evaluate_many(rows, self.fitting.evaluate_many(rows))

    def _begin(self) -> None:
        """Forget what holds for one decision only."""
        self._seen = self._state()
        self._walks.clear()
        self.places.clear()
        self._unassigned = None
        self.fitting.begin()
        self.ranking.begin()
        self.pools.begin()

    # The best hosts

    def verified(self, count: int) -> Sequence[Verified]:
        """Return the `count` best rows whose pools fit, each with its candidate; fewer only if no more fit."""
        for walk in self._walks.values():
            if walk.is_done and (count <= walk.count or len(walk.verified) < walk.count):
                return walk.verified[:count]
        self.has_verified(count)
        return self._walks[count].verified

    def first_verified(self, count: int, most: int) -> Sequence[Verified]:
        """Return the first of what `verified` returns, as found with at most `most` further searches in vain."""
        return self.verified(count) if self.has_verified(count, most) else tuple(self._walks[count].verified)

    def has_verified(self, count: int, most: int | None = None) -> bool:
        """Return whether `verified` has its result, after at most `most` further searches of pools in vain."""
        walk = self._walks.get(count)
        if walk is None:
            walk = self._walks[count] = _Walk(self._in_order(count), count)
        if self.pools.is_plain and not walk.is_done:
            walk.verified = [(entry, Candidate(entry[1], self.request.resources)) for entry in self.ranking.best(count)]
            walk.is_done = True
        try:
            return self._walk_on(walk, most)
        except TooMuchWork:
            self._walks.clear()  # a host that it was looking at must not be left out of the next one
            raise

    def _walk_on(self, walk: _Walk, most: int | None) -> bool:
        in_vain = 0
        while not walk.is_done and in_vain != most:
            check_work("searching the pools of hosts")
            in_vain += self._look_at_next(walk)
        return walk.is_done

    def _look_at_next(self, walk: _Walk) -> bool:
        """Look at the next row of a walk, and return whether its pools were searched in vain."""
        entry = next(walk.entries, None)
        if entry is None:
            walk.is_done = True
            return False
        amounts = self.pools.best(entry[2])
        if amounts is not None:
            walk.add(entry, amounts)
            return False
        self.ranking.drop(entry[2])  # until then it was not known to fail
        return True

    def _in_order(self, count: int) -> Iterator[Entry]:
        """Yield the rows that pass every rule, best first. Rows whose pools fail drop out of the order meanwhile."""
        yielded, looked_at = set[int](), count
        while further := [entry for entry in self.ranking.best(looked_at) if entry[2] not in yielded]:
            for entry in further:
                yielded.add(entry[2])
                yield entry
            looked_at = min(4 * looked_at, MAX_LOOKED_AT)

    def candidates(self, row: int) -> list[Candidate]:
        """Return the assignments on a host that passes every rule as candidates, best first."""
        host = self.columns.name(row)
        return [Candidate(host, amounts) for amounts in self.pools.of(row)]

    def takes(self, row: int) -> bool:
        """Return whether the pools of a host that passes every rule can give the request."""
        return self.pools.best(row) is not None

    # Rejections

    def counts(self) -> tuple[ReasonCount, ...]:
        """Return the number of rejected hosts by reason, in the order of the rules; for POOLS a lower bound."""
        unassigned = self.unassigned()
        reserved = {row for row, _ in self.columns.reserved.rows()}
        kept = sum(map(self._takes_released, sorted(reserved.intersection(unassigned))))
        total = Counter[str]()
        for one in (*self.fitting.counts(), *self.fitting.dynamic_counts(), ReasonCount(KEPT, kept)):
            total[one.reason] += one.hosts
        # Last, because it includes the hosts that pass every rule.
        total[POOLS] = total.pop(POOLS, 0) + len(unassigned) - kept
        return tuple(ReasonCount(reason, hosts) for reason, hosts in total.items() if hosts)

    def refusal(self) -> tuple[ReasonCount, ...]:
        """Return the counts of a refused request, including hosts that fit, but offer too few places for its count."""
        counts = self.counts()
        fitting = len(self.columns) - sum(one.hosts for one in counts)
        return counts + ((ReasonCount(COUNT, fitting),) if fitting else ())

    def unassigned(self) -> list[int]:
        """Return the rows that pass every rule and whose pools fail, as far as they were searched.

        In a large fleet only some are searched, beside those that decisions needed: `unsearched` more may fit or not.
        """
        return self._searched()[0]

    @property
    def unsearched(self) -> int:
        """The number of hosts that pass every rule and whose pools `unassigned` did not search."""
        return self._searched()[1]

    def known_to_fail(self) -> int:
        """Return the number of hosts that pass every rule and whose pools are known to fail."""
        if not (failed := self.pools.failed()):
            return 0
        if self.fitting.is_dynamic:
            return int(np.isin(self.fitting.open_rows(), failed).sum())
        return int(self.fitting.mask[failed].sum())

    def _searched(self) -> tuple[list[int], int]:
        if self._unassigned is None:
            rows = self.fitting.open_rows()
            self._unassigned = ([], 0) if self.pools.is_plain else self.pools.failing(rows.tolist())
        return self._unassigned

    def _takes_released(self, row: int) -> bool:
        """Return whether a host would take the request if it kept nothing for another one."""
        with self.columns.released(row):
            return bool(self.pools.now(row))
