"""The numbers of one host's slots, and of the shared ones beside them, read for the search. Nothing is decided here."""

from dataclasses import dataclass
from typing import NamedTuple

from redsched.cache.columns import Columns
from redsched.decide.assign.plan import Plan
from redsched.decide.fit import free
from redsched.names import SHARED_POOL, split_slot


class Numbers(NamedTuple):
    """A slot as `fit.fits` wants it, after the amount."""

    capacity: int
    claimed: int
    external: int
    minimum: int
    maximum: int
    step: int


@dataclass(frozen=True, slots=True)
class Rooms:
    """By the slot's index: `most` that may be taken, as far as free and max_unit go; `numbers` for the final word.

    `picky` are the slots that do not give out every amount up to `most`: it may take several parts to reach their
    min_unit or a multiple of their step_size.
    """

    most: list[int]
    numbers: list[Numbers]
    picky: tuple[int, ...]


def read_rooms(columns: Columns, row: int, plan: Plan) -> Rooms:
    """Read every slot of a plan for one host."""
    capacity, claimed, external = columns.capacity, columns.claimed, columns.external
    minimum, maximum, step = columns.minimum, columns.maximum, columns.step
    numbers = [
        Numbers(
            capacity[slot].item(row),
            claimed[slot].item(row),
            external[slot].item(row),
            minimum[slot].item(row),
            maximum[slot].item(row),
            step[slot].item(row),
        )
        if not slot.startswith(SHARED_POOL)
        else _shared(columns, slot)
        for slot in plan.slots
    ]
    most = [min(free(of, taken, by_others), largest) for of, taken, by_others, _, largest, _ in numbers]
    picky = tuple(index for index, one in enumerate(numbers) if one.minimum > 1 or one.step > 1)
    return Rooms(most, numbers, picky)


def _shared(columns: Columns, slot: str) -> Numbers:
    pool, resource_class = split_slot(slot)
    found = columns.declared.pools[pool.removeprefix(SHARED_POOL)].slots[resource_class]
    return Numbers(found.capacity, found.claimed, found.external, found.minimum, found.maximum, found.step)
