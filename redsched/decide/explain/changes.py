"""The smallest change of a request that lets one host take it, found edit by edit, each tested by a decision.

An edit relaxes one thing: an amount, a trait, a label, a condition. For the first rule that the host fails, the first
edit that makes it pass is kept, and so on until the host takes the request or no edit helps. Every reported change has
therefore been decided, with the same rules and pool search as any request.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

from redsched.decide.affinity import SERVER_GROUP, affinity_rules
from redsched.decide.explain.edits import (
    Build,
    Edit,
    Reducible,
    amounts,
    identical_groups,
    in_groups,
    of_class,
    with_resource,
    without,
    without_parts,
)
from redsched.decide.filters import rules_of
from redsched.decide.filters.places import max_unit_of, slot_free
from redsched.decide.filters.pools import groups
from redsched.decide.filters.units import has_units_on, next_valid, unit_text
from redsched.decide.fitting_rows import beside_host_filters
from redsched.decide.host_rules import host_key
from redsched.decide.pools import assignments, demand_on, given_by_roots
from redsched.decide.profile import RequestProfile
from redsched.decide.rules import ALL_ROWS, Mask, Rule
from redsched.decide.steps import Steps
from redsched.decide.work_limit import check_work
from redsched.model import Request

MAX_EDITS = 8
MAX_PLACED = 512
"""Placed parts of requests in the pool searches for one host's change, before the search for it is abandoned.

With eight groups these are 64 searches; most changes take ten or twenty.
"""
GIVEN_UP = 6
"""Assumed number of abandoned hosts before these searches, so that each is 64 times shorter than a decision's."""


class TooLongError(Exception):
    """A limit is reached. Only changes that were compared with all others are reported."""


@dataclass(slots=True)
class Effort:
    """The tests of changed requests that are left, for all hosts of one explanation together; None: not limited."""

    tests: int | None = None

    def count_test(self) -> None:
        """Count a test. Raises TooLongError if none is left."""
        if self.tests is not None:
            self.tests -= 1
            if self.tests < 0:
                raise TooLongError


RulesOf = Callable[[Request], Iterable[Rule]]


@dataclass(frozen=True, slots=True)
class Failed:
    """What a host fails: a rule, with the source of such rules; or no rule, if its pools fail."""

    rule: Rule | None
    rules_of: RulesOf

    @property
    def room(self) -> bool:
        """Whether smaller amounts may help."""
        return self.rule is None or self.rule.room

    @property
    def slot(self) -> str | None:
        """The slot, if the rule tests nothing else."""
        return None if self.rule is None else self.rule.slot


def change_steps(profile: RequestProfile, row: int, effort: Effort) -> Steps[tuple[Edit, ...]]:
    """Return the edits, in order, that make the host take one place; () if none were found within the effort.

    The host takes the request of the last edit. Each step tests one changed request.
    """
    try:
        return (yield from _smallest(_Host(profile, row, effort), profile.request))
    except TooLongError:
        return ()


def _smallest(host: "_Host", request: Request) -> Steps[tuple[Edit, ...]]:
    made: list[Edit] = []
    for _ in range(MAX_EDITS + 1):
        failed = host.fails(request)
        yield
        if failed is None:
            return tuple(made)
        found = yield from host.first_edit(request, failed)
        if found is None:
            return ()
        request = found.request
        made.append(found)
    return ()


def takes_now(profile: RequestProfile, row: int) -> bool:
    """Return whether a host takes a request, while tentative places are in the columns."""
    rules = (*profile.fitting.rules, *profile.fitting.dynamic_rules())
    return all(rule.passes(profile.columns, row) for rule in rules) and bool(profile.pools.now(row))


class _Host:
    """One host, tested repeatedly."""

    def __init__(self, profile: RequestProfile, row: int, effort: Effort) -> None:
        self._profile = profile
        self._effort = effort
        self._columns = profile.columns
        self._row = row
        self._host_key = host_key(profile.request)
        self._passes_host_rules = profile.fitting.passes_host_rules(row)
        self._placed = 0
        self._given_up = GIVEN_UP

    def fails(self, request: Request) -> Failed | None:
        """Return the first rule that it fails; None if it takes the request."""
        for failed in self._rules(request):
            if failed.rule is not None and not self._passes(failed.rule):
                return failed
        return None if self._takes(request) else Failed(None, lambda _: ())

    def first_edit(self, request: Request, failed: Failed) -> Steps[Edit | None]:
        """Return an edit that makes it pass what it failed, one of amounts if possible; None if no edit helps."""
        found = None
        if failed.slot is not None:
            found = yield from self._in_groups(request, failed.slot)
            if found is None:
                found = yield from self._in_units(of_class(request, failed.slot), failed, but="max_unit")
            if found is None:
                found = yield from self._with_free_amount(request, failed)
        elif failed.room:
            found = yield from self._reduced(request, failed)
        if found is not None:
            return found
        found = yield from self._first_that_helps(without(request, self._columns, self._row), failed)
        if found is None and failed.rule is None:
            found = yield from self._with_fewer_groups(request, failed)
        return found or (yield from self._first_that_helps(without_parts(request), failed))

    def _first_that_helps(self, edits: Iterable[Edit], failed: Failed) -> Steps[Edit | None]:
        for edit in edits:
            yield
            if self._helps(edit.request, failed):
                return self._with_cause(edit, failed)
        return None

    def _with_fewer_groups(self, request: Request, failed: Failed) -> Steps[Edit | None]:
        """Return the request without some of its identical groups, as few as possible."""
        for one in identical_groups(request):
            most = yield from _most(1, one.amount, partial(self._helps_with, failed, one.build))
            if most:
                return one.edit(most)
        return None

    def _with_cause(self, edit: Edit, failed: Failed) -> Edit:
        """Return the edit, with the numbers of a rule on a server group, whose name alone does not tell the cause."""
        if failed.rule is None or failed.rule.reason != SERVER_GROUP:
            return edit
        return replace(edit, says=f"{edit.says} ({failed.rule.detail(self._columns, self._row)})")

    def _rules(self, request: Request) -> Iterator[Failed]:
        """Yield all rules in the order in which a decision tests them."""
        filters = self._profile.filters
        if self._passes_host_rules and host_key(request) == self._host_key:
            filters = beside_host_filters(filters)
        sourced = [(rule, source) for source in filters for rule in source(request)]
        sourced.sort(key=lambda one: (one[0].dynamic, one[0].room))
        yield from starmap(Failed, sourced)
        yield from (Failed(rule, self._affinity) for rule in self._affinity(request))

    def _affinity(self, request: Request) -> Iterator[Rule]:
        return affinity_rules(request, self._columns, lambda _by: self._eligible(request))

    def _eligible(self, request: Request) -> Mask:
        """Return what `FittingRows.eligible` is for this request: edits may add domains to spread places over."""
        if request is self._profile.request:
            return self._profile.fitting.eligible
        mask = self._columns.present.copy()
        for rule in rules_of(request, self._profile.filters):
            if not (rule.dynamic or rule.room):
                mask &= rule.passes(self._columns, ALL_ROWS)
        return mask

    def _passes(self, rule: Rule) -> bool:
        return bool(rule.passes(self._columns, self._row))

    def _helps(self, request: Request, failed: Failed) -> bool:
        self._effort.count_test()
        check_work("testing a change of the request")
        if failed.rule is None:
            return self._takes(request)
        reason = failed.rule.reason
        return all(self._passes(rule) for rule in failed.rules_of(request) if rule.reason == reason)

    def _helps_with(self, failed: Failed, build: Build, amount: int) -> bool:
        return self._helps(build(amount), failed)

    def _takes(self, request: Request) -> bool:
        """Return whether its pools fit a request. Raises TooLongError if the searches have taken too long."""
        if request is self._profile.request:
            return self._profile.takes(self._row)
        needs = demand_on(self._columns, request)
        self._placed += sum(part.count for part in needs.parts)
        if self._placed > MAX_PLACED:
            raise TooLongError
        needs.given_up = self._given_up
        found = assignments(self._columns, self._row, needs, 1)
        self._given_up = needs.given_up
        return bool(found)

    def _in_groups(self, request: Request, slot: str) -> Steps[Edit | None]:
        """Return the request with an amount that no place has in groups, if the pools can give all groups now."""
        edit = in_groups(request, self._columns, self._row, slot)
        if edit is None:
            return None
        yield
        self._effort.count_test()
        check_work("testing a change of the request")
        alone = replace(edit.request, resources={})
        fits = all(self._passes(rule) for rule in rules_of(alone, (groups,))) and self._takes(alone)
        return edit if fits else None

    def _with_free_amount(self, request: Request, failed: Failed) -> Steps[Edit | None]:
        """Return the request with an amount of one class that the host has: in its root, in its units, or in a pool."""
        slot, columns, row = failed.slot or "", self._columns, self._row
        amount, step = request.resources[slot], columns.step[slot].item(row)
        own = min(slot_free(columns, slot, row), columns.maximum[slot].item(row)) // step * step
        build, least = partial(with_resource, request, slot), max(own, 1)
        helps = partial(self._helps_with, failed, build)
        if self._profile.pools.is_plain or slot in given_by_roots(columns, request):  # no place has more than the root
            most = least if least < amount and helps(least) else 0
        else:
            most = yield from _most(least, amount, helps)
        if not most:
            return None
        limit = max_unit_of(columns, slot, most, row)
        cause = f" (max_unit {limit})" if limit is not None else ""
        return Edit(f"{amount - most} {slot} less{cause}", build(most))

    def _in_units(self, one: Reducible, failed: Failed, but: str = "") -> Steps[Edit | None]:
        """Return the request with the next amounts that units of the host admit, if one other than `but` forbids it."""
        unit = unit_text(self._columns, one.resource_class, one.amount, self._row)
        if not unit or unit.split()[0] == but:
            return None
        helpful = yield from self._helpful_units(one, failed)
        return one.instead(helpful, unit) if helpful else None

    def _helpful_units(self, one: Reducible, failed: Failed) -> Steps[list[int]]:
        """Return the next smaller and the next larger amount that the host can give, as far as they help."""
        helpful = list[int]()
        for amount in next_valid(self._columns, one.resource_class, one.amount, self._row):
            yield
            if amount and self._helps(one.build(int(amount)), failed):
                helpful.append(int(amount))
        return helpful

    def _reduced(self, request: Request, failed: Failed) -> Steps[Edit | None]:
        """Return the request with one amount reduced just enough: that which needs the smallest relative reduction."""
        best: tuple[float, Edit] | None = None
        for one in amounts(request):
            if one.resource_class and has_units_on(self._columns, one.resource_class, self._row):
                found = yield from self._in_units(one, failed)
                if found is not None:
                    return found
            # Only a reduction smaller than the best so far is useful.
            least = 1 if best is None else int(one.amount * (1 - best[0])) + 1
            most = yield from _most(least, one.amount, partial(self._helps_with, failed, one.build))
            if most:
                best = (one.amount - most) / one.amount, one.edit(most)
        return None if best is None else best[1]


def _most(least: int, amount: int, helps: Callable[[int], bool]) -> Steps[int]:
    """Return the largest helpful amount below this one, by bisection; 0 if not even the smallest helps."""
    yield
    if least >= amount or not helps(least):
        return 0
    low, high = least, amount
    while high - low > 1:
        yield
        middle = (low + high) // 2
        low, high = (middle, high) if helps(middle) else (low, middle)
    return low
