"""Where requests were placed, and when: whether a cell goes on, and how soon it does again."""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

Ids = tuple[str, ...]
"""What a request was asked with."""


@dataclass(slots=True)
class Placings:
    """All that were heard of."""

    by_cell: Counter[str] = field(default_factory=Counter)
    """How many so far."""
    first: dict[str, float] = field(default_factory=dict)
    """By the monotonic clock, when the first of each cell was heard of that was asked for since `look_for_first`."""
    _asked_before: frozenset[Ids] = frozenset()

    def look_for_first(self, under_way: Collection[Ids]) -> None:
        """From now on wait in each cell for one of requests that are not under way yet."""
        self.first, self._asked_before = {}, frozenset(under_way)

    def note(self, asked: Ids, cell: str) -> None:
        """A request was placed."""
        self.by_cell[cell] += 1
        if asked not in self._asked_before:
            self.first.setdefault(cell, time.monotonic())
