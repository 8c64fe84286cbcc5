"""Which candidates a place is given: the one it was found, and others for when that one is lost in a race."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redsched.decide.gang.queue import Option
from redsched.decide.gang.state import Assignment
from redsched.decide.gang.table import Table
from redsched.decide.result import Place
from redsched.model import Candidate


def listed(options: Sequence[Sequence[Candidate]], most: int) -> tuple[Candidate, ...]:
    """Candidates in the order in which they are to be tried.

    All ways of the first host, then the best way of each other one: whoever lost a race for a host's devices can mostly
    have others of the same host.
    """
    first = list(options[0])
    return tuple((first + [ways[0] for ways in options[1:]])[: most + len(first) - 1])


def places_of(table: Table, most: int) -> tuple[Place, ...]:
    """The places that sit at a table, in their order, each with up to `most` hosts.

    Every candidate fits beside the first candidates of all other places.
    """
    lists = _Lists(table, most)
    return tuple(lists.place(number, sitting) for number, sitting in sorted(table.board.sittings.items()))


class _Lists:
    """Candidates for places: one list for all places of a kind of which it does not matter who asks."""

    def __init__(self, table: Table, most: int) -> None:
        self._table = table
        self._most = most
        self._known: dict[tuple[int, tuple[str, ...]], list[Option]] = {}

    def place(self, number: int, sitting: Assignment) -> Place:
        kind = self._table.kinds[self._table.kind_of[number]]
        further = [[candidate] for row, candidate in self._others(number, sitting) if row != sitting.row]
        options = [self._ways(number, sitting), *further]
        return Place(listed(options, self._most), kind.member, kind.request.server_group)

    def _others(self, place: int, sitting: Assignment) -> list[Option]:
        """Other rows for a place. Who is counted with others asks as if it did not sit: alike for all in a domain."""
        number = self._table.kind_of[place]
        key = number, self._table.domains_of(number, sitting.row)
        if key not in self._known and self._table.is_late(number):
            with self._up(place, sitting):
                found = self._table.queue(place).firsts(self._most + 1)
            self._known[key] = [option for option in found if option[0] != sitting.row]
        elif key not in self._known:
            self._known[key] = self._table.queue(place).firsts(self._most)
        return self._known[key]

    def _ways(self, place: int, sitting: Assignment) -> list[Candidate]:
        """The ways to take the place from its own host, the chosen one first."""
        if self._table.kinds[self._table.kind_of[place]].shape.is_plain:
            return [sitting.candidate]
        with self._up(place, sitting):
            ways = [way for _, way in self._table.queue(place).options_on(sitting.row)]
        return [sitting.candidate, *(way for way in ways if way != sitting.candidate)]

    @contextmanager
    def _up(self, place: int, sitting: Assignment) -> Iterator[None]:
        """As if a place did not sit."""
        self._table.board.get_up(place)
        yield
        self._table.board.sit(place, *sitting)
