"""The order in which places are searched: the hardest first, and colocated ones in a row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.decide.fit import free_on
from redsched.decide.gang.kinds import Kind, kind_numbers
from redsched.decide.gang.relations import Colocation
from redsched.decide.profile import RequestProfile
from redsched.model.validation import MAX_AMOUNT

Step = int | Colocation
"""One step of the search: to choose the host of a place (its number), or the domain of a colocation."""


def steps_of(kinds: Sequence[Kind], colocations: Sequence[Colocation], order: Sequence[int]) -> tuple[Step, ...]:
    """Return all steps: the places kind by kind, each colocation just before the first place that it applies to."""
    seats: list[list[int]] = [[] for _ in kinds]
    for seat, number in enumerate(kind_numbers(kinds)):
        seats[number].append(seat)
    steps: list[Step] = []
    waiting = list(colocations)
    for number in order:
        steps += [colocation for colocation in waiting if number in colocation.kinds]
        waiting = [colocation for colocation in waiting if number not in colocation.kinds]
        steps += seats[number]
    return tuple(steps)


def hardest_first(kinds: Sequence[Kind], colocations: Sequence[Colocation], rooms: Sequence[float]) -> list[int]:
    """Return the numbers of the kinds: least room per place first, with colocated kinds next to each other.

    `rooms` is the number of places of each kind for which there is room. Kinds whose places are counted in one spread
    constraint keep their order in the call: the claim script counts in that order.
    """
    hard = _leveled([room / kind.count for room, kind in zip(rooms, kinds, strict=True)], counted_together(kinds))
    near = _leveled(hard, [colocation.kinds for colocation in reversed(colocations)])
    free_ones = set(range(len(kinds))).difference(*(colocation.kinds for colocation in colocations))
    return sorted(range(len(kinds)), key=lambda number: (near[number], number in free_ones, hard[number], number))


def counted_together(kinds: Sequence[Kind]) -> list[frozenset[int]]:
    """Return the kinds counted in one server group, or in this call, of which some have a hard spread rule."""
    groups: dict[str, set[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.request.server_group or kind.request.spread:
            groups.setdefault(kind.request.server_group, set()).add(number)
    hard = (numbers for numbers in groups.values() if any(_is_spread(kinds[number]) for number in numbers))
    return [frozenset(numbers) for numbers in hard]


def places_on(profile: RequestProfile, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the most places that fit on each row by amounts alone (int64, of the rows' shape).

    If pools matter, amounts say little, and the result is MAX_AMOUNT.
    """
    found = np.full(len(rows), MAX_AMOUNT, np.int64)
    if not profile.pools.is_plain:
        return found
    columns = profile.columns
    for slot, amount in profile.request.resources.items():
        np.minimum(found, np.maximum(0, free_on(columns, slot, rows)) // amount, out=found)
    return found


def _is_spread(kind: Kind) -> bool:
    return any(spread.hard for spread in kind.request.spread)


def _leveled(values: Sequence[float], sets: Iterable[frozenset[int]]) -> list[float]:
    """Give all kinds of a set the minimum of their values, one set after the other."""
    found = list(values)
    for numbers in sets:
        least = min(found[number] for number in numbers)
        for number in numbers:
            found[number] = least
    return found
