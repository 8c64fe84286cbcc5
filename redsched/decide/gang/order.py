"""In which order the places are looked for: the hardest first, and what hangs together one after the other."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from redsched.decide.fit import free_on
from redsched.decide.gang.kinds import Kind, seats_of
from redsched.decide.gang.relations import Colocation
from redsched.decide.profile import RequestProfile
from redsched.model.validation import MAX_AMOUNT

Step = int | Colocation
"""One thing to decide: the host of a place (its number), or the domain of a bond."""


def steps_of(kinds: Sequence[Kind], bonds: Sequence[Colocation], order: Sequence[int]) -> tuple[Step, ...]:
    """All steps: the places of one kind after the other, each bond just before the first place that it binds."""
    seats: list[list[int]] = [[] for _ in kinds]
    for seat, number in enumerate(seats_of(kinds)):
        seats[number].append(seat)
    steps: list[Step] = []
    waiting = list(bonds)
    for number in order:
        steps += [bond for bond in waiting if number in bond.kinds]
        waiting = [bond for bond in waiting if number not in bond.kinds]
        steps += seats[number]
    return tuple(steps)


def hardest_first(kinds: Sequence[Kind], bonds: Sequence[Colocation], rooms: Sequence[float]) -> list[int]:
    """Numbers of the kinds: those with the least room for each place first, those that are bound beside each other.

    `rooms` is for how many places of each kind there is room. Kinds whose places are counted in one spreading keep the
    order of the call among themselves: the claim script counts in that order.
    """
    hard = _leveled([room / kind.count for room, kind in zip(rooms, kinds, strict=True)], counted_together(kinds))
    near = _leveled(hard, [bond.kinds for bond in reversed(bonds)])
    free_ones = set(range(len(kinds))).difference(*(bond.kinds for bond in bonds))
    return sorted(range(len(kinds)), key=lambda number: (near[number], number in free_ones, hard[number], number))


def counted_together(kinds: Sequence[Kind]) -> list[frozenset[int]]:
    """The kinds that are counted in one server group, or in this call, and of which some are spread by a hard rule."""
    groups: dict[str, set[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.request.server_group or kind.request.spread:
            groups.setdefault(kind.request.server_group, set()).add(number)
    hard = (numbers for numbers in groups.values() if any(_is_spread(kinds[number]) for number in numbers))
    return [frozenset(numbers) for numbers in hard]


def places_on(shape: RequestProfile, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """For how many places there is room on each row at most, by its amounts alone (int64, of the rows' shape).

    Where pools are concerned amounts say little, and the answer is MAX_AMOUNT.
    """
    found = np.full(len(rows), MAX_AMOUNT, np.int64)
    if not shape.is_plain:
        return found
    columns = shape.columns
    for slot, amount in shape.request.resources.items():
        np.minimum(found, np.maximum(0, free_on(columns, slot, rows)) // amount, out=found)
    return found


def _is_spread(kind: Kind) -> bool:
    return any(spread.hard for spread in kind.request.spread)


def _leveled(values: Sequence[float], sets: Iterable[frozenset[int]]) -> list[float]:
    """Give all of a set the least of their values, one set after the other."""
    found = list(values)
    for numbers in sets:
        least = min(found[number] for number in numbers)
        for number in numbers:
            found[number] = least
    return found
