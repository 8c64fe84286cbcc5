"""The rows of one cell's columns that pass the rules of one request.

rules about the host itself   for all rows once, shared by all shapes that want the same kind of host
other rules                   for all rows once, then only for changed rows, by the same rules
dynamic rules, affinity       at each decision, for the rows that passed the others
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.affinity import Eligible, affinity_rules
from redsched.decide.causes import Reasons
from redsched.decide.filters import HOST_FILTERS, rules_of
from redsched.decide.host_rules import HostRules
from redsched.decide.rules import ALL_ROWS, Filter, Mask, Rule
from redsched.decide.work_limit import check_work
from redsched.model import ReasonCount, Request

TESTING = "testing what the hosts have left"


@lru_cache(8)
def beside_host_filters(filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
    """Return the filters that are not among HOST_FILTERS."""
    return tuple(one for one in filters if one not in HOST_FILTERS)


class FittingRows:
    """Which rows pass. `mask` is bool of shape (size,): whether a row has a host that passes all cached rules.

    `passing` is the number of such rows, `rules` are the cached ones, and `is_dynamic` tells whether there are others.
    The profile evaluates rows, before anything else is read.
    """

    mask: NDArray[np.bool_]
    passing: int

    def __init__(
        self, columns: Columns, request: Request, filters: tuple[Filter, ...], host_rules: HostRules | None
    ) -> None:
        self._columns = columns
        self._request = request
        self._host_rules = host_rules or HostRules(columns, request)
        others = rules_of(request, beside_host_filters(filters))
        self._others = tuple(rule for rule in others if not rule.dynamic)
        self._dynamic = tuple(rule for rule in others if rule.dynamic)
        self._has_affinity = bool(request.server_group or request.spread)
        self.rules = (*self._host_rules.rules, *self._others)
        self.is_dynamic = bool(self._dynamic) or self._has_affinity
        self._uncounted: set[int] | None = None
        """The rows that may fail another rule first than at the last `take_uncounted`; None if any may."""
        self._open: NDArray[np.intp] | None = None
        self._dynamic_counts: list[ReasonCount] = []

    @property
    def dependencies(self) -> set[Callable[[Columns], Hashable]]:
        """Functions whose values, if they change, require that all rows are tested again; see `host_rules_depended`."""
        return {rule.depends for rule in self._others}

    def host_rules_depended(self) -> tuple[Hashable, ...]:
        """Return `HostRules.depended`."""
        return self._host_rules.depended()

    # Evaluating

    def evaluate_all(self) -> None:
        """Test all rows."""
        self.reread_host_rules()
        different = {rule.passes: rule for rule in self._others if not rule.idle(self._columns)}
        self._live = tuple(different.values())
        mask = self._hosts.copy()
        for rule in self._live:
            check_work(TESTING)
            mask &= rule.passes(self._columns, ALL_ROWS)
        self.mask = mask
        self.passing = int(np.count_nonzero(mask))

    def reread_host_rules(self) -> None:
        """Read which hosts pass the rules about hosts, before changed rows are evaluated."""
        self._hosts = self._host_rules.mask

    def evaluate(self, row: int) -> bool:
        """Test a changed row, and return whether it passes."""
        fits = self.passes_now(row)
        if fits != self.mask.item(row):
            self.mask[row] = fits
            self.passing += 1 if fits else -1
            self.count_again((row,))
        elif not fits:
            self.count_again((row,))
        return fits

    def evaluate_many(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Do what `evaluate` does, for many rows at once: bool of the rows' shape."""
        fitting, before = self.passing_now(rows), self.mask[rows]
        self.passing += int(np.count_nonzero(fitting)) - int(np.count_nonzero(before))
        if not (both := fitting & before).all():
            self.count_again(rows[~both].tolist())
        self.mask[rows] = fitting
        return fitting

    def begin(self) -> None:
        """Forget what the dynamic rules said at the last decision."""
        self._open = None
        self._dynamic_counts = []

    def count_again(self, rows: Iterable[int] | None) -> None:
        """Note rows that may fail another rule first from now on; None: any may."""
        if rows is None:
            self._uncounted = None
        elif self._uncounted is not None:
            self._uncounted.update(rows)

    # Which rows pass

    @property
    def count(self) -> int:
        """The number of rows that pass every rule. The pools of some of them may fail."""
        return len(self.open_rows()) if self.is_dynamic else self.passing

    @property
    def eligible(self) -> Mask:
        """The hosts that the request may use, ignoring available room: bool of shape (size,)."""
        mask = self._host_rules.mask
        for rule in self._live:
            if not rule.room:
                mask = mask & rule.passes(self._columns, ALL_ROWS)
        return mask

    def passes_host_rules(self, row: int) -> bool:
        """Return whether a row passes the rules about the host itself now."""
        return bool(self._host_rules.mask[row])

    def failed_host_rules(self) -> NDArray[np.float64]:
        """Return a copy of `HostRules.failed`."""
        return self._host_rules.failed.copy()

    def other_rules(self) -> tuple[Rule, ...]:
        """Return the rules in use that other requests for such hosts do not share, including dynamic ones."""
        dynamic = (rule for rule in self.dynamic_rules() if not rule.idle(self._columns))
        return (*self._live, *dynamic)

    def dynamic_rules(self, eligible: Eligible | None = None) -> tuple[Rule, ...]:
        """Return the rules that are tested at each decision, in their current state.

        `eligible` are the hosts over whose domains places are spread, if not those of this request alone.
        """
        if not self._has_affinity:
            return self._dynamic
        return self._dynamic + tuple(
            affinity_rules(self._request, self._columns, eligible or (lambda _by: self.eligible))
        )

    def open_rows(self) -> NDArray[np.intp]:
        """Return the rows that pass every rule, including the dynamic ones."""
        if self._open is None:
            rows, counts = np.flatnonzero(self.mask), list[ReasonCount]()
            for rule in self.dynamic_rules():
                check_work(TESTING)
                passing = rule.passes(self._columns, rows)
                counts.append(ReasonCount(rule.reason, int(len(rows) - passing.sum())))
                rows = rows[passing]
            self._open, self._dynamic_counts = rows, counts
        return self._open

    def passes_now(self, row: int) -> bool:
        """Return whether a row passes the cached rules, while tentative places are in the columns."""
        if not self._hosts.item(row):
            return False
        return all(rule.passes(self._columns, row) for rule in self._live)

    def passes_all_now(self, row: int) -> bool:
        """Return whether a row passes every rule, including the dynamic ones, while tentative places are there."""
        return self.passes_now(row) and all(rule.passes(self._columns, row) for rule in self.dynamic_rules())

    def passing_now(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return what `passes_now` returns, for many rows that have hosts: bool of the rows' shape."""
        passing: NDArray[np.bool_] = self._hosts[rows]
        for rule in self._live:
            passing &= rule.passes(self._columns, rows)
        return passing

    # Which rows are rejected

    def counts(self) -> Iterator[ReasonCount]:
        """Yield the number of hosts that the cached rules reject, by reason, in the order of the rules."""
        passing, left = self._columns.present, len(self._columns)
        for rule in self.rules:
            if left and not rule.idle(self._columns):
                check_work("counting the hosts by reason")
                rejecting = passing
                passing = passing & rule.passes(self._columns, ALL_ROWS)
                before, left = left, int(np.count_nonzero(passing))
                if before > left:
                    for reason, rows in Reasons(rule).of(self._columns, rejecting & ~passing):
                        yield ReasonCount(reason, len(rows))

    def dynamic_counts(self) -> list[ReasonCount]:
        """Return the number of hosts that only the dynamic rules reject, by reason."""
        if self.is_dynamic:
            self.open_rows()
        return self._dynamic_counts

    def take_uncounted(self) -> set[int] | None:
        """Return the rows that may fail another rule first than at the last call; None if any may."""
        changed, self._uncounted = self._uncounted, set()
        return changed
