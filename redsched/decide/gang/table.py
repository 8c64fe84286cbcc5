"""Everything a search works on: the kinds, the board, the domains fixed so far, and a queue for each kind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.gang.domains import Open, ranked
from redsched.decide.gang.kinds import Kind, seats_of
from redsched.decide.gang.queue import Queue, make_queue
from redsched.decide.gang.relations import Colocation
from redsched.decide.gang.rows import best_of_each, domains_that_matter
from redsched.decide.gang.rules import eligible_of
from redsched.decide.gang.state import GangState
from redsched.decide.pick import pick
from redsched.decide.rules import Rule

Hosts = NDArray[np.bool_]
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class PickPolicy:
    """How one is picked from several: a random one of the best `pick_from`."""

    pick_from: int
    rng: Random

    def of(self, options: Iterator[Thing]) -> Iterator[Thing]:
        """All options, one of the best few first."""
        yield from pick(list(islice(options, self.pick_from)), self.pick_from, self.rng)
        yield from options


class Table:
    """A board with the rows that each kind may be put on."""

    def __init__(self, columns: Columns, kinds: Sequence[Kind], opens: Sequence[Open], board: GangState) -> None:
        self.board = board
        self.kinds = kinds
        self.kind_of = seats_of(kinds)
        self._places: list[list[int]] = [[] for _ in kinds]
        for place, number in enumerate(self.kind_of):
            self._places[number].append(place)
        self._columns = columns
        self._opens = opens
        self._late = [(*_late(kinds, kind), *board.apart(number)) for number, kind in enumerate(kinds)]
        self._fixed: dict[Colocation, Hosts] = {}
        self._queues: dict[int, Queue] = {}

    def queue(self, place: int) -> Queue:
        """The queue of a place's kind."""
        return self.queue_of(self.kind_of[place])

    def queue_of(self, number: int) -> Queue:
        """The queue of a kind, within the domains that are fixed."""
        queue = self._queues.get(number)
        if queue is None:
            found = self._within(number)
            rows = best_of_each(self._columns, found)
            shape = found.kind.shape
            queue = self._queues[number] = make_queue(shape, self._late[number], self.board, rows, found.scores)
        return queue

    def is_late(self, number: int) -> bool:
        """Whether rules are asked of a kind's rows that more than the row itself changes."""
        return bool(self._late[number])

    def domains_of(self, number: int, row: int) -> tuple[str, ...]:
        """Where a row lies in the domains, other than hosts, by which places of a kind are counted."""
        columns = self._columns
        return tuple(columns.domain(by, row) for by in domains_that_matter(columns, self.kinds[number]))

    def waits(self, number: int) -> bool:
        """Whether some place of a kind does not sit yet."""
        return any(place not in self.board.sittings for place in self._places[number])

    def scarce(self, few: int) -> list[int]:
        """The kinds that have `few` rows at most."""
        return [number for number, found in enumerate(self._opens) if len(found.rows) <= few]

    def fix(self, bond: Colocation, hosts: Hosts) -> None:
        """Keep a bond's places within these hosts."""
        self._fixed[bond] = hosts
        self._forget(bond)

    def loosen(self, bond: Colocation) -> None:
        """Undo that; nothing happens where it was not done."""
        if self._fixed.pop(bond, None) is not None:
            self._forget(bond)

    def shut(self, bond: Colocation) -> None:
        """Leave a bond's places no host at all."""
        self.fix(bond, np.zeros(self._columns.size, np.bool_))

    def domains(self, bond: Colocation, whole: bool) -> Iterator[Hosts]:
        """The hosts of one domain after the other that a bond's places could all lie in, the promising ones first."""
        return ranked(self._columns, bond, [self._within(number) for number in sorted(bond.kinds)], whole)

    def _forget(self, bond: Colocation) -> None:
        for number in bond.kinds:
            self._queues.pop(number, None)

    def _within(self, number: int) -> Open:
        found = self._opens[number]
        rows = found.rows
        for bond, hosts in self._fixed.items():
            if number in bond.kinds:
                rows = rows[hosts[rows]]
        return replace(found, rows=rows)


def _late(kinds: Sequence[Kind], kind: Kind) -> tuple[Rule, ...]:
    return kind.shape.late_rules(eligible_of(kinds, kind))
