"""Tentative assignments of places to rows, and the record of changed rows. Makes no choices."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.affinity import counted_in
from redsched.decide.gang.kinds import Kind, kind_numbers
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
        self, columns: Columns, kinds: Sequence[Kind], aparts: Sequence[frozenset[int]], overlay: Overlay
    ) -> None:
        self.touched: list[int] = []
        self.assignments: dict[int, Assignment] = {}
        self._kind_of = kind_numbers(kinds)
        self._counted = [counted_in(kind.request, columns) for kind in kinds]
        self._overlay = overlay
        self._numbers: dict[int, int] = {}
        self._on: defaultdict[int, list[int]] = defaultdict(list)
        held = [(related, np.zeros(columns.size, np.int32)) for related in aparts]
        self._held = [[counts for related, counts in held if number in related] for number in range(len(kinds))]

    def assign(self, place: int, row: int, candidate: Candidate) -> None:
        """Assign a place to a row."""
        kind = self._kind_of[place]
        self._numbers[place] = self._overlay.take(row, candidate, self._counted[kind])
        self.assignments[place] = Assignment(row, candidate)
        self._on[row].append(place)
        self._touch(kind, row, 1)

    def unassign(self, place: int) -> None:
        """Unassign a place; do nothing if it has no row."""
        assignment = self.assignments.pop(place, None)
        if assignment is None:
            return
        self._overlay.give_back(self._numbers.pop(place))
        self._on[assignment.row].remove(place)
        self._touch(self._kind_of[place], assignment.row, -1)

    def on(self, row: int) -> tuple[int, ...]:
        """Return the places on a row, in the order of their assignment."""
        return tuple(self._on.get(row, ()))

    def rows(self) -> tuple[int, ...]:
        """Return the rows with a place, each once."""
        return tuple(dict.fromkeys(assignment.row for assignment in self.assignments.values()))

    def return_to(self, assignments: dict[int, Assignment]) -> None:
        """Restore earlier assignments."""
        moved = [place for place, assignment in self.assignments.items() if assignments.get(place) != assignment]
        for place in moved:
            self.unassign(place)
        for place, assignment in assignments.items():
            if place not in self.assignments:
                self.assign(place, *assignment)

    def apart(self, kind: int) -> tuple[Rule, ...]:
        """Return rules that reject hosts with a place that this kind's places must be apart from."""
        return tuple(_apart_rule(counts) for counts in self._held[kind])

    def _touch(self, kind: int, row: int, sign: int) -> None:
        self.touched.append(row)
        for counts in self._held[kind]:
            counts[row] += sign


def _apart_rule(held: NDArray[np.int32]) -> Rule:
    def passes(_columns: Columns, rows: Rows) -> Mask:
        return held[rows] == 0

    return Rule(
        RelationType.APART,
        passes,
        lambda _columns, row: f"{held.item(row)} places to be apart from are here",
        local=True,
    )
