"""The state of hosts as a scheduler sees it, and the filtering and weighing that the models share.

redsched brings its own (its policy `spread` has the same formula), so that the others differ from it in nothing else.
"""

import heapq
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from benchmarks.models.work import CLASSES, HostSpec, Setup


@dataclass(slots=True)
class HostView:
    """One host as a scheduler sees it. `updated_s` is the (Unix) time of the state, or of the last consumption."""

    name: str
    capacity: Mapping[str, int]
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    updated_s: float = 0.0

    def consume(self, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Count amounts (or, with sign -1, give them back)."""
        for kind, amount in amounts.items():
            self.used[kind] += sign * amount
        self.updated_s = time.time()


def make_views(hosts: Sequence[HostSpec]) -> dict[str, HostView]:
    """Return views of empty hosts."""
    return {spec.name: HostView(spec.name, spec.capacity) for spec in hosts}


def score(view: HostView, amounts: Mapping[str, int]) -> float | None:
    """Return the mean free fraction after the placement, None if it does not fit."""
    total = 0.0
    for kind, amount in amounts.items():
        left = view.capacity[kind] - view.used[kind] - amount
        if left < 0:
            return None
        total += left / view.capacity[kind]
    return total


def ranked(
    views: Iterable[HostView], amounts: Mapping[str, int], rng: Random, pick_from: int, most: int
) -> list[HostView]:
    """Return up to `most` hosts that fit, best first; the first is a random one of the `pick_from` best.

    That is Nova's `host_subset_size` and redsched's `pick_from`.
    """
    scores = ((score(view, amounts), view) for view in views)
    fitting = [(-one, view.name, view) for one, view in scores if one is not None]
    best = [view for *_, view in heapq.nsmallest(max(most, pick_from), fitting)]
    if best:
        best.insert(0, best.pop(rng.randrange(min(pick_from, len(best)))))
    return best[:most]


def rng_of(setup: Setup, scheduler: int) -> Random:
    """Return the random numbers of one scheduler."""
    return Random(f"{setup.seed}-{scheduler}")
