"""Repair: a place without a host displaces others that can go elsewhere, recursively.

If each host takes one place, this is the search for an augmenting path (Kuhn's algorithm for matchings), limited in
depth. With amounts it is more general: it displaces as many other places as needed to make room.
"""

from redsched.decide.gang.table import Table
from redsched.decide.work_limit import check_work

DEPTH = 3
"""How deep displaced places may displace others in turn."""


class Budget:
    """The remaining budget of tries."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        """Use one try; return False if none was left."""
        had = self.left > 0
        self.left -= had
        return had


class Repair:
    """Moves places of a table. Places of the kinds in `still` are not moved."""

    def __init__(self, table: Table, budget: Budget, fixed_kinds: frozenset[int]) -> None:
        self._table = table
        self._state = table.state
        self._budget = budget
        self._fixed_kinds = fixed_kinds

    def make_room(self, place: int) -> bool:
        """Try to find a host for a place without losing any other's, and return whether that succeeded."""
        return self._displace(place, set(), DEPTH)

    def _displace(self, place: int, visited: set[int], depth: int) -> bool:
        queue = self._table.queue(place)
        for row in [row for row in self._state.rows() if row in queue and row not in visited]:
            check_work("moving other places aside")
            others = self._movable(place, row)
            if not others:
                continue
            visited.add(row)
            if not self._budget.spend():
                return False
            before = dict(self._state.assignments)
            if self._move_onto(place, row, others) and all(self._relocate(other, visited, depth) for other in others):
                return True
            self._state.return_to(before)
        return False

    def _movable(self, place: int, row: int) -> list[int]:
        """Return the places that may leave a row for this one, latest first. Those of its own kind would not help."""
        kind_of = self._table.kind_of
        unmoved = self._fixed_kinds | {kind_of[place]}
        return [other for other in reversed(self._state.on(row)) if kind_of[other] not in unmoved]

    def _move_onto(self, place: int, row: int, others: list[int]) -> bool:
        """Unassign others one by one until the place fits on the row, and assign it there. Returns whether it fits."""
        for other in others:
            self._state.unassign(other)
            for option in self._table.queue(place).options_on(row)[:1]:
                self._state.assign(place, *option)
                return True
        return False

    def _relocate(self, place: int, visited: set[int], depth: int) -> bool:
        if place in self._state.assignments:
            return True
        for option in self._table.queue(place).options():
            self._state.assign(place, *option)
            return True
        return depth > 0 and self._displace(place, visited, depth - 1)
