"""Long computations in steps, so that a caller with an event loop can let other tasks run in between.

A generator yields between its steps, and returns the result. The columns may change at each yield.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    """Run all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


class Undecided(Exception):
    """A decision needs more searches of pools than its caller allowed: run `steps` first, then decide again."""

    def __init__(self, steps: Steps[None]) -> None:
        super().__init__("the pools of many hosts have to be searched first")
        self.steps = steps
