"""Zones, hosts, classes and amounts that no cell has: mistyped names, hosts that have not reported, or too much."""

from collections.abc import Iterable

import numpy as np

from redsched.cache.arrays import UNHELD
from redsched.cache.columns import Columns
from redsched.decide.rules import ALL_ROWS
from redsched.decide.scoring.demand import demand, room
from redsched.model import Request
from redsched.model.records.explanations import MAX_ZONES, Unknown
from redsched.model.validation import split_slot


def unknown(columns: Columns, request: Request) -> Unknown:
    """Return what a request names and the cell does not have, with the first zones and all classes that there are."""
    zones = frozenset(zone for zone in request.zones if columns.zones.code(zone) == UNHELD)
    hosts = frozenset(host for host in request.hosts if host not in columns)
    there = sorted(columns.zones.among(np.flatnonzero(columns.present))) if zones else []
    classes = frozenset(name for name in demand(request) if not _has(columns, name))
    have = _classes(columns) if classes else frozenset()
    return Unknown(zones, hosts, tuple(there[: MAX_ZONES + 1]), classes, have, _largest(columns, request))


def merge_unknown(cells: Iterable[Unknown]) -> Unknown:
    """Return what is unknown in every cell, with the first zones and the classes of all cells."""
    found = list(cells)
    if not found:
        return Unknown()
    zones = frozenset.intersection(*(one.unknown_zones for one in found))
    there = sorted({zone for one in found for zone in one.zones}) if zones else []
    classes = frozenset.intersection(*(one.unknown_classes for one in found))
    have = frozenset[str]().union(*(one.classes for one in found)) if classes else frozenset[str]()
    hosts = frozenset.intersection(*(one.unknown_hosts for one in found))
    too_much = set[str]().union(*(one.largest for one in found))
    too_much = {name for name in too_much if all(name in one.largest or name in one.unknown_classes for one in found)}
    largest = {name: max(one.largest.get(name, 0) for one in found) for name in sorted(too_much)}
    return Unknown(zones, hosts, tuple(there[: MAX_ZONES + 1]), classes, have, largest)


def _largest(columns: Columns, request: Request) -> dict[str, int]:
    """Return the most that any host has of the classes of which one place needs more; shared pools may have it, too."""
    shared = {name for pool in columns.declared.pools.values() for name in pool.slots}
    found: dict[str, int] = {}
    for name, amount in sorted(demand(request).items()):
        if name not in shared and _has(columns, name):
            most = int(np.max(room(columns, name, ALL_ROWS)[0], where=columns.present, initial=0))
            if most < amount:
                found[name] = most
    return found


def _has(columns: Columns, name: str) -> bool:
    """Return whether a host or a shared pool has a class, whether or not anything of it is left."""
    if any(name in pool.slots for pool in columns.declared.pools.values()):
        return True
    return any(columns.capacity[slot].any() for slot in (name, *columns.pool_slots(name)))


def _classes(columns: Columns) -> frozenset[str]:
    of_hosts = {split_slot(slot)[1] for slot in columns.capacity if columns.capacity[slot].any()}
    return frozenset(of_hosts.union(*(pool.slots for pool in columns.declared.pools.values())))
