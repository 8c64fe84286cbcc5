"""The limit on the processor time that deciding one request takes.

Deciding checks it at its inner steps, and is abandoned beyond it. The limit in force is a context variable: every rule,
search and weigher would have to pass it on otherwise. Without one in force, nothing is limited.

Processor time, because a request is not hard when others use the machine; and without garbage collections, which are
due to what all requests have created.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from redsched.decide.steps import Steps

T = TypeVar("T")

clock = time.thread_time


class TooMuchWork(Exception):
    """Deciding was abandoned: it has used up its limit. The columns are as before; `doing` is what it was at."""

    def __init__(self, doing: str, spent_s: float) -> None:
        super().__init__(f"abandoned after {spent_s * 1e3:.0f} ms: {doing}")
        self.doing = doing
        self.spent_s = spent_s


class _Collections:
    """The processor time of garbage collections so far."""

    def __init__(self) -> None:
        self.spent_s = self._began_s = 0.0

    def on_phase(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began_s = clock()
        else:
            self.spent_s += clock() - self._began_s


_collections = _Collections()


def _count_collection(phase: str, about: dict[str, int]) -> None:
    _collections.on_phase(phase, about)


gc.callbacks.append(_count_collection)


def _now_s() -> float:
    return clock() - _collections.spent_s


class WorkLimit:
    """The limit for one request: `stretch_s` between two turns of the event loop, `total_s` in all."""

    def __init__(self, stretch_s: float, total_s: float) -> None:
        self.spent_s = 0.0
        self._stretch_s, self._total_s = stretch_s, total_s
        self._began_s = self._until_s = 0.0
        self._place = ""

    @contextmanager
    def working(self) -> Iterator[None]:
        """Put the limit in force inside the context, which is one stretch of work. Raises TooMuchWork from within."""
        token = _current.set(self)
        self._began_s = _now_s()
        self._until_s = self._began_s + min(self._stretch_s, self._total_s - self.spent_s)
        try:
            yield
        finally:
            _current.reset(token)
            self.spent_s += _now_s() - self._began_s

    def check(self, doing: str) -> None:
        """Raise TooMuchWork if the limit is reached; `doing` says what is about to be done."""
        now_s = _now_s()
        if now_s >= self._until_s:
            raise TooMuchWork(f"{doing}{self._place}", self.spent_s + now_s - self._began_s)

    def at_place(self, number: int, places: int) -> None:
        """Note the place that is worked at, of several."""
        self._place = f" for place {number} of {places}" if places > 1 else ""


_current: ContextVar[WorkLimit | None] = ContextVar("redsched-work-limit", default=None)


def check_work(doing: str) -> None:
    """Raise TooMuchWork if a limit is in force and reached; `doing` says what is about to be done."""
    limit = _current.get()
    if limit is not None:
        limit.check(doing)


def work_at_place(number: int, places: int) -> None:
    """Note, for the limit in force, which of several places is worked at."""
    limit = _current.get()
    if limit is not None:
        limit.at_place(number, places)


def within(limit: WorkLimit, steps: Steps[T]) -> Steps[T]:
    """Run steps with the limit in force for each of them, and return their result. Raises TooMuchWork."""
    while True:
        with limit.working():
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
        yield
