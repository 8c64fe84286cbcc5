"""Compare the findings of successive audits: which persist, and which were repaired."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from redsched.model.records.audit import Problem

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


class Shared(Protocol):
    """What must be in one cell, and is in several. Its problem is one of the first of them, by name."""

    def problem(self) -> Problem:
        """Return it as a problem."""


ReadShared = Callable[[Sequence[str]], AsyncIterator[Shared]]
"""Reads things, and yields those that several cells have."""


async def shared_problems(cell: str, things: Sequence[str], read: ReadShared) -> tuple[Problem, ...]:
    """Return the problems of a cell with those of some things that each of several reads finds in several cells.

    What three cells have is a problem of the first of them only.
    """
    problems = list[Problem]()
    for _ in range(LOOKS):
        problems = [one.problem() async for one in read(things)]
        things = [one.thing for one in problems]
    return tuple(one for one in problems if one.cell == cell)


async def repaired_shared(
    before: Sequence[Problem], repair: Callable[[Problem], Awaitable[None]], read: ReadShared
) -> tuple[Problem, ...]:
    """Repair what can be of the problems with shared things, and return all of them as they are then."""
    for problem in before:
        if problem.repair:
            await repair(problem)
    after = [one.problem() async for one in read([one.thing for one in before])]
    return with_repaired(before, after)


def reason_of(problem: Problem) -> str:
    """Return the reason of a repair for the feed and the event log."""
    return f"{problem.what} of {problem.thing} was {problem.found}"[:MAX_REASON]


def _same(problem: Problem) -> tuple[int, str, str]:
    return problem.invariant, problem.thing, problem.what
