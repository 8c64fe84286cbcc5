"""A cached request shape: which rows fit, why the others do not, and their scores.

    rules about the host itself       for all rows once, shared by all shapes that want the same kind of host
    other rules that can be cached    for all rows once, then only for changed rows, by the same rules
    dynamic rules, affinity           at each decision, for the rows that passed the others
    pool assignment                   at each decision, for as many of the best rows as needed; cached per row

The cost of a repeated decision depends on what changed, not on the number of hosts, unless some rule or weigher is
dynamic or relative to other hosts; then it is a few passes over arrays of the fleet's size.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.cache.derived import MANY
from redsched.decide.affinity import Eligible, affinity_rules
from redsched.decide.causes import KEPT, Reasons
from redsched.decide.filters import COUNT, FILTERS, HOST_FILTERS, rules_of
from redsched.decide.filters.pools import POOLS
from redsched.decide.host_rules import HostRules
from redsched.decide.pick import best_of_all
from redsched.decide.pool_assignments import PoolAssignments
from redsched.decide.pools import PoolDemand, demand_on, given_by_roots, is_plain
from redsched.decide.result import Place
from redsched.decide.rules import ALL_ROWS, Filter, Mask, Rule, depends_on_nothing
from redsched.decide.scoring import score, scores
from redsched.decide.scoring.weigher import Peers, Score, Weighing
from redsched.decide.top_hosts import Entry, TopHosts
from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.model import Amounts, Candidate, ReasonCount, Request

Verified = tuple[Entry, Candidate]
"""A row in the order, and the best candidate that its host offers."""
ROWS_PER_CHANGE = 64
"""Evaluating all rows, from arrays that shapes share, costs less than one changed row among so many."""
MAX_LOOKED_AT = 1024
"""The most hosts looked at together, if the pools of many fail."""
TESTING = "testing what the hosts have left"
FIRST_TOP_HOSTS, FRONT = 16, 128
"""The fewest hosts kept sorted per profile, if that many fit: at first, as many shapes are used once, and later."""


def sourced_rules(request: Request, filters: tuple[Filter, ...]) -> list[tuple[Rule, Filter]]:
    """Return all rules of a request in the order in which decisions test them, each with the filter it is from."""
    sourced = [(rule, source) for source in filters for rule in source(request)]
    return sorted(sourced, key=lambda one: (one[0].dynamic, one[0].room))


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


@lru_cache(8)
def beside_host_filters(filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
    """Return the filters that are not among HOST_FILTERS."""
    return tuple(one for one in filters if one not in HOST_FILTERS)


class RequestProfile:
    """The cached results of one request shape over one cell's columns.

    `fitting` is bool of shape (size,): whether a row has a host that passes all cached rules. `scores` is float64 of
    the same shape, valid where the row fits. `host_rules` are those of HOST_FILTERS for this request, if they are
    shared with other shapes.
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
        self._host_rules = host_rules or HostRules(columns, request)
        others = rules_of(request, beside_host_filters(filters))
        self._others = tuple(rule for rule in others if not rule.dynamic)
        self.rules = (*self._host_rules.rules, *self._others)
        self.weighing = weighing
        self._peers = Peers(weighing)
        dependencies = {*(rule.depends for rule in self._others), *(weigher.depends for weigher in weighing)}
        self._dependencies = tuple(dependencies - {depends_on_nothing})
        self._dynamic = tuple(rule for rule in others if rule.dynamic)
        self._has_affinity = bool(request.server_group or request.spread)
        self._is_dynamic = bool(self._dynamic) or self._has_affinity
        self.is_cached = not self._is_dynamic and not any(weigher.relative or weigher.dynamic for weigher in weighing)
        """Whether each row has a score and rank of its own, which only a change of that row changes."""
        self._seen = 0
        self._seen_state = (0, 0)
        self._walks: dict[int, _Walk] = {}
        self.places: dict[int, Place] = {}
        """The places proposed since the last change, by the number of the best host that each tries first."""
        self._open: NDArray[np.intp] | None = None
        self._dynamic_counts: list[ReasonCount] = []
        self._unassigned: list[int] | None = None
        self._ranked: NDArray[np.float64] | None = None
        self._parts: dict[int, Sequence[float]] = {}
        """What each weigher adds to the score of a row, as far as it was needed."""
        self._parts_of_all: list[Score] = []
        """The same for all rows, from their evaluation until the best ones are known."""
        self._parts_of_open: list[Score] = []
        """The same for the open rows, if scores are not cached."""
        self.texts: object | None = None
        """The `DecisionTexts` of the decisions on it, if they are kept."""
        self._uncounted: set[int] | None = None
        """The rows that may fail another rule first than at the last `take_uncounted`; None if any may."""
        self.unsearched = 0
        """The number of hosts that pass every rule and whose pools `unassigned` did not search."""
        self._evaluate_all()

    @cached_property
    def needs(self) -> PoolDemand:
        """The parts of the request, for assigning them to pools."""
        return demand_on(self.columns, self.request)

    @cached_property
    def _assignments(self) -> PoolAssignments:
        return PoolAssignments(self.columns, self.needs)

    # Fitting

    @property
    def fits(self) -> int:
        """The number of hosts that pass every rule. The pools of some of them may fail."""
        return len(self.open_rows()) if self._is_dynamic else self.passing

    @property
    def eligible(self) -> Mask:
        """The hosts that the request may use, ignoring available room: bool of shape (size,)."""
        mask = self._host_rules.mask
        for rule in self._live:
            if not rule.room:
                mask = mask & rule.passes(self.columns, ALL_ROWS)
        return mask

    def passes_host_rules(self, row: int) -> bool:
        """Return whether a row passes the rules about the host itself now."""
        return bool(self._host_rules.mask[row])

    def failed_host_rules(self) -> NDArray[np.float64]:
        """Return a copy of `HostRules.failed`."""
        return self._host_rules.failed.copy()

    def other_rules(self) -> tuple[Rule, ...]:
        """Return the rules in use that other requests for such hosts do not share, including dynamic ones."""
        dynamic = (rule for rule in self.dynamic_rules() if not rule.idle(self.columns))
        return (*self._live, *dynamic)

    def dynamic_rules(self, eligible: Eligible | None = None) -> tuple[Rule, ...]:
        """Return the rules that are tested at each decision, in their current state.

        `eligible` are the hosts over whose domains places are spread, if not those of this request alone.
        """
        if not self._has_affinity:
            return self._dynamic
        return self._dynamic + tuple(
            affinity_rules(self.request, self.columns, eligible or (lambda _by: self.eligible))
        )

    def open_rows(self) -> NDArray[np.intp]:
        """Return the rows that pass every rule, including the dynamic ones."""
        if self._open is None:
            rows, counts = np.flatnonzero(self.fitting), list[ReasonCount]()
            for rule in self.dynamic_rules():
                check_work(TESTING)
                passing = rule.passes(self.columns, rows)
                counts.append(ReasonCount(rule.reason, int(len(rows) - passing.sum())))
                rows = rows[passing]
            self._open, self._dynamic_counts = rows, counts
        return self._open

    def assigned(self, row: int) -> list[Amounts]:
        """Return the assignments on a host that passes every rule, best first; empty if its pools fail."""
        return [self.request.resources] if self.is_plain else self._assignments.of(row)

    def candidates(self, row: int) -> list[Candidate]:
        """Return what `assigned` returns, as candidates."""
        host = self.columns.name(row)
        return [Candidate(host, amounts) for amounts in self.assigned(row)]

    def assigned_now(self, row: int) -> list[Amounts]:
        """Return what `assigned` returns, while tentative places are in the columns, without caching."""
        return [self.request.resources] if self.is_plain else self._assignments.now(row)

    def takes(self, row: int) -> bool:
        """Return whether the pools of a host that passes every rule can give the request. Cheaper than `assigned`."""
        return self.is_plain or self._assignments.best(row) is not None

    def passes_now(self, row: int) -> bool:
        """Return whether a row passes the cached rules, while tentative places are in the columns."""
        if not self._hosts.item(row):
            return False
        return all(rule.passes(self.columns, row) for rule in self._live)

    def passes_all_now(self, row: int) -> bool:
        """Return whether a row passes every rule, including the dynamic ones, while tentative places are there."""
        return self.passes_now(row) and all(rule.passes(self.columns, row) for rule in self.dynamic_rules())

    def passing_now(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return what `passes_now` returns, for many rows that have hosts: bool of the rows' shape."""
        passing: NDArray[np.bool_] = self._hosts[rows]
        for rule in self._live:
            passing &= rule.passes(self.columns, rows)
        return passing

    # Rejections

    def counts(self) -> tuple[ReasonCount, ...]:
        """Return the number of rejected hosts by reason, in the order of the rules; for POOLS a lower bound."""
        unassigned = self.unassigned()
        reserved = {row for row, _ in self.columns.kept.rows()}
        kept = sum(map(self._takes_released, sorted(reserved.intersection(unassigned))))
        total = Counter[str]()
        for one in (*self._cached_counts(), *self._dynamic_counts, ReasonCount(KEPT, kept)):
            total[one.reason] += one.hosts
        # Last, because it includes the hosts that pass every rule.
        total[POOLS] = total.pop(POOLS, 0) + len(unassigned) - kept
        return tuple(ReasonCount(reason, hosts) for reason, hosts in total.items() if hosts)

    def _takes_released(self, row: int) -> bool:
        """Return whether a host would take the request if it kept nothing for another one."""
        with self.columns.released(row):
            return bool(self.assigned_now(row))

    def _cached_counts(self) -> Iterator[ReasonCount]:
        passing, left = self.columns.present, len(self.columns)
        for rule in self.rules:
            if left and not rule.idle(self.columns):
                check_work("counting the hosts by reason")
                rejecting = passing
                passing = passing & rule.passes(self.columns, ALL_ROWS)
                before, left = left, int(np.count_nonzero(passing))
                if before > left:
                    for reason, rows in Reasons(rule).of(self.columns, rejecting & ~passing):
                        yield ReasonCount(reason, len(rows))

    def unassigned(self) -> list[int]:
        """Return the rows that pass every rule and whose pools fail, as far as they were searched.

        In a large fleet only some are searched, beside those that decisions needed: `unsearched` more may fit or not.
        """
        if self._unassigned is None:
            rows = self.open_rows()
            self._unassigned, self.unsearched = ([], 0) if self.is_plain else self._assignments.failing(rows.tolist())
        return self._unassigned

    def dynamic_counts(self) -> list[ReasonCount]:
        """Return the number of hosts that only the dynamic rules reject, by reason."""
        if self._is_dynamic:
            self.open_rows()
        return self._dynamic_counts

    def known_to_fail(self) -> int:
        """Return the number of hosts that pass every rule and whose pools are known to fail."""
        if self.is_plain or not (failed := self._assignments.failed()):
            return 0
        return int(np.isin(self.open_rows(), failed).sum()) if self._is_dynamic else int(self.fitting[failed].sum())

    def take_uncounted(self) -> set[int] | None:
        """Return the rows that may fail another rule first than at the last call; None if any may."""
        changed, self._uncounted = self._uncounted, set()
        return changed

    def refusal(self) -> tuple[ReasonCount, ...]:
        """Return the counts of a refused request, including hosts that fit, but offer too few places for its count."""
        counts = self.counts()
        fitting = len(self.columns) - sum(one.hosts for one in counts)
        return counts + ((ReasonCount(COUNT, fitting),) if fitting else ())

    # Order

    def best(self, count: int) -> list[Entry]:
        """Return the `count` best rows that pass every rule, best first; fewer only if no more pass."""
        if not self.is_cached:
            return self._best_of_open(count)
        found = self._top_hosts.first(count)
        if found is None:
            self._fill_top_hosts(count)
            found = self._top_hosts.first(count)
        return found or []

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
        if self.is_plain and not walk.is_done:
            walk.verified = [(entry, Candidate(entry[1], self.request.resources)) for entry in self.best(count)]
            walk.is_done = True
        try:
            return self._walk_on(walk, most)
        except TooMuchWork:
            self._walks.clear()  # a host that it was looking at must not be left out of the next one
            raise

    def _walk_on(self, walk: "_Walk", most: int | None) -> bool:
        in_vain = 0
        while not walk.is_done and in_vain != most:
            check_work("searching the pools of hosts")
            in_vain += self._look_at_next(walk)
        return walk.is_done

    def _look_at_next(self, walk: "_Walk") -> bool:
        """Look at the next row of a walk, and return whether its pools were searched in vain."""
        entry = next(walk.entries, None)
        if entry is None:
            walk.is_done = True
            return False
        row = entry[2]
        amounts = self._assignments.best(row)
        if amounts is not None:
            walk.add(entry, amounts)
            return False
        # Until then it was not known to fail.
        self._drop(row)
        return True

    def _drop(self, row: int) -> None:
        """Leave a row out of the order until it changes, because its pools fail."""
        if self.is_cached:
            self.scores[row] = -np.inf
            self._top_hosts.update(row, None)
        elif self._ranked is not None:
            self._ranked[row] = -np.inf

    def _in_order(self, count: int) -> Iterator[Entry]:
        """Yield the rows that pass every rule, best first. Rows whose pools fail drop out of the order meanwhile."""
        yielded, looked_at = set[int](), count
        while further := [entry for entry in self.best(looked_at) if entry[2] not in yielded]:
            for entry in further:
                yielded.add(entry[2])
                yield entry
            looked_at = min(4 * looked_at, MAX_LOOKED_AT)

    def _best_of_open(self, count: int) -> list[Entry]:
        rows = self.open_rows()
        if self._ranked is None:
            ranked = np.full(self.columns.size, -np.inf)
            parts = list[Score]()
            ranked[rows] = score(self.columns, self.request, self.weighing, rows, parts)
            self._parts_of_open = parts
            if not self.is_plain:
                ranked[self._assignments.failed()] = -np.inf
            self._ranked = ranked
        best = best_of_all(self._ranked, self.columns.order, count).tolist()
        return [(-self._ranked.item(row), self.columns.name(row), row) for row in best]

    def peers(self, rows: Sequence[int], scores: Sequence[float]) -> int:
        """Return how many of the first of these rows are as good as the first one: see `Peers`."""
        return self._peers.count(self.columns, self.request, rows, scores)

    def score_of(self, row: int) -> float | None:
        """Return the score of a row; None if it does not pass every rule, or if its pools are known to fail."""
        if self.is_cached:
            value = self.scores.item(row) if self.fitting[row] else -np.inf
        else:
            self.best(1)
            assert self._ranked is not None
            value = self._ranked.item(row)
        return None if value == -np.inf else value

    def parts_of(self, rows: Sequence[int]) -> list[Sequence[float]]:
        """Return what each weigher adds to the score of each row; nothing for a row that does not fit.

        It is the same object until the score may have changed.
        """
        known = self._parts
        missing = [row for row in rows if row not in known]
        if missing:
            known.update(zip(missing, self._parts_now(missing), strict=True))
        return [known[row] for row in rows]

    def _parts_now(self, rows: Sequence[int]) -> list[Sequence[float]]:
        fitting = [row for row in rows if self.score_of(row) is not None]
        found: dict[int, Sequence[float]] = {}
        if not self.is_cached:
            at = np.searchsorted(self.open_rows(), fitting)
            parts = [one[at] if np.ndim(one) else one for one in self._parts_of_open]
            found = dict(zip(fitting, _by_row(parts, len(at)), strict=True))
        elif len(fitting) > MANY:
            found = dict(zip(fitting, self._parts_of_many(np.array(fitting, np.intp)), strict=True))
        else:
            for row in fitting:
                found[row] = one = list[Score]()
                score(self.columns, self.request, self.weighing, row, one)
        return [found.get(row, ()) for row in rows]

    def _parts_of_many(self, rows: NDArray[np.intp]) -> list[Sequence[float]]:
        parts = list[Score]()
        score(self.columns, self.request, self.weighing, rows, parts)
        return _by_row(parts, len(rows))

    # Updates

    def refresh(self) -> None:
        """Apply the changes in the columns since the last call."""
        if self.is_cached and self.is_plain and self._state() == self._seen_state:
            return None
        changed = self.columns.dirty.since(self._seen)
        if changed is None or self._depends_on() != self._depended:
            self._uncounted = None
            # Which amounts only roots give may have changed.
            self.__dict__.pop("needs", None)
            self.__dict__.pop("_assignments", None)
            return self._evaluate_all()
        if not self.is_plain:
            self._assignments.forget(changed)
        self._hosts = self._host_rules.mask
        if len(changed) > max(MANY, self.columns.size // ROWS_PER_CHANGE):
            self._count_again(changed)
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

    def _begin(self) -> None:
        self._seen = self.columns.dirty.now
        self._seen_state = self._state()
        self._walks.clear()
        self.places.clear()
        self._open = None
        self._dynamic_counts = []
        self._unassigned = None
        self._ranked = None
        self._parts_of_all = []
        if not self.is_cached:
            self._parts.clear()
        # Each decision gets a new budget of searches, so that abandoned ones exclude no host from the next decision.
        if not self.is_plain:
            self.needs.given_up = 0

    def _depends_on(self) -> tuple[object, ...]:
        columns = self.columns
        depended = [depends(columns) for depends in self._dependencies]
        of_roots = given_by_roots(columns, self.request)
        return (*depended, *self._host_rules.depended(), of_roots, is_plain(columns, self.request))

    def _evaluate_all(self) -> None:
        columns = self.columns
        self._depended = self._depends_on()
        self.is_plain = bool(self._depended[-1])
        self._hosts = self._host_rules.mask
        different = {rule.passes: rule for rule in self._others if not rule.idle(columns)}
        self._live = tuple(different.values())
        fitting = self._hosts.copy()
        for rule in self._live:
            check_work(TESTING)
            fitting &= rule.passes(columns, ALL_ROWS)
        self.fitting = fitting
        self.passing = int(np.count_nonzero(fitting))
        self._parts.clear()
        self._begin()
        if self.is_cached:
            self._parts_of_all = list[Score]()
            self.scores = scores(columns, self.request, self.weighing, fitting, self._parts_of_all)
            if not self.is_plain:
                self.scores[self._assignments.failed()] = -np.inf
            self._top_hosts = TopHosts()

    def _evaluate(self, row: int) -> None:
        fits = self.passes_now(row)
        if fits != self.fitting.item(row):
            self.fitting[row] = fits
            self.passing += 1 if fits else -1
            self._count_again((row,))
        elif not fits:
            self._count_again((row,))
        if self.is_cached:
            self.scores[row] = -np.inf
            self._parts.pop(row, None)
            self._top_hosts.update(row, self._entry(row) if fits else None)

    def _evaluate_rows(self, rows: NDArray[np.intp]) -> None:
        """Do what `_evaluate` does, for many rows at once."""
        columns, fitting = self.columns, self.passing_now(rows)
        before = self.fitting[rows]
        self.passing += int(np.count_nonzero(fitting)) - int(np.count_nonzero(before))
        if not (both := fitting & before).all():
            self._count_again(rows[~both].tolist())
        self.fitting[rows] = fitting
        if self.is_cached:
            self.scores[rows] = -np.inf
            for row in rows[~fitting].tolist():
                self._parts.pop(row, None)
                self._top_hosts.update(row, None)
            found = rows[fitting]
            parts = list[Score]()
            self.scores[found] = values = score(columns, self.request, self.weighing, found, parts)
            if self.texts is not None:
                self._parts.update(zip(found.tolist(), _by_row(parts, len(found)), strict=True))
            for value, row in zip(np.broadcast_to(values, found.shape).tolist(), found.tolist(), strict=True):
                self._top_hosts.update(row, (-value, columns.name(row), row))

    def _count_again(self, rows: Iterable[int]) -> None:
        if self._uncounted is not None:
            self._uncounted.update(rows)

    def _entry(self, row: int) -> Entry:
        parts = self._parts[row] = list[Score]()
        value = float(score(self.columns, self.request, self.weighing, row, parts))
        self.scores[row] = value
        return (-value, self.columns.name(row), row)

    def _fill_top_hosts(self, count: int) -> None:
        # A fraction of the fleet, so that a pass over all of it serves as many decisions as hosts were kept.
        often = max(2 * count, FRONT, self.columns.size // 32)
        room = max(count, FIRST_TOP_HOSTS) if self._top_hosts.is_new else often
        best = best_of_all(self.scores, self.columns.order, room)
        names = map(self.columns.name, best.tolist())
        entries = list(zip((-self.scores[best]).tolist(), names, best.tolist(), strict=True))
        self._top_hosts.fill(entries, complete=len(entries) < room or len(entries) == self.passing)
        self._keep_parts(best)

    def _keep_parts(self, rows: NDArray[np.intp]) -> None:
        """Keep the parts of the scores of these rows, if they are known, or needed soon: one by one they cost more."""
        parts, self._parts_of_all = self._parts_of_all, []
        if parts:
            found = _by_row([one[rows] if np.ndim(one) else one for one in parts], len(rows))
        elif self.texts is not None:
            found = self._parts_of_many(rows)
        else:
            return
        self._parts.update(zip(rows.tolist(), found, strict=True))


def _by_row(parts: Sequence[Score], rows: int) -> list[Sequence[float]]:
    """Return the parts of scores by row; each is an array over the rows, or one number for all of them."""
    columns = [one.tolist() if isinstance(one, np.ndarray) else [float(one)] * rows for one in parts]
    return list(zip(*columns, strict=True)) if columns else [()] * rows
