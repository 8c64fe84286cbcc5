"""The candidates of each place: the one that was found, and others in case another claim takes that one first."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redsched.decide.gang.queue import Option
from redsched.decide.gang.state import Assignment
from redsched.decide.gang.table import Table
from redsched.decide.result import Place
from redsched.decide.work_limit import check_work, work_at_place
from redsched.model import Candidate


def listed(options: Sequence[Sequence[Candidate]], most: int) -> tuple[Candidate, ...]:
    """Return the candidates in the order in which to try them, at most `most` hosts.

    All assignments of the first host come first, then the best one of each other host: if another claim has taken a
    host's devices, the place can usually get others of the same host.
    """
    first = list(options[0])
    return tuple((first + [assignments[0] for assignments in options[1:]])[: most + len(first) - 1])


def places_of(table: Table, most: int) -> tuple[Place, ...]:
    """Return the assigned places of a table in order, each with up to `most` hosts.

    Every candidate fits beside the first candidates of all other places.
    """
    lists = _Lists(table, most)
    return tuple(lists.place(number, assignment) for number, assignment in sorted(table.state.assignments.items()))


class _Lists:
    """Candidate lists of places, shared by all places of a kind whose candidates cannot differ."""

    def __init__(self, table: Table, most: int) -> None:
        self._table = table
        self._most = most
        self._known: dict[tuple[int, tuple[str, ...]], list[Option]] = {}

    def place(self, number: int, assignment: Assignment) -> Place:
        work_at_place(number + 1, len(self._table.kind_of))
        check_work("listing further hosts")
        kind = self._table.kinds[self._table.kind_of[number]]
        further = [[candidate] for row, candidate in self._others(number, assignment) if row != assignment.row]
        options = [self._own_assignments(number, assignment), *further]
        return Place(listed(options, self._most), kind.member, kind.request.server_group)

    def _others(self, place: int, assignment: Assignment) -> list[Option]:
        """Return other rows for a place; the same list serves all places of its kind in the domain.

        A place whose kind has dynamic rules is unassigned for this, so that it does not count against itself.
        """
        number = self._table.kind_of[place]
        key = number, self._table.domains_of(number, assignment.row)
        if key not in self._known and self._table.is_dynamic(number):
            with self._up(place, assignment):
                found = self._table.queue(place).best_options(self._most + 1)
            self._known[key] = [option for option in found if option[0] != assignment.row]
        elif key not in self._known:
            self._known[key] = self._table.queue(place).best_options(self._most)
        return self._known[key]

    def _own_assignments(self, place: int, assignment: Assignment) -> list[Candidate]:
        """Return the assignments of the place on its own host, the chosen one first."""
        if self._table.kinds[self._table.kind_of[place]].profile.pools.is_plain:
            return [assignment.candidate]
        with self._up(place, assignment):
            assignments = [way for _, way in self._table.queue(place).options_on(assignment.row)]
        return [assignment.candidate, *(way for way in assignments if way != assignment.candidate)]

    @contextmanager
    def _up(self, place: int, assignment: Assignment) -> Iterator[None]:
        """Unassign a place while the context is active."""
        self._table.state.unassign(place)
        yield
        self._table.state.assign(place, *assignment)
