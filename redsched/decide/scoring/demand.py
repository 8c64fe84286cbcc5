"""The amounts of each class that a request takes from a host in total, over all pools, and that the host has.

Weighers consider a host as a whole: the assignment to its pools is decided later, and only for the best hosts.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from redsched.cache.arrays import KeyedColumns
from redsched.cache.columns import Columns
from redsched.decide.fit import free, unscaled_free_on
from redsched.decide.pools.demand import cell_demands
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score
from redsched.model import Amounts, Request


def taken_by(request: Request) -> Amounts:
    """Return the amounts that all places of a request take together, by class, independently of their hosts."""
    total: Counter[str] = Counter()
    for one in [one.request for one in request.members] or [request]:
        total.update({name: amount * one.count for name, amount in demand(one).items()})
    return total


def demand(request: Request) -> Amounts:
    """Return the amounts by class of one place: resources, groups, guest NUMA cells and devices together."""
    if not (request.groups or request.numa or request.pci):
        return request.resources
    total = Counter(request.resources)
    for group in request.groups:
        total.update(group.resources)
    if request.numa:
        for cell in request.numa.cells:
            total.update(dict(cell_demands(request.numa, cell)))
    for devices in request.pci:
        total[devices.resource_class] += devices.count
    return total


def room(columns: Columns, resource_class: str, rows: Rows) -> tuple[Score, Score]:
    """Return capacity and free amount of a class, for the host and all its pools together (float64)."""
    slots, derived = (resource_class, *columns.pool_slots(resource_class)), columns.derived
    if isinstance(rows, int) and len(slots) == 1:
        # One slot is read faster than the arrays are updated.
        kinds = columns.capacity, columns.claimed, columns.external
        capacity, claimed, external = (family[resource_class].item(rows) for family in kinds)
        return np.float64(capacity), np.float64(free(capacity, claimed, external))
    capacity = derived(("capacity", resource_class), lambda some: _total(columns.capacity, slots, some) * 1.0, rows)
    return capacity, derived(("free", resource_class), lambda some: _free(columns, slots, some) * 1.0, rows)


def unscaled_free(columns: Columns, resource_class: str, rows: Rows) -> Score:
    """Return what is free of a class without allocation ratios, of the host and all its pools together (float64).

    It is total - reserved - claimed - external, and negative where more is taken than there is.
    """
    slots = resource_class, *columns.pool_slots(resource_class)
    if not any(slot in columns.ratios for slot in slots):
        return room(columns, resource_class, rows)[1]
    return columns.derived(("unscaled", resource_class), lambda some: _unscaled_free(columns, slots, some), rows)


def _unscaled_free(columns: Columns, slots: Sequence[str], rows: Rows) -> Score:
    total: Score = 0.0
    for slot in slots:
        total = total + unscaled_free_on(columns, slot, rows)
    return total


def _free(columns: Columns, slots: Sequence[str], rows: Rows) -> Score:
    return free(*(_total(family, slots, rows) for family in (columns.capacity, columns.claimed, columns.external)))


def _total(family: KeyedColumns[np.int64], slots: Sequence[str], rows: Rows) -> Score:
    if isinstance(rows, int):
        return np.int64(sum(family.at(rows, slots)))
    total = family[slots[0]][rows]
    for slot in slots[1:]:
        total = total + family.where_set(slot, rows)
    return total


def demanded_room(columns: Columns, request: Request, rows: Rows) -> list[tuple[int, Score, Score]]:
    """Return amount, capacity and free amount of each requested class.

    Sorted by class, so that equal shapes add their floats in the same order. If a class comes from a shared pool,
    because the host itself cannot give it, the host counts as having none of it requested and all of it free: amount 0,
    and 1 of 1 free.
    """
    pools = columns.declared.pools.values()
    found = []
    for resource_class, amount in sorted(demand(request).items()):
        capacity, left = room(columns, resource_class, rows)
        if pools and any(resource_class in pool.slots for pool in pools):
            gives = left >= amount
            found.append((amount * gives, capacity * gives + ~gives, left * gives + ~gives))
        else:
            found.append((amount, capacity, left))
    return found
