"""Zones that a request names and no host is in: a mistyped name, or a zone whose agents have not reported yet."""

from collections.abc import Iterable

import numpy as np

from redsched.cache.arrays import UNHELD
from redsched.cache.columns import Columns
from redsched.decide.result import MAX_ZONES, UnknownZones
from redsched.model import Request


def unknown_zones(columns: Columns, request: Request) -> UnknownZones:
    """Return the zones of a request that no host of the cell is in, and the first zones that there are."""
    unknown = frozenset(zone for zone in request.zones if columns.zones.code(zone) == UNHELD)
    if not unknown:
        return UnknownZones()
    zones = columns.zones.among(np.flatnonzero(columns.present))
    return UnknownZones(unknown, tuple(sorted(zones)[: MAX_ZONES + 1]))


def merge_unknown_zones(cells: Iterable[UnknownZones]) -> UnknownZones:
    """Return the zones that are unknown in every cell, and the first zones of all cells."""
    found = list(cells)
    unknown = frozenset.intersection(*(one.unknown for one in found)) if found else frozenset()
    zones = sorted({zone for one in found for zone in one.zones}) if unknown else []
    return UnknownZones(unknown, tuple(zones[: MAX_ZONES + 1]))
