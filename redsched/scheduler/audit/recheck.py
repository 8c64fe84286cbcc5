"""Compare the findings of successive audits: which persist, and which were repaired."""

from collections.abc import Iterable
from dataclasses import replace

from redsched.scheduler.results import Problem

LOOKS = 3
"""A finding that spans several reads is a problem if this many audits in a row find it."""
MAX_REASON = 64


def confirmed(suspected: Iterable[Problem], now: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the findings of a later audit that an earlier one found too."""
    before = {_same(one) for one in suspected}
    return tuple(one for one in now if _same(one) in before)


def with_repaired(before: Iterable[Problem], after: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that are gone, marked as repaired, and those that remain."""
    left = tuple(after)
    still = {_same(one) for one in left}
    return (*(replace(one, repaired=True) for one in before if _same(one) not in still), *left)


def reason_of(problem: Problem) -> str:
    """Return the reason of a repair for the feed and the event log."""
    return f"{problem.what} of {problem.thing} was {problem.found}"[:MAX_REASON]


def _same(problem: Problem) -> tuple[int, str, str]:
    return problem.invariant, problem.thing, problem.what
