"""What audits have found, looked at again: whether it is still there, and whether it was repaired."""

from collections.abc import Iterable
from dataclasses import replace

from redsched.scheduler.results import Problem

LOOKS = 3
"""What spans more than one reading is broken if so many looks in a row find it."""
MAX_REASON = 64


def seen_again(suspected: Iterable[Problem], now: Iterable[Problem]) -> tuple[Problem, ...]:
    """Those of a later look that an earlier one has found too."""
    before = {_same(one) for one in suspected}
    return tuple(one for one in now if _same(one) in before)


def with_repaired(before: Iterable[Problem], after: Iterable[Problem]) -> tuple[Problem, ...]:
    """What was wrong before and is no more, as repaired; and what is wrong after."""
    left = tuple(after)
    still = {_same(one) for one in left}
    return (*(replace(one, repaired=True) for one in before if _same(one) not in still), *left)


def reason_of(problem: Problem) -> str:
    """Why something was repaired, as the feed and the event log tell it."""
    return f"{problem.what} of {problem.thing} was {problem.found}"[:MAX_REASON]


def _same(problem: Problem) -> tuple[int, str, str]:
    return problem.invariant, problem.thing, problem.what
