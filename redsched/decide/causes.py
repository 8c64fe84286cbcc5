"""Why hosts fail rules about amounts: what they keep for another request, units, or a lack of the amount itself."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Cause, Mask, Rows, Rule

KEPT = "kept"
"""The reason of hosts that would pass if they kept nothing for a request that waits for room."""


class Reasons:
    """The reasons under which the hosts that fail a rule are counted."""

    __slots__ = ("_causes", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._causes = (Cause.alone(KEPT, partial(_is_kept, rule)), *rule.causes()) if rule.room else ()

    def __iter__(self) -> Iterator[str]:
        """Yield every reason, in the order in which they are tested."""
        for cause in self._causes:
            yield from cause.reasons
        yield self.rule.reason

    def on(self, columns: Columns, row: int) -> str:
        """Return the reason of a host that fails the rule."""
        cause, index = self._first_on(columns, row)
        return self.rule.reason if cause is None else cause.reasons[index]

    def explained_on(self, columns: Columns, row: int) -> tuple[str, str]:
        """Return the reason of a host that fails the rule, and the rule's numbers there with the value of the cause."""
        text, (cause, index) = self.rule.detail(columns, row), self._first_on(columns, row)
        if cause is None:
            return self.rule.reason, text
        more = cause.detail(columns, row)
        return cause.reasons[index], f"{text}; {more}" if more and more not in text else text

    def of(self, columns: Columns, rejected: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield the rows that the rule rejects by reason, as far as there are any."""
        rows = np.flatnonzero(rejected)
        for cause in self._causes if len(rows) else ():
            first = cause.first(columns, rows)
            for index in np.unique(first).tolist():
                if index >= 0:
                    yield cause.reasons[index], rows[first == index]
            rows = rows[first < 0]
        if len(rows):
            yield self.rule.reason, rows

    def _first_on(self, columns: Columns, row: int) -> tuple[Cause | None, int]:
        for cause in self._causes:
            index = int(cause.first(columns, row))
            if index >= 0:
                return cause, index
        return None, -1


def _is_kept(rule: Rule, columns: Columns, rows: Rows) -> Mask:
    if isinstance(rows, int):
        return np.bool_(_passes_released(rule, columns, rows))
    asked: NDArray[np.intp] = np.arange(columns.size)[rows]
    found = np.zeros(len(asked), np.bool_)
    reserved = [row for row, _ in columns.reserved.rows()]
    for at in np.flatnonzero(np.isin(asked, reserved)).tolist() if reserved else ():
        found[at] = _passes_released(rule, columns, int(asked[at]))
    return found


def _passes_released(rule: Rule, columns: Columns, row: int) -> bool:
    if not columns.reserved.amounts(row):
        return False
    with columns.released(row):
        return bool(rule.passes(columns, row))
