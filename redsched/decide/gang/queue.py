"""The hosts that one kind of place may use, best first, kept current while places are tried."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from redsched.decide.gang.sorted_rows import SortedRows
from redsched.decide.gang.state import GangState
from redsched.decide.pick import best_rows
from redsched.decide.profile import RequestProfile
from redsched.decide.rules import Rows, Rule
from redsched.decide.scoring import score
from redsched.decide.scoring.weigher import Score, is_absolute
from redsched.decide.work_limit import check_work
from redsched.model import Amounts, Candidate

FIRST = 8
"""The number of rows sorted at first; four times as many whenever these are used up."""

Option = tuple[int, Candidate]
"""A row, and the candidate of a place there."""


def make_queue(
    profile: RequestProfile,
    dynamic: tuple[Rule, ...],
    state: GangState,
    rows: NDArray[np.intp],
    scores: NDArray[np.float64],
) -> "Queue":
    """Make a queue of some rows, each once. `scores` is float64 of shape (size,), valid for these rows.

    `dynamic` are the rules to test each time, beyond those that depend only on the row itself.
    """
    is_own = is_absolute(profile.columns, profile.request, profile.ranking.weighing) and all(
        rule.local for rule in dynamic
    )
    queue = CachedQueue if is_own else DynamicQueue
    return queue(profile, dynamic, state, rows, scores)


class Queue(ABC):
    """Some rows of a shape, as affected by every tentative place."""

    def __init__(self, profile: RequestProfile, dynamic: tuple[Rule, ...], state: GangState) -> None:
        self._profile = profile
        self._dynamic_rules = dynamic
        self._columns = profile.columns
        self._touched = state.touched
        self._seen = 0

    @abstractmethod
    def __contains__(self, row: int) -> bool: ...

    @abstractmethod
    def score(self, row: int) -> float:
        """Return the score of a row that passed all rules when the options were last read."""

    @abstractmethod
    def _ordered(self) -> Iterable[int]:
        """Return the rows that pass all rules now, best first."""

    @abstractmethod
    def _refresh(self, rows: list[int]) -> None:
        """Update the rows on which places were assigned or unassigned."""

    def options(self) -> Iterator[Option]:
        """Yield the options of a place now, best first; after the best assignment of each row come the others."""
        others: list[Option] = []
        for row, assignments in self._rows_now():
            yield self._option(row, assignments[0])
            others += [self._option(row, way) for way in assignments[1:]]
        yield from others

    def best_options(self, most: int) -> list[Option]:
        """Return the best assignment of each of the best rows, at most `most`."""
        return [self._option(row, assignments[0]) for row, assignments in islice(self._rows_now(), most)]

    def options_on(self, row: int) -> list[Option]:
        """Return the options of a place on this row now."""
        if row not in self or not self._passes(row):
            return []
        return [self._option(row, way) for way in self._profile.pools.now(row)]

    def _passes(self, row: int) -> bool:
        """Return whether a row passes all rules now."""
        return self._profile.fitting.passes_now(row) and all(
            rule.passes(self._columns, row) for rule in self._dynamic_rules
        )

    def _rows_now(self) -> Iterator[tuple[int, list[Amounts]]]:
        self._catch_up()
        for row in self._ordered():
            check_work("trying hosts")
            assignments = self._profile.pools.now(row)
            if assignments:
                yield row, assignments

    def _catch_up(self) -> None:
        if self._seen < len(self._touched):
            rows = [row for row in dict.fromkeys(self._touched[self._seen :]) if row in self]
            self._seen = len(self._touched)
            check_work("testing the hosts that were tried")
            self._refresh(rows)

    def _option(self, row: int, amounts: Amounts) -> Option:
        return row, Candidate(self._columns.name(row), amounts)


class CachedQueue(Queue):
    """A queue for kinds whose order changes for a row only with that row itself."""

    def __init__(
        self,
        profile: RequestProfile,
        dynamic: tuple[Rule, ...],
        state: GangState,
        rows: NDArray[np.intp],
        scores: NDArray[np.float64],
    ) -> None:
        super().__init__(profile, dynamic, state)
        self._sorted = SortedRows(rows, scores, profile.columns.order)
        for rule in dynamic:
            self._close(rows[~rule.passes(self._columns, rows)])

    def __contains__(self, row: int) -> bool:
        return row in self._sorted

    def score(self, row: int) -> float:  # noqa: D102 - see Queue
        return self._sorted.score(row)

    def _ordered(self) -> Iterable[int]:
        return self._sorted

    def _refresh(self, rows: list[int]) -> None:
        if len(rows) <= FIRST:
            for row in rows:
                self._sorted.move(row, self._score(row) if self._passes(row) else None)
            return
        array = np.array(rows, np.intp)
        passing = self._profile.fitting.passing_now(array)
        for rule in self._dynamic_rules:
            passing &= rule.passes(self._columns, array)
        self._close(array[~passing])
        array = array[passing]
        for row, value in zip(array.tolist(), np.broadcast_to(self._score(array), array.shape).tolist(), strict=True):
            self._sorted.move(row, value)

    def _close(self, rows: NDArray[np.intp]) -> None:
        for row in rows.tolist():
            self._sorted.move(row, None)

    def _score(self, rows: Rows) -> Score:
        return score(self._columns, self._profile.request, self._profile.ranking.weighing, rows)


class DynamicQueue(Queue):
    """A queue for kinds with rules to test each time, or with scores relative to other rows."""

    def __init__(
        self,
        profile: RequestProfile,
        dynamic: tuple[Rule, ...],
        state: GangState,
        rows: NDArray[np.intp],
        scores: NDArray[np.float64],
    ) -> None:
        super().__init__(profile, dynamic, state)
        self._rows = rows
        self._open = np.zeros(profile.columns.size, np.bool_)
        self._open[rows] = True
        self._mine = self._open.copy()
        self._scores = scores.copy()
        self._weighs_anew = not is_absolute(profile.columns, profile.request, profile.ranking.weighing)

    def __contains__(self, row: int) -> bool:
        return bool(self._mine[row])

    def score(self, row: int) -> float:  # noqa: D102 - see Queue
        return self._scores.item(row)

    def _ordered(self) -> Iterator[int]:
        rows = self._rows_open()
        # Track rows already yielded, not a count: scores change while the caller tries later ones.
        given: set[int] = set()
        count = FIRST
        while len(given) < len(rows):
            best = best_rows(rows, self._scores, self._columns.order, count).tolist()
            yield from [row for row in best if row not in given]
            given.update(best)
            count *= 4

    def _rows_open(self) -> NDArray[np.intp]:
        rows = self._rows[self._open[self._rows]]
        for rule in self._dynamic_rules:
            check_work("testing rules between places")
            rows = rows[rule.passes(self._columns, rows)]
        if self._weighs_anew and len(rows):
            self._weigh(rows)
        return rows

    def _refresh(self, rows: list[int]) -> None:
        array = np.array(rows, np.intp)
        self._open[array] = self._profile.fitting.passing_now(array)
        array = array[self._open[array]]
        if len(array) and not self._weighs_anew:
            self._weigh(array)

    def _weigh(self, rows: NDArray[np.intp]) -> None:
        self._scores[rows] = score(self._columns, self._profile.request, self._profile.ranking.weighing, rows)
