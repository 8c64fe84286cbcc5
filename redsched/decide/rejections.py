"""The hosts that the cached rules of a shape reject, counted by reason, and updated for the rows that change."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from redsched.decide.causes import Reasons
from redsched.decide.profile import RequestProfile
from redsched.decide.rules import ALL_ROWS
from redsched.decide.work_limit import check_work
from redsched.model import ReasonCount

MANY_REJECTED = 16
"""Counting all rows again costs less than testing more of them one by one."""


class Rejections:
    """Counts under which reason each row is rejected first. Use it only on a profile that is current."""

    def __init__(self, profile: RequestProfile) -> None:
        self._profile = profile
        self._rules: tuple[Reasons, ...] = ()
        self._reasons: dict[str, int] = {}
        """The number of each reason, in the order of the rules."""
        self._first: NDArray[np.uint16] = np.zeros(0, np.uint16)
        """By row, the number of the first reason against it; of no reason if it fits, or has no host."""
        self._hosts: list[int] = []
        """By the number of the reason."""
        self.version = 0
        """Increases with each change of the counts."""

    def counts(self) -> list[ReasonCount]:
        """Return the counts as of the last `update`, in the order of the rules, without those of 0."""
        pairs = zip(self._reasons, self._hosts, strict=False)
        return [ReasonCount(reason, hosts) for reason, hosts in pairs if hosts]

    def update(self) -> None:
        """Count what has changed."""
        changed = self._profile.fitting.take_uncounted()
        rejected = None if changed is None else self._to_count(changed)
        if rejected is None or len(rejected) > MANY_REJECTED:
            self._count_all()
            return
        for row in rejected:
            self._move(row, self._first_of(row))

    def _to_count(self, changed: Collection[int]) -> list[int]:
        """Return those of the changed rows that do not fit, or did not when they were last counted."""
        none, fitting, first = len(self._reasons), self._profile.fitting.mask, self._first
        return [row for row in changed if not fitting.item(row) or first.item(row) != none]

    def _move(self, row: int, number: int) -> None:
        before = self._first.item(row)
        if before != number:
            self._hosts[before] -= 1
            self._hosts[number] += 1
            self._first[row] = number
            self.version += 1

    def _first_of(self, row: int) -> int:
        columns = self._profile.columns
        if self._profile.fitting.mask.item(row) or not columns.present.item(row):
            return len(self._reasons)
        failing = next((one for one in self._rules if not one.rule.passes(columns, row)), None)
        return len(self._reasons) if failing is None else self._reasons[failing.on(columns, row)]

    def _count_all(self) -> None:
        columns = self._profile.columns
        self._rules = tuple(Reasons(rule) for rule in self._profile.fitting.rules if not rule.idle(columns))
        self._reasons = {}
        for reason in (one for reasons in self._rules for one in reasons):
            self._reasons.setdefault(reason, len(self._reasons))
        none = len(self._reasons)
        self._first, self._hosts = np.full(columns.size, none, np.uint16), [0] * (none + 1)
        passing = columns.present
        for reasons in self._rules:
            check_work("counting the hosts by reason")
            before, passing = passing, passing & reasons.rule.passes(columns, ALL_ROWS)
            for reason, rows in reasons.of(columns, before & ~passing):
                self._first[rows] = self._reasons[reason]
                self._hosts[self._reasons[reason]] += len(rows)
        self._hosts[none] = columns.size - sum(self._hosts)
        self.version += 1
