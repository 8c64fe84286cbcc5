"""The rules about hosts themselves, whose results are shared by all requests that want the same kind of host.

Requests of different shapes mostly differ in their amounts. Which hosts are up, enabled, in a zone and have a trait is
then known already, for all rows, from an earlier request.
"""

from collections.abc import Hashable
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.cache.derived import RowCache
from redsched.decide.filters import HOST_FILTERS, rules_of
from redsched.decide.filters.hosts import DOWN, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING
from redsched.decide.remembered import Remembered
from redsched.decide.rules import Mask, Rows, Rule, depends_on_nothing
from redsched.decide.work_limit import check_work
from redsched.model import Request
from redsched.model.json_codec import Fields, as_text

NOT_FOR_THE_ASKING = frozenset((DOWN, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING))
"""Reasons that no change of a request can remove."""
_TESTING = "testing what the hosts are"
_usual_fields = attrgetter("zones", "required", "forbidden", "any_of", "root_required", "root_forbidden")
_RARE_FIELDS = (
    *("hosts", "exclude_hosts", "member_of", "not_member_of"),
    *("labels", "aggregate_metadata", "properties", "hints"),
)
"""Fields that few requests have, some of which are not hashable, or equal without meaning the same (1 and True)."""
_rare_fields = attrgetter(*_RARE_FIELDS)
_NO_RARE_FIELDS = _rare_fields(Request({"VCPU": 1}))
_RARE = Fields(_RARE_FIELDS, dict(zip(_RARE_FIELDS, _NO_RARE_FIELDS, strict=True)))


class HostRules:
    """The rules that HOST_FILTERS yield for a request, and the hosts that pass them."""

    def __init__(self, columns: Columns, request: Request) -> None:
        self._columns = columns
        self.rules = rules_of(request, HOST_FILTERS)
        self._dependencies = {rule.depends for rule in self.rules} - {depends_on_nothing}
        self._depended: tuple[Hashable, ...] = ()
        self._live: tuple[Rule, ...] = ()
        self._passing, self._failures = RowCache(), RowCache()

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The hosts that pass every rule now: bool of shape (size,). Do not write to it."""
        self._refresh()
        return self._passing.current(self._columns.dirty, self._passes)

    @property
    def failed(self) -> NDArray[np.float64]:
        """The number of rules that each host fails; inf if it has no host, or no request can help it. Do not write."""
        self._refresh()
        return self._failures.current(self._columns.dirty, self._failed)

    def depended(self) -> tuple[Hashable, ...]:
        """Return a value that changes when all rows must be tested again."""
        return tuple([depends(self._columns) for depends in self._dependencies])

    def _refresh(self) -> None:
        depended = self.depended()
        if depended != self._depended or not self._live:
            self._depended = depended
            self._live = tuple(rule for rule in self.rules if not rule.idle(self._columns))
            self._passing.clear()
            self._failures.clear()

    def _failed(self, rows: Rows) -> Any:
        failed = np.where(self._columns.present[rows], 0.0, np.inf)
        for rule in self._live:
            check_work(_TESTING)
            weight = np.inf if rule.reason in NOT_FOR_THE_ASKING else 1.0
            failed = failed + np.where(rule.passes(self._columns, rows), 0.0, weight)
        return failed

    def _passes(self, rows: Rows) -> Mask:
        passing = self._columns.present[rows]
        for rule in self._live:
            check_work(_TESTING)
            passing = passing & rule.passes(self._columns, rows)
            if isinstance(rows, int) and not passing:
                break
        return passing


class HostRulesCache:
    """The host rules of the latest `remembered` kinds of requests."""

    def __init__(self, columns: Columns, remembered: int) -> None:
        self._columns = columns
        self._known: Remembered[Hashable, HostRules] = Remembered(remembered)

    def of(self, request: Request, project: str | None) -> HostRules:
        """Return the rules for a request. `project` is its project if that matters, else None."""
        key = host_key(request), project
        found = self._known.get(key)
        if found is None:
            found = HostRules(self._columns, request)
            self._known.add(key, found)
        return found


def host_key(request: Request) -> Hashable:
    """Return a key that is equal for requests with equal host rules: all that HOST_FILTERS read, but the project."""
    rare = "" if _rare_fields(request) == _NO_RARE_FIELDS else as_text(_RARE.of(request))
    return _usual_fields(request), _traits_of_parts(request), rare


def _traits_of_parts(request: Request) -> frozenset[str]:
    if not (request.groups or request.pci):
        return frozenset()
    groups, devices = ((one.required for one in parts) for parts in (request.groups, request.pci))
    return frozenset[str]().union(*groups, *devices)
