"""The numbers of one host's slots, and of its shared ones, read for the search. Decides nothing."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import sub

from redsched.cache.columns import Columns
from redsched.decide.fit import free
from redsched.decide.pools.plan import Plan
from redsched.model.validation import SHARED_POOL, split_slot

Numbers = tuple[int, int, int, int, int, int]
"""A slot's arguments for `fit.fits`, after the amount: capacity, claimed, external, min_unit, max_unit, step_size."""


@dataclass(frozen=True, slots=True)
class FreeSlots:
    """By the slot's index: `most`, the largest amount that may be taken of it, and `numbers`.

    `has_units`: some slot has a min_unit or step_size, so that it does not give a part every amount up to `most`.
    """

    most: list[int]
    numbers: list[Numbers]
    has_units: bool

    def allows(self, takes: Iterable[tuple[int, int]]) -> bool:
        """Return whether amounts that one part takes, each with its slot's index, are in the slots' units."""
        return all(amount >= self.numbers[slot][3] and not amount % self.numbers[slot][5] for slot, amount in takes)


def read_key(columns: Columns, row: int, plan: Plan) -> Hashable:
    """Return a key that is equal for hosts of a plan with equal free slots. Cheaper than these."""
    if plan.shared_slots or columns.minimum or columns.step:
        free_slots = read_free_slots(columns, row, plan)
        return (*free_slots.most, *free_slots.numbers)
    slots = plan.slots
    capacity, claimed = columns.capacity.at(row, slots), columns.claimed.at(row, slots)
    external, largest = columns.external.at(row, slots), columns.maximum.at(row, slots)
    return tuple(map(min, map(sub, map(sub, capacity, claimed), external), largest))


def read_free_slots(columns: Columns, row: int, plan: Plan) -> FreeSlots:
    """Read every slot of a plan for one host."""
    families = columns.capacity, columns.claimed, columns.external, columns.minimum, columns.maximum, columns.step
    numbers = list(zip(*(family.at(row, plan.slots) for family in families), strict=True))
    for index in plan.shared_slots:
        numbers[index] = _shared(columns, plan.slots[index])
    most = [
        min(free(capacity, claimed, external), largest) // step * step
        for capacity, claimed, external, _, largest, step in numbers
    ]
    return FreeSlots(most, numbers, any(one[3] > 1 or one[5] > 1 for one in numbers))


def _shared(columns: Columns, slot: str) -> Numbers:
    pool, resource_class = split_slot(slot)
    found = columns.declared.pools[pool.removeprefix(SHARED_POOL)].slots[resource_class]
    return found.capacity, found.claimed, found.external, found.minimum, found.maximum, found.step
