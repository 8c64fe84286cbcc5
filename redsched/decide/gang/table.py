"""All data of a search: the kinds, the state, the domains fixed so far, and a queue for each kind."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.gang.domains import Open, ranked
from redsched.decide.gang.kinds import Kind, kind_numbers
from redsched.decide.gang.queue import Queue, make_queue
from redsched.decide.gang.relations import Colocation
from redsched.decide.gang.rows import best_of_each, domains_that_matter
from redsched.decide.gang.rules import eligible_of
from redsched.decide.gang.state import GangState
from redsched.decide.pick import pick
from redsched.decide.rules import Rule

Hosts = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PickPolicy:
    """How to choose among several: a random one of the best `pick_from`."""

    pick_from: int
    rng: Random

    def of(self, options: Iterator[T], peers: Callable[[list[T]], int]) -> Iterator[T]:
        """Yield all options, first a random one of the best few. `peers` tells how many are as good as the first."""
        best = list(islice(options, self.pick_from))
        yield from pick(best, peers(best) if best else 0, self.rng)
        yield from options


class Table:
    """The assignments of a search, with the rows that each kind may use."""

    def __init__(self, columns: Columns, kinds: Sequence[Kind], opens: Sequence[Open], state: GangState) -> None:
        self.state = state
        self.kinds = kinds
        self.kind_of = kind_numbers(kinds)
        self._places: list[list[int]] = [[] for _ in kinds]
        for place, number in enumerate(self.kind_of):
            self._places[number].append(place)
        self._columns = columns
        self._opens = opens
        self._dynamic_rules = [
            (*_dynamic_rules(kinds, kind), *state.apart(number)) for number, kind in enumerate(kinds)
        ]
        self._fixed: dict[Colocation, Hosts] = {}
        self._queues: dict[int, Queue] = {}

    def queue(self, place: int) -> Queue:
        """Return the queue of a place's kind."""
        return self.queue_of(self.kind_of[place])

    def queue_of(self, number: int) -> Queue:
        """Return the queue of a kind, within the domains that are fixed."""
        queue = self._queues.get(number)
        if queue is None:
            found = self._within(number)
            rows = best_of_each(self._columns, found)
            profile = found.kind.profile
            queue = self._queues[number] = make_queue(
                profile, self._dynamic_rules[number], self.state, rows, found.scores
            )
        return queue

    def scores(self, number: int, rows: Sequence[int]) -> list[float]:
        """Return the scores of some rows for a kind, as they were before the search."""
        return [self._opens[number].scores.item(row) for row in rows]

    def is_dynamic(self, number: int) -> bool:
        """Return whether a kind has rules that depend on more than the row itself."""
        return bool(self._dynamic_rules[number])

    def domains_of(self, number: int, row: int) -> tuple[str, ...]:
        """Return a row's domains, other than hosts, by which places of a kind are counted."""
        columns = self._columns
        return tuple(columns.domain(by, row) for by in domains_that_matter(columns, self.kinds[number]))

    def waits(self, number: int) -> bool:
        """Return whether a kind has an unassigned place."""
        return any(place not in self.state.assignments for place in self._places[number])

    def scarce(self, few: int) -> list[int]:
        """Return the kinds that have at most `few` rows."""
        return [number for number, found in enumerate(self._opens) if len(found.rows) <= few]

    def fix(self, colocation: Colocation, hosts: Hosts) -> None:
        """Restrict a colocation's places to these hosts."""
        self._fixed[colocation] = hosts
        self._forget(colocation)

    def loosen(self, colocation: Colocation) -> None:
        """Undo `fix`; do nothing if it was not called."""
        if self._fixed.pop(colocation, None) is not None:
            self._forget(colocation)

    def shut(self, colocation: Colocation) -> None:
        """Allow no host to a colocation's places."""
        self.fix(colocation, np.zeros(self._columns.size, np.bool_))

    def domains(self, colocation: Colocation, whole: bool) -> Iterator[Hosts]:
        """Yield the hosts of each domain that could take all of a colocation's places, the most promising first."""
        return ranked(self._columns, colocation, [self._within(number) for number in sorted(colocation.kinds)], whole)

    def _forget(self, colocation: Colocation) -> None:
        for number in colocation.kinds:
            self._queues.pop(number, None)

    def _within(self, number: int) -> Open:
        found = self._opens[number]
        rows = found.rows
        for colocation, hosts in self._fixed.items():
            if number in colocation.kinds:
                rows = rows[hosts[rows]]
        return replace(found, rows=rows)


def _dynamic_rules(kinds: Sequence[Kind], kind: Kind) -> tuple[Rule, ...]:
    return kind.profile.fitting.dynamic_rules(eligible_of(kinds, kind))
