"""Tentative assignments of places to rows, and the record of changed rows. Makes no choices."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.affinity import counted_in
from redsched.decide.gang.kinds import Kind, seats_of
from redsched.decide.overlay import Overlay
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import Candidate, RelationType


class Assignment(NamedTuple):
    """A place's row, and what it takes there."""

    row: int
    candidate: Candidate


class GangState:
    """The places of a call by number. `touched` records the row of each assignment and removal, in order."""

    def __init__(
        self, columns: Columns, kinds: Sequence[Kind], aparts: Sequence[frozenset[int]], trial: Overlay
    ) -> None:
        self.touched: list[int] = []
        self.sittings: dict[int, Assignment] = {}
        self._kind_of = seats_of(kinds)
        self._counted = [counted_in(kind.request, columns) for kind in kinds]
        self._trial = trial
        self._numbers: dict[int, int] = {}
        self._on: defaultdict[int, list[int]] = defaultdict(list)
        held = [(related, np.zeros(columns.size, np.int32)) for related in aparts]
        self._held = [[counts for related, counts in held if number in related] for number in range(len(kinds))]

    def sit(self, place: int, row: int, candidate: Candidate) -> None:
        """Assign a place to a row."""
        kind = self._kind_of[place]
        self._numbers[place] = self._trial.take(row, candidate, self._counted[kind])
        self.sittings[place] = Assignment(row, candidate)
        self._on[row].append(place)
        self._touch(kind, row, 1)

    def get_up(self, place: int) -> None:
        """Unassign a place; do nothing if it has no row."""
        sitting = self.sittings.pop(place, None)
        if sitting is None:
            return
        self._trial.give_back(self._numbers.pop(place))
        self._on[sitting.row].remove(place)
        self._touch(self._kind_of[place], sitting.row, -1)

    def on(self, row: int) -> tuple[int, ...]:
        """Return the places on a row, in the order of their assignment."""
        return tuple(self._on.get(row, ()))

    def rows(self) -> tuple[int, ...]:
        """Return the rows with a place, each once."""
        return tuple(dict.fromkeys(sitting.row for sitting in self.sittings.values()))

    def return_to(self, sittings: dict[int, Assignment]) -> None:
        """Restore earlier assignments."""
        moved = [place for place, sitting in self.sittings.items() if sittings.get(place) != sitting]
        for place in moved:
            self.get_up(place)
        for place, sitting in sittings.items():
            if place not in self.sittings:
                self.sit(place, *sitting)

    def apart(self, kind: int) -> tuple[Rule, ...]:
        """Return rules that reject hosts with a place that this kind's places must be apart from."""
        return tuple(_unheld(counts) for counts in self._held[kind])

    def _touch(self, kind: int, row: int, sign: int) -> None:
        self.touched.append(row)
        for counts in self._held[kind]:
            counts[row] += sign


def _unheld(held: NDArray[np.int32]) -> Rule:
    def passes(_columns: Columns, rows: Rows) -> Mask:
        return held[rows] == 0

    return Rule(
        RelationType.APART,
        passes,
        lambda _columns, row: f"{held.item(row)} places to be apart from are here",
        local=True,
    )
