"""Why hosts fail rules about amounts: what they keep for another request, units, or a lack of the amount itself."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Cause, Mask, Rows, Rule

KEPT = "kept"
"""The reason of hosts that would pass if they kept nothing for a request that waits for room."""


def causes_of(rule: Rule) -> Sequence[Cause]:
    """Return the causes of a rule, in the order in which they are tested."""
    return (Cause(KEPT, partial(_is_kept, rule)), *rule.causes()) if rule.room else ()


def reasons_of(rule: Rule) -> Iterator[str]:
    """Yield the reasons under which hosts that fail a rule may be counted."""
    yield from (one.reason for one in causes_of(rule))
    yield rule.reason


def rejected_by(rule: Rule, columns: Columns, rejected: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield the rows that a rule rejects by reason, as far as there are any."""
    rows = np.flatnonzero(rejected)
    for cause in causes_of(rule) if len(rows) else ():
        applies = cause.applies(columns, rows)
        if applies.any():
            yield cause.reason, rows[applies]
            rows = rows[~applies]
    if len(rows):
        yield rule.reason, rows


def reason_on(rule: Rule, columns: Columns, row: int) -> str:
    """Return the reason under which a host that fails a rule is counted."""
    cause = _cause_on(rule, columns, row)
    return rule.reason if cause is None else cause.reason


def detail_on(rule: Rule, columns: Columns, row: int) -> str:
    """Return the numbers of a rule that a host fails, with the value of the cause."""
    text, cause = rule.detail(columns, row), _cause_on(rule, columns, row)
    more = cause.detail(columns, row) if cause is not None else ""
    return f"{text}; {more}" if more and more not in text else text


def _cause_on(rule: Rule, columns: Columns, row: int) -> Cause | None:
    return next((one for one in causes_of(rule) if one.applies(columns, row)), None)


def _is_kept(rule: Rule, columns: Columns, rows: Rows) -> Mask:
    if isinstance(rows, int):
        return np.bool_(_passes_released(rule, columns, rows))
    asked: NDArray[np.intp] = np.arange(columns.size)[rows]
    found = np.zeros(len(asked), np.bool_)
    reserved = [row for row, _ in columns.kept.rows()]
    for at in np.flatnonzero(np.isin(asked, reserved)).tolist() if reserved else ():
        found[at] = _passes_released(rule, columns, int(asked[at]))
    return found


def _passes_released(rule: Rule, columns: Columns, row: int) -> bool:
    if not columns.kept.amounts(row):
        return False
    with columns.released(row):
        return bool(rule.passes(columns, row))
