"""The order of the rows that fit one request, by their scores, and what each weigher adds to a score.

If each row has a score of its own, which only a change of that row changes, scores are cached (`CachedRanking`), and
the best rows are kept sorted. If some rule or weigher is dynamic or relative to other hosts, all rows that fit are
scored at each decision (`OpenRanking`), in a few passes over arrays of the fleet's size.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.cache.derived import MANY
from redsched.decide.fitting_rows import FittingRows
from redsched.decide.pick import best_of_all
from redsched.decide.pool_assignments import PoolAssignments
from redsched.decide.scoring import score, scores
from redsched.decide.scoring.weigher import Peers, Score, Weighing
from redsched.decide.top_hosts import Entry, TopHosts
from redsched.model import Request

FIRST_TOP_HOSTS, FRONT = 16, 128
"""The fewest hosts kept sorted per profile, if that many fit: at first, as many shapes are used once, and later."""


class Ranking(ABC):
    """The order of the rows that pass every rule, but for those whose pools are known to fail.

    `scores`, float64 of shape (size,), are cached ones: valid where a row fits, -inf where its pools fail.
    """

    is_cached: bool
    scores: NDArray[np.float64]

    def __init__(
        self, columns: Columns, request: Request, weighing: Weighing, fitting: FittingRows, pools: PoolAssignments
    ) -> None:
        self.weighing = weighing
        self._columns, self._request, self._fitting, self._pools = columns, request, fitting, pools
        self._peers = Peers(weighing)
        self._parts: dict[int, Sequence[float]] = {}
        """What each weigher adds to the score of a row, as far as it was needed."""
        self._needs_parts = False

    @abstractmethod
    def evaluate_all(self) -> None:
        """Score all rows, after they were tested."""

    @abstractmethod
    def evaluate(self, row: int, fits: bool) -> None:
        """Score a row again, which may no longer fit."""

    @abstractmethod
    def evaluate_many(self, rows: NDArray[np.intp], fitting: NDArray[np.bool_]) -> None:
        """Do what `evaluate` does, for many rows at once."""

    @abstractmethod
    def begin(self) -> None:
        """Forget what holds for one decision only."""

    @abstractmethod
    def best(self, count: int) -> list[Entry]:
        """Return the `count` best rows that pass every rule, best first; fewer only if no more pass."""

    @abstractmethod
    def drop(self, row: int) -> None:
        """Leave a row out of the order until it changes, because its pools fail."""

    @abstractmethod
    def score_of(self, row: int) -> float | None:
        """Return the score of a row; None if it does not pass every rule, or if its pools are known to fail."""

    def peers(self, rows: Sequence[int], scores: Sequence[float]) -> int:
        """Return how many of the first of these rows are as good as the first one: see `Peers`."""
        return self._peers.count(self._columns, self._request, rows, scores)

    def parts_of(self, rows: Sequence[int]) -> list[Sequence[float]]:
        """Return what each weigher adds to the score of each row; nothing for a row that does not fit.

        It is the same object until the score may have changed.
        """
        self._needs_parts = True
        known = self._parts
        missing = [row for row in rows if row not in known]
        if missing:
            fitting = [row for row in missing if self.score_of(row) is not None]
            found = dict(zip(fitting, self._parts_now(fitting), strict=True))
            known.update((row, found.get(row, ())) for row in missing)
        return [known[row] for row in rows]

    @abstractmethod
    def _parts_now(self, rows: Sequence[int]) -> Sequence[Sequence[float]]:
        """Return the parts of rows that fit, as they are now."""


class OpenRanking(Ranking):
    """The order if scores hold for one decision only: see above."""

    is_cached = False

    def __init__(
        self, columns: Columns, request: Request, weighing: Weighing, fitting: FittingRows, pools: PoolAssignments
    ) -> None:
        super().__init__(columns, request, weighing, fitting, pools)
        self._scored: NDArray[np.float64] | None = None
        self._parts_of_open: list[Score] = []
        """The parts of the scores of all open rows."""

    def evaluate_all(self) -> None:
        """Score nothing: decisions do."""

    def evaluate(self, row: int, fits: bool) -> None:
        """Score nothing: decisions do."""

    def evaluate_many(self, rows: NDArray[np.intp], fitting: NDArray[np.bool_]) -> None:
        """Score nothing: decisions do."""

    def begin(self) -> None:
        """Forget all scores."""
        self._scored = None
        self._parts.clear()

    def best(self, count: int) -> list[Entry]:
        """Return the `count` best rows that pass every rule, best first; fewer only if no more pass."""
        scored = self._scores_now()
        best = best_of_all(scored, self._columns.order, count).tolist()
        return [(-scored.item(row), self._columns.name(row), row) for row in best]

    def drop(self, row: int) -> None:
        """Leave a row out of the order until it changes, because its pools fail."""
        if self._scored is not None:
            self._scored[row] = -np.inf

    def score_of(self, row: int) -> float | None:
        """Return the score of a row; None if it does not pass every rule, or if its pools are known to fail."""
        value = self._scores_now().item(row)
        return None if value == -np.inf else value

    def _scores_now(self) -> NDArray[np.float64]:
        if self._scored is None:
            rows = self._fitting.open_rows()
            scored, parts = np.full(self._columns.size, -np.inf), list[Score]()
            scored[rows] = score(self._columns, self._request, self.weighing, rows, parts)
            self._parts_of_open = parts
            if failed := self._pools.failed():
                scored[failed] = -np.inf
            self._scored = scored
        return self._scored

    def _parts_now(self, rows: Sequence[int]) -> Sequence[Sequence[float]]:
        at = np.searchsorted(self._fitting.open_rows(), rows)
        return _by_row([one[at] if np.ndim(one) else one for one in self._parts_of_open], len(at))


class CachedRanking(Ranking):
    """The order if each row has a score of its own: see above."""

    is_cached = True

    def __init__(
        self, columns: Columns, request: Request, weighing: Weighing, fitting: FittingRows, pools: PoolAssignments
    ) -> None:
        super().__init__(columns, request, weighing, fitting, pools)
        self._top_hosts = TopHosts()
        self._parts_of_all: list[Score] = []
        """The parts of all scores, from their evaluation until the best rows are known."""

    def evaluate_all(self) -> None:
        """Score all rows, after they were tested."""
        self._parts.clear()
        parts = list[Score]()
        self.scores = scores(self._columns, self._request, self.weighing, self._fitting.mask, parts)
        if failed := self._pools.failed():
            self.scores[failed] = -np.inf
        self._parts_of_all, self._top_hosts = parts, TopHosts()

    def evaluate(self, row: int, fits: bool) -> None:
        """Score a row again, which may no longer fit."""
        self.scores[row] = -np.inf
        self._parts.pop(row, None)
        self._top_hosts.update(row, self._entry(row) if fits else None)

    def evaluate_many(self, rows: NDArray[np.intp], fitting: NDArray[np.bool_]) -> None:
        """Do what `evaluate` does, for many rows at once."""
        self.scores[rows] = -np.inf
        for row in rows.tolist():
            self._parts.pop(row, None)
        for row in rows[~fitting].tolist():
            self._top_hosts.update(row, None)
        found, parts = rows[fitting], list[Score]()
        self.scores[found] = values = score(self._columns, self._request, self.weighing, found, parts)
        if self._needs_parts:
            self._parts.update(zip(found.tolist(), _by_row(parts, len(found)), strict=True))
        for value, row in zip(np.broadcast_to(values, found.shape).tolist(), found.tolist(), strict=True):
            self._top_hosts.update(row, (-value, self._columns.name(row), row))

    def begin(self) -> None:
        """Forget the parts of all scores, most of which nobody needs."""
        self._parts_of_all = []

    def best(self, count: int) -> list[Entry]:
        """Return the `count` best rows that pass every rule, best first; fewer only if no more pass."""
        found = self._top_hosts.first(count)
        if found is None:
            self._fill_top_hosts(count)
            found = self._top_hosts.first(count)
        return found or []

    def drop(self, row: int) -> None:
        """Leave a row out of the order until it changes, because its pools fail."""
        self.scores[row] = -np.inf
        self._top_hosts.update(row, None)

    def score_of(self, row: int) -> float | None:
        """Return the score of a row; None if it does not pass every rule, or if its pools are known to fail."""
        value = self.scores.item(row) if self._fitting.mask[row] else -np.inf
        return None if value == -np.inf else value

    def _entry(self, row: int) -> Entry:
        parts = self._parts[row] = list[Score]()
        value = float(score(self._columns, self._request, self.weighing, row, parts))
        self.scores[row] = value
        return (-value, self._columns.name(row), row)

    def _fill_top_hosts(self, count: int) -> None:
        # A fraction of the fleet, so that a pass over all of it serves as many decisions as hosts were kept.
        often = max(2 * count, FRONT, self._columns.size // 32)
        room = max(count, FIRST_TOP_HOSTS) if self._top_hosts.is_new else often
        best = best_of_all(self.scores, self._columns.order, room)
        names = map(self._columns.name, best.tolist())
        entries = list(zip((-self.scores[best]).tolist(), names, best.tolist(), strict=True))
        self._top_hosts.fill(entries, complete=len(entries) < room or len(entries) == self._fitting.passing)
        self._keep_parts(best)

    def _keep_parts(self, rows: NDArray[np.intp]) -> None:
        """Keep the parts of the scores of these rows, if they are known, or needed soon: one by one they cost more."""
        parts, self._parts_of_all = self._parts_of_all, []
        if parts:
            found = _by_row([one[rows] if np.ndim(one) else one for one in parts], len(rows))
        elif self._needs_parts:
            found = self._parts_of_many(rows)
        else:
            return
        self._parts.update(zip(rows.tolist(), found, strict=True))

    def _parts_now(self, rows: Sequence[int]) -> Sequence[Sequence[float]]:
        if len(rows) > MANY:
            return self._parts_of_many(np.array(rows, np.intp))
        found = list[list[Score]]()
        for row in rows:
            found.append([])
            score(self._columns, self._request, self.weighing, row, found[-1])
        return found

    def _parts_of_many(self, rows: NDArray[np.intp]) -> list[Sequence[float]]:
        parts = list[Score]()
        score(self._columns, self._request, self.weighing, rows, parts)
        return _by_row(parts, len(rows))


def _by_row(parts: Sequence[Score], rows: int) -> list[Sequence[float]]:
    """Return the parts of scores by row; each is an array over the rows, or one number for all of them."""
    columns = [one.tolist() if isinstance(one, np.ndarray) else [float(one)] * rows for one in parts]
    return list(zip(*columns, strict=True)) if columns else [()] * rows
