"""Zones and hosts that a request names and no cell has: mistyped names, or hosts that have not reported yet."""

from collections.abc import Iterable

import numpy as np

from redsched.cache.arrays import UNHELD
from redsched.cache.columns import Columns
from redsched.decide.result import MAX_ZONES, Unknown
from redsched.model import Request


def unknown(columns: Columns, request: Request) -> Unknown:
    """Return the zones and hosts of a request that the cell does not have, and the first zones that there are."""
    zones = frozenset(zone for zone in request.zones if columns.zones.code(zone) == UNHELD)
    hosts = frozenset(host for host in request.hosts if host not in columns)
    there = sorted(columns.zones.among(np.flatnonzero(columns.present))) if zones else []
    return Unknown(zones, hosts, tuple(there[: MAX_ZONES + 1]))


def merge_unknown(cells: Iterable[Unknown]) -> Unknown:
    """Return what is unknown in every cell, and the first zones of all cells."""
    found = list(cells)
    if not found:
        return Unknown()
    zones = frozenset.intersection(*(one.zones for one in found))
    there = sorted({zone for one in found for zone in one.there}) if zones else []
    return Unknown(zones, frozenset.intersection(*(one.hosts for one in found)), tuple(there[: MAX_ZONES + 1]))
