"""Places for several alike: played through one by one, so that no member aims at room promised to an earlier one."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from random import Random

import numpy as np

from redsched.decide.front import Entry
from redsched.decide.pick import pick
from redsched.decide.rules import first_failure
from redsched.decide.shape import Shape
from redsched.decide.weighers import score


def place_members(
    shape: Shape, best: Sequence[Entry], count: int, candidates: int, pick_from: int, rng: Random
) -> list[tuple[str, ...]]:
    """Return the candidate hosts of each of `count` members, the chosen one first; fewer members where room runs out.

    `best` are the best entries of the shape, in order: at least `count + pick_from + candidates`, or all that fit. No
    more can be needed, because each place is given to one of the best `pick_from` of that moment and a host that was
    given nothing keeps its entry. Members are alike, so it does not matter which host is filled first: all places that
    there are will be found.
    """
    trial = shape.columns.extract(np.array([row for _, _, row in best], np.intp))
    order = [(key, name, number) for number, (key, name, _) in enumerate(best)]
    members: list[tuple[str, ...]] = []
    while order and len(members) < count:
        chosen = pick(order[: max(pick_from, candidates)], pick_from, rng)[:candidates]
        members.append(tuple(name for _, name, _ in chosen))
        _, name, row = chosen[0]
        del order[bisect_left(order, chosen[0])]
        for slot, amount in shape.request.resources.items():
            trial.claimed.set(slot, row, trial.claimed[slot].item(row) + amount)
        if first_failure(shape.rules, trial, row) == len(shape.rules):
            insort(order, (-float(score(trial, shape.request, shape.weighing, row)), name, row))
    return members
