"""Making room: a place that finds no host sits down where others can go elsewhere, and these do the same in turn.

Where each host takes one place this is the search for an augmenting path (Kuhn's algorithm for matchings), cut off at a
depth; with amounts it is that search's idea, for as many others as it takes to make the room.
"""

from redsched.decide.gang.table import Table

DEPTH = 3
"""How many times those who have to go elsewhere may have others go."""


class Tries:
    """How much may still be tried."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        """Use one up; False where none was left."""
        had = self.left > 0
        self.left -= had
        return had


class Repair:
    """Moves places of a table. `still` are the kinds whose places stay where they are."""

    def __init__(self, table: Table, tries: Tries, still: frozenset[int]) -> None:
        self._table = table
        self._board = table.board
        self._tries = tries
        self._still = still

    def make_room(self, place: int) -> bool:
        """Whether a place that had no host has one now, and everyone else still has."""
        return self._displace(place, set(), DEPTH)

    def _displace(self, place: int, visited: set[int], depth: int) -> bool:
        queue = self._table.queue(place)
        for row in [row for row in self._board.rows() if row in queue and row not in visited]:
            others = self._movable(place, row)
            if not others:
                continue
            visited.add(row)
            if not self._tries.spend():
                return False
            before = dict(self._board.sittings)
            if self._onto(place, row, others) and all(self._resettle(other, visited, depth) for other in others):
                return True
            self._board.return_to(before)
        return False

    def _movable(self, place: int, row: int) -> list[int]:
        """Who may leave a row for a place, the latest first. Not its like: that would gain nothing."""
        kind_of = self._table.kind_of
        unmoved = self._still | {kind_of[place]}
        return [other for other in reversed(self._board.on(row)) if kind_of[other] not in unmoved]

    def _onto(self, place: int, row: int, others: list[int]) -> bool:
        """Have others get up, one after the other, until the place can sit down on the row."""
        for other in others:
            self._board.get_up(other)
            for option in self._table.queue(place).options_on(row)[:1]:
                self._board.sit(place, *option)
                return True
        return False

    def _resettle(self, place: int, visited: set[int], depth: int) -> bool:
        if place in self._board.sittings:
            return True
        for option in self._table.queue(place).options():
            self._board.sit(place, *option)
            return True
        return depth > 0 and self._displace(place, visited, depth - 1)
