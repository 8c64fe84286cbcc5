"""The ranking of the hosts that fit a request: the best of them, with their scores by weigher."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.decide.profile import RequestProfile
from redsched.decide.scoring.weigher import LOWEST
from redsched.decide.work_limit import check_work
from redsched.model import RankedHost

RANKED = 5
"""The most hosts of an explanation's ranking."""
MAX_IN_VAIN = 64
"""The most hosts whose pools are searched in vain for the ranking; it may then have fewer hosts than fit."""


def ranked(profile: RequestProfile) -> tuple[RankedHost, ...]:
    """Return the best hosts that take one place, best first, in the order in which decisions prefer them."""
    found = profile.first_verified(RANKED, MAX_IN_VAIN)
    if not found:
        return ()
    rows = np.array([entry[2] for entry, _ in found], np.intp)
    parts = {name: values.tolist() for name, values in _by_weigher(profile, rows)}
    return tuple(
        RankedHost(entry[1], _number(-entry[0]), {name: values[number] for name, values in parts.items()})
        for number, (entry, _) in enumerate(found)
    )


def merge_ranked(rankings: Iterable[Sequence[RankedHost]]) -> tuple[RankedHost, ...]:
    """Return the best hosts of several cells, best first."""
    found = sorted((one for cell in rankings for one in cell), key=lambda one: (-one.score, one.host))
    return tuple(found[:RANKED])


def merge_spared(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return how many hosts of several cells are spared, by class, sorted."""
    total = sum(map(Counter, found), Counter[str]())
    return dict(sorted(total.items()))


def _by_weigher(profile: RequestProfile, rows: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield each weigher that is in use, with what it adds to the scores of these rows: float64 of their shape."""
    columns, request = profile.columns, profile.request
    # A relative weigher compares all hosts that fit.
    among = rows if profile.ranking.is_cached else profile.fitting.open_rows()
    at = np.searchsorted(among, rows) if among is not rows else np.arange(len(rows))
    for weigher, multiplier in profile.ranking.weighing.items():
        if weigher.idle(columns, request):
            continue
        check_work("ranking the hosts that fit")
        values = np.broadcast_to(weigher.weighed(columns, request, among, multiplier), among.shape)[at]
        if multiplier or values.any():  # a multiplier of 0 is for aggregates that set another one
            yield weigher.name, np.nan_to_num(values, nan=LOWEST, neginf=LOWEST) + 0.0  # no -0.0


def _number(score: float) -> float:
    """Return a score as a finite number: weighers of users may give others."""
    return float(np.nan_to_num(score, nan=LOWEST, neginf=LOWEST))
