"""What a single place of a host offers: its root (''), one of its pools, or a shared pool. Vectorized over hosts.

Each place is tested by itself here, and `redsched.decide.pools` decides whether a host's places can give everything at
the same time. So these tests reject only hosts for which there is no assignment.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.fit import fits, free, free_on
from redsched.decide.pools import Demands
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import everywhere, nowhere
from redsched.model.gpus import amount_text
from redsched.model.reserved_for import UNNAMED
from redsched.model.validation import SHARED_POOL, split_slot


def slot_of(place: str, resource_class: str) -> str:
    """Return the slot of a class in a place of the host."""
    return f"{place}/{resource_class}" if place else resource_class


@dataclass(frozen=True, slots=True)
class PlaceTraits:
    """The traits that a part of a request requires of the place that gives it."""

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: tuple[frozenset[str], ...] = ()

    def suit(self, traits: frozenset[str]) -> bool:
        """Return whether a place with these traits may give the part."""
        return self.required <= traits and not self.forbidden & traits and all(one & traits for one in self.any_of)

    def suits(self, columns: Columns, place: str, rows: Rows) -> Mask:
        """Return whether a host's own place has all `required`, no `forbidden`, and one of each of `any_of`."""
        found = has_traits(columns, place, self.required, self.forbidden, rows)
        for names in self.any_of:
            found = found & has_any(columns, place, names, rows)
        return found


def gives(columns: Columns, slot: str, amount: int, rows: Rows) -> Mask:
    """Return whether a slot can give an amount to one part of a request."""
    if slot.startswith(SHARED_POOL):
        return np.bool_(fits(amount, *_shared(columns, slot)))
    kinds = columns.claimed, columns.external, columns.minimum, columns.maximum, columns.step
    if isinstance(rows, int):  # for single rows plain numbers are several times faster than numpy's
        return np.bool_(fits(amount, *(kind[slot].item(rows) for kind in (columns.capacity, *kinds))))
    found: Mask = fits(amount, columns.capacity[slot][rows], *(kind.where_set(slot, rows) for kind in kinds))
    return found


def most(columns: Columns, slot: str, rows: Rows) -> Any:
    """Return the most that one claim could take of a host's own slot, at least 0."""
    return np.maximum(np.minimum(free_on(columns, slot, rows), columns.maximum[slot][rows]), 0)


def has_units(columns: Columns, slot: str) -> bool:
    """Return whether a slot of any host has a min_unit or step_size, which may forbid amounts up to the most."""
    return slot in columns.minimum or slot in columns.step


def class_has_units(columns: Columns, resource_class: str) -> bool:
    """Return whether any slot of a class has such units."""
    return any(has_units(columns, slot) for slot in (resource_class, *columns.pool_slots(resource_class)))


def largest(columns: Columns, resource_class: str, of_root: PlaceTraits, of_pools: PlaceTraits, rows: Rows) -> Any:
    """Return the most that one claim could take of a class from one suitable place of each host: int64."""

    def compute(rows: Rows) -> Any:
        if isinstance(rows, int):
            return np.int64(max(_most_of_places(columns, resource_class, of_root, of_pools, rows), default=0))
        found = most(columns, resource_class, rows) * of_root.suits(columns, "", rows)
        for pool in pools_with(columns, ((resource_class, 1),), rows):
            own = most(columns, slot_of(pool, resource_class), rows) * of_pools.suits(columns, pool, rows)
            found = np.maximum(found, own)
        return found

    return columns.derived(("largest", resource_class, of_root, of_pools), compute, rows)


def places_giving(columns: Columns, resource_class: str, amount: int, traits: PlaceTraits, rows: Rows) -> Any:
    """Return how many suitable places of a host have room for an amount each: int64."""

    def compute(rows: Rows) -> Any:
        if isinstance(rows, int):
            found = _most_of_places(columns, resource_class, traits, traits, rows)
            return np.int64(sum(one >= amount for one in found))
        places = ("", *pools_with(columns, ((resource_class, 1),), rows))
        slots = ((place, slot_of(place, resource_class)) for place in places)
        return sum((most(columns, slot, rows) >= amount) & traits.suits(columns, place, rows) for place, slot in slots)

    return columns.derived(("places", resource_class, amount, traits), compute, rows)


def given_in_units(columns: Columns, resource_class: str, unit: int, traits: PlaceTraits, rows: Rows) -> Any:
    """Return how much of a class the suitable places of a host have left, each in whole multiples of a unit: int64."""

    def compute(rows: Rows) -> Any:
        if isinstance(rows, int):
            found = _most_of_places(columns, resource_class, traits, traits, rows)
            return np.int64(sum(one // unit * unit for one in found))
        places = ("", *pools_with(columns, ((resource_class, 1),), rows))
        slots = ((place, slot_of(place, resource_class)) for place in places)
        units = (most(columns, slot, rows) // unit * traits.suits(columns, place, rows) for place, slot in slots)
        return unit * sum(units)

    return columns.derived(("in units", resource_class, unit, traits), compute, rows)


def _most_of_places(
    columns: Columns, resource_class: str, of_root: PlaceTraits, of_pools: PlaceTraits, row: int
) -> list[int]:
    """Return the most that one claim could take from each suitable place of one host, at least 0."""
    layout = columns.layout(row)
    slots = [
        f"{pool}/{resource_class}"
        for pool, classes in layout.classes.items()
        if resource_class in classes and of_pools.suit(layout.traits[pool])
    ]
    if of_root.suits(columns, "", row):
        slots.append(resource_class)
    amounts = columns.capacity, columns.claimed, columns.external, columns.maximum
    numbers = zip(*(family.at(row, slots) for family in amounts), strict=True)
    return [max(min(free(capacity, claimed, external), largest), 0) for capacity, claimed, external, largest in numbers]


def slot_free(columns: Columns, slot: str, row: int) -> int:
    """Return what is free of a slot of one host, or of a shared one, in the unit of its class."""
    if slot.startswith(SHARED_POOL):
        left: int = free(*_shared(columns, slot)[:3])
    else:
        left = free(*(kind[slot].item(row) for kind in (columns.capacity, columns.claimed, columns.external)))
    return left


def max_unit_of(columns: Columns, resource_class: str, amount: int, row: int) -> int | None:
    """Return the max_unit because of which a place of a host gives no more than an amount, though more is free there.

    None if there is no such place.
    """
    for place in ("", *pools_with(columns, ((resource_class, 1),), row)):
        slot = slot_of(place, resource_class)
        limit, step = columns.maximum[slot].item(row), columns.step[slot].item(row)
        if amount <= limit < amount + step <= slot_free(columns, slot, row):
            found: int = limit
            return found
    return None


def has_traits(columns: Columns, place: str, required: Iterable[str], forbidden: Iterable[str], rows: Rows) -> Mask:
    """Return whether a host's own place has all `required` traits and no `forbidden` one."""
    found = everywhere(columns, rows)
    for trait in required:
        found = found & columns.traits[slot_of(place, trait)][rows]
    for trait in forbidden:
        found = found & ~columns.traits[slot_of(place, trait)][rows]
    return found


def has_any(columns: Columns, place: str, traits: Iterable[str], rows: Rows) -> Mask:
    """Return whether a host's own place has at least one of some traits."""
    found = nowhere(columns, rows)
    for trait in traits:
        found = found | columns.traits[slot_of(place, trait)][rows]
    return found


def gives_all(columns: Columns, place: str, demands: Demands, rows: Rows) -> Mask:
    """Return whether a host's own place can give all of these amounts."""
    found = everywhere(columns, rows)
    for name, amount in demands:
        found = found & gives(columns, slot_of(place, name), amount, rows)
    return found


def pools_with(columns: Columns, demands: Demands, rows: Rows) -> list[str]:
    """Return the pools with slots of all these classes, at least one: of one host, or of any host."""
    classes = [name for name, _ in demands]
    if isinstance(rows, int):  # other hosts may have many more
        layout = columns.layout(rows)
        return [pool for pool in layout.pools if layout.classes[pool].issuperset(classes)]
    pools = [[split_slot(slot)[0] for slot in columns.pool_slots(name)] for name in classes]
    return [pool for pool in pools[0] if all(pool in others for others in pools[1:])]


def pools_having(columns: Columns, trait: str, rows: Rows) -> list[str]:
    """Return the pools with a trait: of one host, or of any host."""
    if isinstance(rows, int):
        layout = columns.layout(rows)
        return [pool for pool in layout.pools if trait in layout.traits[pool]]
    return [split_slot(key)[0] for key in columns.pools_with_trait(trait)]


def amounts_text(demands: Demands) -> str:
    """Return amounts as text: "4 PCPU and 8192 MEMORY_MB"."""
    return " and ".join(f"{amount} {name}" for name, amount in demands) or "nothing"


def amounts_with_gpus(demands: Demands) -> str:
    """Return amounts as text, those of GPUs in GPUs: "0.5 GPU and 8192 CUSTOM_GPU_MEMORY_MB"."""
    return " and ".join(amount_text(name, amount) for name, amount in demands)


def nearest_place(
    columns: Columns,
    row: int,
    demands: Demands,
    places: Iterable[str],
    text_of: Callable[[Demands], str] = amounts_text,
) -> str:
    """Return the free amounts of the place that lacks least: "best is numa1 with 2 PCPU and 4096 MEMORY_MB free"."""
    found = min(places, key=lambda place: _lacks(columns, row, demands, place), default=None)
    if found is None:
        return "has none"
    slots = {name: slot_of(found, name) for name, _ in demands}
    kept = {name: columns.reserved.amount(row, slot) for name, slot in slots.items()}
    have = tuple((name, slot_free(columns, slot, row) + kept[name]) for name, slot in slots.items())
    text = f"best is {found or 'the host itself'} with {text_of(have)} free"
    of_others = tuple((name, min(kept[name], free)) for name, free in have if kept[name] and free > 0)
    return f"{text}, of which {text_of(of_others)} are {UNNAMED}" if of_others else text


def _lacks(columns: Columns, row: int, demands: Demands, place: str) -> tuple[float, float]:
    """Return the part of the demands that a place lacks, and that it would lack if it kept nothing for a request."""
    now = unless_kept = 0.0
    for name, amount in demands:
        left, kept = slot_free(columns, slot_of(place, name), row), columns.reserved.amount(row, slot_of(place, name))
        now += max(0, amount - left) / amount
        unless_kept += max(0, amount - left - kept) / amount
    return now, unless_kept


def _shared(columns: Columns, slot: str) -> tuple[int, ...]:
    pool, resource_class = split_slot(slot)
    one = columns.declared.pools[pool.removeprefix(SHARED_POOL)].slots[resource_class]
    return one.capacity, one.claimed, one.external, one.minimum, one.maximum, one.step
