"""The hosts that would take a request if they took claims now: down, not attested, disabled or draining."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from redsched.decide.host_rules import NOT_FOR_THE_ASKING
from redsched.decide.profile import RequestProfile
from redsched.decide.rules import ALL_ROWS, Rule
from redsched.decide.work_limit import check_work
from redsched.model.records.explanations import ClosedHost

MAX_CLOSED = 3
"""The most hosts that are returned."""
MAX_SEARCHED = 64
"""The most hosts whose pools are searched."""


def closed_hosts(profile: RequestProfile) -> tuple[ClosedHost, ...]:
    """Return the first of these hosts, by name, each with the first reason why it takes no claims."""
    name = profile.columns.name
    rows = sorted(_rows(profile), key=name)[:MAX_SEARCHED]
    found = (ClosedHost(name(row), _reason(profile, row)) for row in rows if profile.takes(row))
    return tuple(islice(found, MAX_CLOSED))


def merge_closed(cells: Iterable[Sequence[ClosedHost]]) -> tuple[ClosedHost, ...]:
    """Return the first hosts of several cells, by name."""
    return tuple(sorted((one for cell in cells for one in cell), key=lambda one: one.host)[:MAX_CLOSED])


def _rows(profile: RequestProfile) -> list[int]:
    """Return the rows that fail a rule on whether hosts take claims, and no other rule."""
    columns = profile.columns
    is_open = columns.present.copy()
    for rule in _on_state(profile):
        is_open &= rule.passes(columns, ALL_ROWS)
    rows = np.flatnonzero(columns.present & ~is_open)
    for rule in (*profile.fitting.rules, *profile.fitting.dynamic_rules()):
        check_work("looking for hosts that would fit if they took claims")
        if len(rows) and rule.reason not in NOT_FOR_THE_ASKING:
            rows = rows[rule.passes(columns, rows)]
    return rows.tolist()


def _reason(profile: RequestProfile, row: int) -> str:
    """Return the first reason why the host takes no claims."""
    return next(rule.reason for rule in _on_state(profile) if not rule.passes(profile.columns, row))


def _on_state(profile: RequestProfile) -> list[Rule]:
    """Return the rules on whether hosts take claims."""
    return [rule for rule in profile.fitting.rules if rule.reason in NOT_FOR_THE_ASKING]
