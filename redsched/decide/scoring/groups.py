"""Weighers of soft affinity, anti-affinity and spreading. Every claim changes them, so nothing is cached."""

from collections.abc import Callable

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.affinity import THIS_CALL, counts, counts_at, counts_by_row
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score
from redsched.model import GroupPolicy, Request


def members_near(policy: GroupPolicy, sign: float) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of a group's soft policy: `sign` times the members in the host's domain.

    The domain is the group's topology: the host, its zone, or a label's value. 0 for requests without a group, or with
    a group of another policy, and for hosts without a domain.
    """

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        state = columns.declared.groups.get(request.server_group)
        if state is None or state.group.policy is not policy:
            return columns.claims[rows] * 0.0
        by = state.group.by
        return sign * np.maximum(0, counts_at(columns, request.server_group, by, rows))

    return raw


def no_members_near(policy: GroupPolicy) -> Callable[[Columns, Request], bool]:
    """Make the test whether `members_near` is 0 everywhere, as the request has no group of this policy."""

    def idle(columns: Columns, request: Request) -> bool:
        state = columns.declared.groups.get(request.server_group) if request.server_group else None
        return state is None or state.group.policy is not policy

    return idle


def soft_spread(columns: Columns, request: Request, rows: Rows) -> Score:
    """Return minus the places in the host's domains, over all soft spread constraints of the request.

    A host without a domain counts like the fullest known one.
    """
    total: Score = columns.claims[rows] * 0.0
    for spread in request.spread:
        if not spread.hard:
            held = counts(columns, request.server_group or THIS_CALL, spread.by)
            nowhere = max(held.values(), default=0)
            near = counts_by_row(columns, held, spread.by)[rows]
            total = total - np.where(near < 0, nowhere, near)
    return total
