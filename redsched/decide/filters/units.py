"""Units: the min_unit, max_unit and step_size of places, which may forbid an amount that is free there."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.filters.places import PlaceTraits, pools_with, slot_free, slot_of
from redsched.decide.fit import free_on
from redsched.decide.pools import Demands, may_use, shared_with
from redsched.decide.rules import Cause, Rows
from redsched.model.validation import SHARED_POOL

KINDS = ("min_unit", "max_unit", "step_size")
"""In the order in which they are tested."""
ANY = PlaceTraits()


def unit_causes(demands: Demands, of_root: PlaceTraits, of_pools: PlaceTraits, shared: bool = False) -> Sequence[Cause]:
    """Return the causes for which units forbid one of these amounts in all places that are large enough for it.

    `shared`: whether shared pools may give it, too.
    """
    return [
        Cause(
            tuple(f"{kind}:{name}" for kind in KINDS),
            partial(forbidding, name, amount, of_root, of_pools, shared, amount),
            partial(_unit_detail, name, amount),
        )
        for name, amount in demands
    ]


def _unit_detail(name: str, amount: int, columns: Columns, row: int) -> str:
    return unit_text(columns, name, amount, row).replace(" ", " is ")


def forbidding(
    name: str,
    amount: int,
    of_root: PlaceTraits,
    of_pools: PlaceTraits,
    shared: bool,
    enough: int,
    columns: Columns,
    rows: Rows,
) -> Any:
    """Return which of KINDS forbids an amount in all suitable places of a capacity of `enough`; -1 for none: int8.

    If places forbid it by several, it is the last one that is tested.
    """
    pools = shared_with(columns, name) if shared else ()
    if not (pools or _has_limits(columns, name)):
        return np.int8(-1) if isinstance(rows, int) else np.full(len(columns.present[rows]), -1, np.int8)
    found: Any = np.int8(-1)
    for place in ("", *pools_with(columns, ((name, 1),), rows)):
        slot = slot_of(place, name)
        suits = (of_pools if place else of_root).suits(columns, place, rows) & (columns.capacity[slot][rows] >= enough)
        units = (family[slot][rows] for family in (columns.minimum, columns.maximum, columns.step))
        found = np.maximum(found, np.where(suits, _reached(amount, *units), -1))
    for pool in pools:
        one = columns.declared.pools[pool].slots[name]
        if one.capacity >= enough:
            reached = int(_reached(amount, one.minimum, one.maximum, one.step))
            found = np.where(may_use(columns, pool, rows), np.maximum(found, reached), found)
    return np.where(found == len(KINDS), -1, found)


def _has_limits(columns: Columns, name: str) -> bool:
    """Return whether any slot of a class has units that may forbid an amount."""
    families = columns.minimum, columns.maximum, columns.step
    return any(slot in one for slot in (name, *columns.pool_slots(name)) for one in families)


def _reached(amount: int, least: Any, most: Any, step: Any) -> Any:
    """Return the number of units that admit an amount before the first that forbids it."""
    is_in_range = amount <= most
    return np.where(amount < least, 0, np.where(~np.bool_(is_in_range), 1, np.where(amount % step != 0, 2, 3)))


def next_valid(columns: Columns, name: str, amount: int, rows: Rows) -> tuple[Any, Any]:
    """Return the next smaller and the next larger amount that some place of a host can give now; 0 for none: int64."""
    below: Any = np.int64(0)
    above: Any = np.int64(0)
    for free, least, most, step in _own_places(columns, name, rows):
        top = np.minimum(free, most)
        smaller = np.minimum(top, amount - 1) // step * step
        larger = -(-np.maximum(least, amount + 1) // step) * step
        below = np.maximum(below, np.where(smaller >= least, smaller, 0))
        above = np.where((larger <= top) & ((above == 0) | (larger < above)), larger, above)
    return below, above


def _own_places(columns: Columns, name: str, rows: Rows) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield what is free in each place of hosts, and in each shared pool that they may use, with its units."""
    for place in ("", *pools_with(columns, ((name, 1),), rows)):
        slot = slot_of(place, name)
        units = (family[slot][rows] for family in (columns.minimum, columns.maximum, columns.step))
        yield (free_on(columns, slot, rows), *units)
    for pool in shared_with(columns, name):
        one = columns.declared.pools[pool].slots[name]
        free = slot_free(columns, f"{SHARED_POOL}{pool}/{name}", 0)
        yield np.where(may_use(columns, pool, rows), free, 0), one.minimum, one.maximum, one.step


def unit_text(columns: Columns, name: str, amount: int, row: int) -> str:
    """Return the unit that forbids an amount on a host, as "step_size 4"; '' for none."""
    kind = int(forbidding(name, amount, ANY, ANY, shared=True, enough=1, columns=columns, rows=row))
    if kind < 0:
        return ""
    families = {"min_unit": 1, "max_unit": 2, "step_size": 3}
    values = [
        int(place[families[KINDS[kind]]])
        for place in _own_places(columns, name, row)
        if int(_reached(amount, *place[1:])) == kind
    ]
    return f"{KINDS[kind]} {values[0]}" if values else KINDS[kind]


def has_units_on(columns: Columns, name: str, row: int) -> bool:
    """Return whether a place of a host has a min_unit or step_size for a class."""
    return any(least > 1 or step > 1 for _, least, _, step in _own_places(columns, name, row))
