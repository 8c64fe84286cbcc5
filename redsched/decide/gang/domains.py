"""The domains in which all places of a colocation could lie, the most promising first, and their hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import NO_TEXT
from redsched.cache.columns import Columns
from redsched.decide.fit import free_on
from redsched.decide.gang.kinds import Kind
from redsched.decide.gang.order import places_on
from redsched.decide.gang.relations import AGGREGATE, Colocation
from redsched.decide.rules import ALL_ROWS
from redsched.decide.work_limit import check_work

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Open:
    """Rows that places of a kind may use, with their scores (float64 of shape (size,), valid for these rows).

    Only the `most` best rows of each domain that matters to the kind are used; None means all rows.
    """

    kind: Kind
    rows: Rows
    scores: NDArray[np.float64]
    most: int | None


def ranked(columns: Columns, colocation: Colocation, opens: Sequence[Open], whole: bool) -> Iterator[NDArray[np.bool_]]:
    """Yield the hosts (bool of shape (size,)) of one domain after the other, those with room for the most places first.

    Ties are resolved by the scores of the best hosts. `whole` yields only domains that may have room for all places.
    The test is necessary, not sufficient: a domain that it rejects is too small, and one that it accepts may be, too.
    """
    domains = _Domains(columns, colocation.by)
    room, quality = np.zeros(len(domains)), np.zeros(len(domains))
    possible = np.ones(len(domains), np.bool_)
    for one in opens:
        check_work(f"comparing every {colocation.by}")
        places, best = _room_and_best(domains, one)
        possible &= places == one.kind.count if whole else possible
        room += places
        quality += one.kind.count * best
    if whole and colocation.by == "host":
        possible &= _have_room_for_all(columns, opens)
    numbers = np.flatnonzero(possible & (room > 0))
    for number in numbers[np.lexsort((domains.order[numbers], -quality[numbers], -room[numbers]))].tolist():
        yield domains.hosts(number)


class _Domains:
    """All domains of one topology, by number."""

    def __init__(self, columns: Columns, by: str) -> None:
        self._columns = columns
        self._names: list[str] = []
        self._codes = np.full(columns.size, NO_TEXT)
        if by == AGGREGATE:
            self._names = sorted(columns.aggregates)
            self.order = np.arange(len(self._names))
        elif by == "host":
            self._codes = np.arange(columns.size)
            self.order = columns.order
        else:
            self._take_texts(by)
        self._by = by

    def _take_texts(self, by: str) -> None:
        texts = self._columns.texts(by)
        self.order = np.zeros(0, np.int64)
        if texts is not None:
            self._codes = texts.codes
            self.order = np.argsort(np.argsort(np.array(texts.by_code, np.str_)))

    def __len__(self) -> int:
        return len(self.order)

    def pairs(self, rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
        """Return rows and domain numbers, of equal length: each of these rows with each of its domains."""
        if self._by == AGGREGATE:
            members = [rows[self._columns.aggregates[name][rows]] for name in self._names]
            numbers = np.repeat(np.arange(len(members)), [len(one) for one in members])
            return np.concatenate([np.zeros(0, np.intp), *members]), numbers
        held = rows[self._codes[rows] != NO_TEXT]
        return held, self._codes[held]

    def hosts(self, number: int) -> NDArray[np.bool_]:
        """Return the hosts of a domain: bool of shape (size,)."""
        if self._by == AGGREGATE:
            return self._columns.aggregates[self._names[number]]
        found: NDArray[np.bool_] = self._codes == number
        return found


def _room_and_best(domains: _Domains, one: Open) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, by domain, for how many of a kind's places it has room (at most all), and its best host's score."""
    rows, numbers = domains.pairs(one.rows)
    places = np.minimum(places_on(one.kind.profile, rows), one.kind.count)
    room = np.bincount(numbers, weights=places, minlength=len(domains))
    best = np.full(len(domains), -np.inf)
    np.maximum.at(best, numbers, one.scores[rows])
    return np.minimum(room, one.kind.count), np.where(np.isfinite(best), best, 0.0)


def _have_room_for_all(columns: Columns, opens: Sequence[Open]) -> NDArray[np.bool_]:
    """Return whether each host has the amounts of all places together: bool of shape (size,)."""
    total: dict[str, int] = {}
    for one in opens:
        if one.kind.profile.pools.is_plain:
            for slot, amount in one.kind.request.resources.items():
                total[slot] = total.get(slot, 0) + one.kind.count * amount
    enough = np.ones(columns.size, np.bool_)
    for slot, amount in total.items():
        enough &= free_on(columns, slot, ALL_ROWS) >= amount
    return enough
