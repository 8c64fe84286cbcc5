"""The hosts that would take a request if they took claims now: down, not attested, disabled or draining."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.decide.host_rules import NOT_FOR_THE_ASKING
from redsched.decide.profile import RequestProfile
from redsched.decide.result import ClosedHost
from redsched.decide.work_limit import check_work

MAX_CLOSED = 3
"""The most hosts that are returned."""
MAX_SEARCHED = 64
"""The most hosts whose pools are searched."""


def closed_hosts(profile: RequestProfile) -> tuple[ClosedHost, ...]:
    """Return the first of these hosts, by name, each with the first reason why it takes no claims."""
    rows = _rows(profile)
    columns = profile.columns
    names = sorted((columns.name(row), row) for row in rows.tolist())[:MAX_SEARCHED]
    found = (ClosedHost(name, _reason(profile, row)) for name, row in names if profile.takes(row))
    return tuple(one for _, one in zip(range(MAX_CLOSED), found, strict=False))


def merge_closed(cells: Iterable[Sequence[ClosedHost]]) -> tuple[ClosedHost, ...]:
    """Return the first hosts of several cells, by name."""
    return tuple(sorted((one for cell in cells for one in cell), key=lambda one: one.host)[:MAX_CLOSED])


def _rows(profile: RequestProfile) -> NDArray[np.intp]:
    """Return the rows that fail a rule on whether hosts take claims, and no other rule."""
    columns = profile.columns
    is_open = columns.present.copy()
    for rule in profile.rules:
        if rule.reason in NOT_FOR_THE_ASKING:
            is_open &= rule.passes(columns, slice(None))
    rows = np.flatnonzero(columns.present & ~is_open)
    for rule in (*profile.rules, *profile.dynamic_rules()):
        check_work("looking for hosts that would fit if they took claims")
        if len(rows) and rule.reason not in NOT_FOR_THE_ASKING:
            rows = rows[rule.passes(columns, rows)]
    return rows


def _reason(profile: RequestProfile, row: int) -> str:
    return next(_failing(profile, row))


def _failing(profile: RequestProfile, row: int) -> Iterator[str]:
    for rule in profile.rules:
        if rule.reason in NOT_FOR_THE_ASKING and not rule.passes(profile.columns, row):
            yield rule.reason
