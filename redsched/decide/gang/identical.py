"""Identical places that depend on nothing but their own hosts, which most calls for several places ask for.

They are found as the search of a gang would find them: one after the other, on one of the best hosts. But as the places
cannot restrict each other except by filling hosts, the search has no alternatives to try, and what a host offers after
its next place can be computed for many hosts at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.gang.kinds import Kind
from redsched.decide.gang.sorted_rows import SortedRows
from redsched.decide.gang.table import PickPolicy
from redsched.decide.pick import choose
from redsched.decide.profile import RequestProfile
from redsched.decide.result import Place
from redsched.decide.scoring import score
from redsched.decide.scoring.weigher import is_absolute
from redsched.decide.work_limit import check_work
from redsched.model import Candidate, Request


def are_identical(call: Request, kinds: Sequence[Kind]) -> bool:
    """Return whether the places of a call are of one kind, and only the room on a host limits how many it takes."""
    profile = kinds[0].profile
    if len(kinds) > 1 or call.relations or not (profile.ranking.is_cached and profile.pools.is_plain):
        return False
    return is_absolute(profile.columns, profile.request, profile.ranking.weighing)


def find_identical(kind: Kind, candidates: int, pick: PickPolicy) -> list[Place]:
    """Find as many of the kind's places as there is room for, each with up to `candidates` hosts."""
    profile = kind.profile
    # Each place takes at most one row from another, so with as many rows as places, one is left if any exists.
    rows = [row for _, _, row in profile.ranking.best(kind.count + max(candidates, pick.pick_from))]
    best = SortedRows(np.array(rows, np.intp), profile.ranking.scores, profile.columns.order)
    offers = _Offers(profile, rows)
    placed: list[int] = []
    while len(placed) < kind.count and (first := list(islice(best, pick.pick_from))):
        check_work(f"choosing a host for place {len(placed) + 1} of {kind.count}")
        row = first[choose(profile.ranking.peers(first, [*map(best.score, first)]), pick.pick_from, pick.rng)]
        placed.append(row)
        best.move(row, offers.after_another(row))
    return _places(kind, placed, list(islice(best, candidates)), candidates)


class _Offers:
    """What the rows offer after some places of the call on them."""

    def __init__(self, profile: RequestProfile, rows: Sequence[int]) -> None:
        self._profile = profile
        self._placed = dict.fromkeys(rows, 0)
        self._scores: dict[int, list[float | None]] = {row: [] for row in rows}
        """The score of a row after one place, two, and so on, as far as known; None where no further one fits."""

    def after_another(self, row: int) -> float | None:
        """Put another place on a row. Returns the score for the next one, or None if it would not fit."""
        self._placed[row] = places = self._placed[row] + 1
        if len(self._scores[row]) < places:
            # Rows with as many places as this one had, or more, will probably be asked for soon.
            self._evaluate(
                [one for one, scores in self._scores.items() if len(scores) == places - 1 <= self._placed[one]], places
            )
        return self._scores[row][places - 1]

    def _evaluate(self, rows: list[int], places: int) -> None:
        array, profile = np.array(rows, np.intp), self._profile
        with _tentative(profile.columns, profile.request, array, places):
            passing = profile.fitting.passing_now(array)
            fitting = array[passing]
            values = score(profile.columns, profile.request, profile.ranking.weighing, fitting)
        following = iter(np.broadcast_to(values, fitting.shape).tolist())
        for row, passes in zip(rows, passing.tolist(), strict=True):
            self._scores[row].append(next(following) if passes else None)


@contextmanager
def _tentative(columns: Columns, request: Request, rows: NDArray[np.intp], places: int) -> Iterator[None]:
    """Put this number of places on each of the rows while the context is active."""

    def change(added: int) -> None:
        for slot, amount in request.resources.items():
            columns.claimed.add(slot, rows, added * amount)
        columns.claims[rows] += added
        columns.starting[rows] += added

    columns.tentative += 1
    change(places)
    try:
        yield
    finally:
        change(-places)
        columns.tentative -= 1


def _places(kind: Kind, placed: Sequence[int], others: Sequence[int], most: int) -> list[Place]:
    """Return the places in order, each with its own host first. Places on one host are equal."""
    profile = kind.profile
    offered = {row: Candidate(profile.columns.name(row), profile.request.resources) for row in {*placed, *others}}
    further = [offered[row] for row in others]
    made: dict[int, Place] = {}
    for row in placed:
        if row not in made:
            own = offered[row]
            made[row] = Place((own, *(one for one in further if one is not own))[:most], kind.member)
    return [made[row] for row in placed]
