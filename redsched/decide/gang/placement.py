"""Finding places for a whole call by successive searches, each wider than the one before.

the best rows of each kind, greedily    nearly always sufficient
all rows, greedily                      if zones, pools and the like may need more than the best rows
all rows, systematically                if greedy search fails; bounded, so that a refusal comes in time
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.filters import COUNT
from redsched.decide.gang.candidates import places_of
from redsched.decide.gang.domains import Open
from redsched.decide.gang.identical import are_identical, find_identical
from redsched.decide.gang.kinds import Kind
from redsched.decide.gang.order import counted_together, hardest_first, places_on, steps_of
from redsched.decide.gang.relations import Colocation, aparts_of, colocations_of
from redsched.decide.gang.repair import Budget
from redsched.decide.gang.rows import all_rows, domains_that_matter, first_rows, topologies
from redsched.decide.gang.search import Search
from redsched.decide.gang.state import GangState
from redsched.decide.gang.table import PickPolicy, Table
from redsched.decide.overlay import Overlay
from redsched.decide.result import Place
from redsched.model import GroupPolicy, RelationType, Request

TRIES = 400
TRIES_A_PLACE = 2


@dataclass(frozen=True, slots=True)
class Found:
    """Places in order; `numbers` has the number of each one's kind.

    If not all requested places were found, there are none. Then `failed` is the number of the first kind that lacks a
    place, `room` the number of its places that fit, and `reason` the one under which hosts that fit one are counted.
    """

    places: tuple[Place, ...]
    numbers: tuple[int, ...]
    room: int = 0
    failed: int = 0
    reason: str = COUNT


def find(columns: Columns, call: Request, kinds: Sequence[Kind], candidates: int, pick: PickPolicy) -> Found:
    """Find a host for every place of a call; for an incremental one, for as many as there is room for."""
    if are_identical(call, kinds):
        places = find_identical(kinds[0], candidates, pick)
        if len(places) < kinds[0].count and call.mode != "incremental":
            return Found((), (), len(places))
        return Found(tuple(places), (0,) * len(places))
    finder = _Finder(columns, call, kinds, candidates, pick)
    found = finder.whole()
    return finder.partial(found) if not found.places and call.mode == "incremental" else found


class _Finder:
    """The searches for one call."""

    def __init__(
        self, columns: Columns, call: Request, kinds: Sequence[Kind], candidates: int, pick: PickPolicy
    ) -> None:
        self._columns = columns
        self._kinds = kinds
        self._pick = pick
        self._candidates = candidates
        self._colocations = colocations_of(call, kinds, columns)
        self._aparts = aparts_of(call, kinds)
        self._places = sum(kind.count for kind in kinds)
        self._most = self._places + max(candidates, pick.pick_from)
        self._fixed_kinds = frozenset[int]().union(*counted_together(kinds))

    def whole(self) -> Found:
        """Find all places, or return none and why."""
        first: Found | None = None
        for wide, run in self._searches():
            found = self._search(self._opens(wide), run)
            if found.places:
                return found
            first = first or found
        assert first is not None
        return first

    def partial(self, refused: Found) -> Found:
        """Find as many places as there is room for, in the order of the call. If there are none, return `refused`."""
        opens = self._opens(wide=True)
        with Overlay(self._columns) as overlay:
            table = self._table(opens, overlay)
            self._searching(table, range(len(self._kinds))).partial()
            return self._found(table) if table.state.assignments else refused

    def _searches(self) -> Iterator[tuple[bool, Callable[[Search], bool]]]:
        yield False, Search.greedy
        if any(self._is_hidden(kind) and kind.profile.fitting.passing > self._most for kind in self._kinds):
            yield True, Search.greedy
        if not self._is_simple():
            yield True, Search.systematic

    def _is_simple(self) -> bool:
        """Return whether greedy search is complete: identical places, counted by at most one topology.

        In that case, a host that is open to one place is open to every other place as well.
        """
        kind = self._kinds[0]
        return len(self._kinds) == 1 and kind.profile.pools.is_plain and len(topologies(self._columns, kind)) <= 1

    def _is_hidden(self, kind: Kind) -> bool:
        """Return whether there may be room beyond the first rows (as many as there are places) if these have none."""
        return not (kind.profile.ranking.is_cached and kind.profile.pools.is_plain)

    def _search(self, opens: Sequence[Open], run: Callable[[Search], bool]) -> Found:
        # A single kind needs no comparison by difficulty, and the search itself finds how much room it has.
        rooms = [_room(one) for one in opens] if len(opens) > 1 else [opens[0].kind.count]
        short = self._short(opens, rooms)
        if short is not None:
            return short
        with Overlay(self._columns) as overlay:
            table = self._table(opens, overlay)
            search = self._searching(table, hardest_first(self._kinds, self._colocations, self._scaled(opens, rooms)))
            return self._found(table) if run(search) else self._refused(table, search)

    def _short(self, opens: Sequence[Open], rooms: Sequence[int]) -> Found | None:
        """Return a refusal that needs no search: too little room for one kind, or too few hosts for places apart."""
        for number, kind in enumerate(self._kinds):
            if rooms[number] < kind.count:
                return Found((), (), rooms[number], number)
            if self._is_alone(kind) and (hosts := _hosts(opens[number])) < kind.count:
                return Found((), (), hosts, number)
        for related in self._aparts:
            hosts = len(frozenset[int]().union(*(opens[number].rows.tolist() for number in related)))
            if hosts < sum(self._kinds[number].count for number in related):
                return Found((), (), hosts if len(self._kinds) == 1 else 0, max(related), RelationType.APART)
        return None

    def _is_alone(self, kind: Kind) -> bool:
        """Return whether its server group allows one place per host."""
        state = self._columns.declared.groups.get(kind.request.server_group) if kind.request.server_group else None
        if state is None or state.group.policy is not GroupPolicy.ANTI_AFFINITY:
            return False
        return state.group.by == "host" and state.group.max_per_host == 1

    def _opens(self, wide: bool) -> list[Open]:
        """Return the rows of each kind. Call it before any tentative placement: shapes must cache the real state."""
        return [self._open(number, kind, wide) for number, kind in enumerate(self._kinds)]

    def _open(self, number: int, kind: Kind, wide: bool) -> Open:
        if wide and self._is_hidden(kind):
            return all_rows(self._columns, kind, None)
        is_bound = any(number in colocation.kinds for colocation in self._colocations)
        if is_bound or domains_that_matter(self._columns, kind):
            return all_rows(self._columns, kind, self._most)
        return first_rows(self._columns, kind, self._most)

    def _scaled(self, opens: Sequence[Open], rooms: Sequence[int]) -> list[float]:
        """Return the rooms as if each kind had the same small number of rows, to make them comparable."""
        return [room * min(1.0, self._most / max(1, len(one.rows))) for one, room in zip(opens, rooms, strict=True)]

    def _table(self, opens: Sequence[Open], overlay: Overlay) -> Table:
        state = GangState(self._columns, self._kinds, self._aparts, overlay)
        return Table(self._columns, self._kinds, opens, state)

    def _searching(self, table: Table, order: Sequence[int]) -> Search:
        steps = steps_of(self._kinds, self._colocations, order)
        budget = Budget(len(steps) + TRIES + TRIES_A_PLACE * self._places)
        return Search(table, steps, self._pick, budget, self._fixed_kinds)

    def _found(self, table: Table) -> Found:
        numbers = tuple(table.kind_of[place] for place in sorted(table.state.assignments))
        return Found(places_of(table, self._candidates), numbers)

    def _refused(self, table: Table, search: Search) -> Found:
        if isinstance(search.failed, Colocation):
            return Found((), (), 0, min(search.failed.kinds), search.failed.reason)
        number = table.kind_of[search.failed or 0]
        room = sum(table.kind_of[place] == number for place in table.state.assignments)
        return Found((), (), min(room, self._kinds[number].count - 1), number)


def _room(found: Open) -> int:
    """Return how many of a kind's places its rows have room for; a row counts for at most the kind's count."""
    return int(np.minimum(places_on(found.kind.profile, found.rows), found.kind.count).sum())


def _hosts(found: Open) -> int:
    """Return the number of hosts with room for a place of a kind; exact only if below the kind's count."""
    if len(found.rows) >= found.kind.count:
        return len(found.rows)
    return sum(1 for row in found.rows.tolist() if found.kind.profile.pools.of(row))
