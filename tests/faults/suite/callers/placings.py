"""Where requests were placed, and when: whether a cell still places claims, and how soon it does so again."""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

Ids = tuple[str, ...]
"""The parameters of a request."""


@dataclass(slots=True)
class Placings:
    """All placements that were reported."""

    by_cell: Counter[str] = field(default_factory=Counter)
    """The number of placements so far."""
    first: dict[str, float] = field(default_factory=dict)
    """Monotonic time of the first placement in each cell that was requested after `look_for_first`."""
    _asked_before: frozenset[Ids] = frozenset()

    def look_for_first(self, under_way: Collection[Ids]) -> None:
        """From now on wait in each cell for a placement of a new request."""
        self.first, self._asked_before = {}, frozenset(under_way)

    def note(self, asked: Ids, cell: str) -> None:
        """Record a placement."""
        self.by_cell[cell] += 1
        if asked not in self._asked_before:
            self.first.setdefault(cell, time.monotonic())
