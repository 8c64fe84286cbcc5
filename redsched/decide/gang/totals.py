"""Results over all kinds of a call: refusal reasons, number of hosts, score."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from redsched.decide.filters import COUNT
from redsched.decide.gang.kinds import Kind
from redsched.decide.gang.placement import Found
from redsched.model import ReasonCount


def refusal(kinds: Sequence[Kind], found: Found) -> tuple[ReasonCount, ...]:
    """Return the counts of the first kind without a place, under its member's name if there are several kinds."""
    kind = kinds[found.failed]
    reasons = (replace(one, reason=found.reason) if one.reason == COUNT else one for one in kind.profile.refusal())
    return named(kinds, kind, tuple(reasons))


def named(kinds: Sequence[Kind], kind: Kind, reasons: tuple[ReasonCount, ...]) -> tuple[ReasonCount, ...]:
    """Return reasons prefixed with the name of their member: `db: MEMORY_MB`."""
    if len(kinds) == 1:
        return reasons
    return tuple(replace(one, reason=f"{kind.member}: {one.reason}") for one in reasons)


def best_score(kinds: Sequence[Kind]) -> float:
    """Return the mean, over the places, of the best host's score for each: comparable between cells."""
    best = [kind.profile.ranking.best(1) for kind in kinds]
    total = sum(-first[0][0] * kind.count for first, kind in zip(best, kinds, strict=True) if first)
    return total / sum(kind.count for kind in kinds)


def hosts_that_fit(kinds: Sequence[Kind]) -> int:
    """Return the number of hosts that may take a place of any kind."""
    if len(kinds) == 1:
        return kinds[0].profile.fitting.count
    takes = np.zeros(kinds[0].profile.columns.size, np.bool_)
    for kind in kinds:
        takes[kind.profile.fitting.open_rows()] = True
    return int(takes.sum())
