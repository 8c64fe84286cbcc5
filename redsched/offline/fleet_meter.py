"""How full a fleet is, and how much of what is free no request can use, by resource class."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.filters import rules_of
from redsched.decide.rules import Filter, Rule
from redsched.decide.scoring.demand import demand, room
from redsched.model import Request

DRAWN = 64
"""How many places are drawn from the workload for each class, to estimate what is unusable."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Parts of a fleet's capacity by class, 0 to 1: what is in use, and what is free but unusable."""

    fill: Mapping[str, float]
    fragmentation: Mapping[str, float]


class FleetMeter:
    """Reads the state of a fleet, for a workload.

    What is free of a class on a host is unusable to a request for the class if the host does not fit it. How much that
    is, over all hosts, is the mean over requests for the class that are drawn from the workload: after Weng et al.,
    Beware of Fragmentation, ATC 2023. Only rules about single hosts are considered, and parts of a request each alone.
    """

    def __init__(self, workload: Iterable[Request], filters: tuple[Filter, ...]) -> None:
        counts, places = _by_shape(workload)
        self._drawn: dict[str, Counter[str]] = {}
        for name in classes_of(places.values()):
            asking = [shape for shape, place in places.items() if name in demand(place)]
            drawn = Random(0).choices(asking, [counts[shape] for shape in asking], k=DRAWN)
            self._drawn[name] = Counter(drawn)
        shapes = {shape for drawn in self._drawn.values() for shape in drawn}
        self._rules = {shape: rules_of(places[shape], filters) for shape in shapes}

    def read(self, columns: Columns) -> Reading:
        """Return the state of all hosts, for the classes that the workload asks for."""
        rows = np.flatnonzero(columns.present)
        rejected = {shape: ~_fitting(columns, rules, rows) for shape, rules in self._rules.items()}
        fill, fragmentation = dict[str, float](), dict[str, float]()
        for name, drawn in self._drawn.items():
            capacity, left = room(columns, name, rows)
            free, total = np.maximum(left, 0.0), max(float(capacity.sum()), 1.0)
            unusable = sum(count * float(free[rejected[shape]].sum()) for shape, count in drawn.items()) / DRAWN
            fill[name] = float((capacity - free).sum()) / total
            fragmentation[name] = unusable / total
        return Reading(fill, fragmentation)


def places_of(request: Request) -> list[tuple[Request, int]]:
    """Return what a request asks for on one host each, and how often."""
    return [(one.request, one.count) for one in request.members] or [(request, request.count)]


def classes_of(requests: Iterable[Request]) -> list[str]:
    """Return the classes that the requests ask hosts for, sorted."""
    return sorted({name for request in requests for place, _ in places_of(request) for name in demand(place)})


def _by_shape(workload: Iterable[Request]) -> tuple[Counter[str], dict[str, Request]]:
    """Return how many places have each shape, and one of them."""
    counts, places = Counter[str](), dict[str, Request]()
    for request in workload:
        for place, count in places_of(request):
            shape = place.shape()
            counts[shape] += count
            places.setdefault(shape, place)
    return counts, places


def _fitting(columns: Columns, rules: Iterable[Rule], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    fitting = np.ones(len(rows), np.bool_)
    for rule in rules:
        fitting &= rule.passes(columns, rows)
    return fitting
