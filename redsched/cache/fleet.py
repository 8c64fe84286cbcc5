"""What a cell's hosts have, and what is left of it, by zone and class: the figures behind the fleet's metrics.

They are computed from the columns, in steps of a few milliseconds for 100,000 hosts. The steps may see different states
of the columns: the figures hold for the hosts that do not change meanwhile.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import DISABLED, DRAINING, Columns
from redsched.model.hosts import ListedStatus
from redsched.model.validation import split_slot
from redsched.store.codec.fields import WRITTEN_OFF

MAX_ROOMS = 256
"""The most zones times classes. With more, the zones are not told apart; then further classes are left out."""
ALL_ZONES = "*"
"""The zone of all classes of a cell with too many zones. No zone has this name."""
UNREADY = ("down", "unattested", "disabled", "draining")
"""The reasons for which a host takes no claims of any kind, in the order of the filters."""
STATUSES = (ListedStatus.LOST.value, *UNREADY, ListedStatus.ENABLED.value)
"""The statuses of hosts: each host has the first that applies to it."""
ENABLED_STATUS = len(STATUSES) - 1
ESSENTIAL = ("VCPU", "MEMORY_MB")
"""The classes of which nearly all claims take some."""
FAILING = 3
"""From how many failures since the last success a host counts as failing."""

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClassUsage:
    """One class in one zone, in units of the class.

    `capacity`, `claimed`, `external` (without what is kept) and `kept` are of all hosts that were not written off;
    `free`, `largest` and `stranded` of those that take claims. `largest` is the largest amount that one slot of one
    host has free. `stranded` is the part of `free` on hosts that lack VCPU or memory for an average claim.
    """

    capacity: int
    claimed: int
    external: int
    kept: int
    free: int
    largest: int
    stranded: int


@dataclass(frozen=True, slots=True)
class FleetUsage:
    """The hosts of one cell: `classes` by zone and class, `hosts` and their `claims` by STATUSES.

    `starting` counts the claims that are not active yet, `reserved` the hosts reserved for requests that wait, and
    `failing` the hosts on which at least FAILING claims in a row have failed. `over_capacity` counts the hosts, without
    those that were written off, and `pools_over_capacity` the shared pools whose claims hold more of a slot than there
    is; `broken_groups` the server groups whose hard policy their members break, those that are leaving included. Zones
    are `*` if they are too many.
    """

    classes: Mapping[tuple[str, str], ClassUsage]
    hosts: Mapping[str, int]
    claims: Mapping[str, int]
    starting: int
    reserved: int
    failing: int
    over_capacity: int
    pools_over_capacity: int
    broken_groups: int


def fleet_steps(columns: Columns) -> Generator[None, None, FleetUsage]:
    """Return the usage of a cell, after yielding between the steps of finding it."""
    rows = np.flatnonzero(columns.present)
    statuses = _statuses(columns)[rows]
    hosts = np.bincount(statuses, minlength=len(STATUSES)).tolist()
    claims = np.bincount(statuses, weights=columns.claims[rows], minlength=len(STATUSES)).tolist()
    over = yield from _over(columns, rows[statuses != 0])
    classes = yield from _classes(columns, rows[statuses != 0], statuses[statuses != 0])
    broken = yield from _broken_groups(columns)
    return FleetUsage(
        classes,
        dict(zip(STATUSES, hosts, strict=True)),
        dict(zip(STATUSES, map(int, claims), strict=True)),
        int(columns.starting[rows].sum()),
        len(columns.reserved.of_others("")),
        int((columns.failures[rows] >= FAILING).sum()),
        over,
        sum(any(one.claimed > one.capacity for one in pool.slots.values()) for pool in columns.declared.pools.values()),
        broken,
    )


def _statuses(columns: Columns) -> _Numbers:
    """Return the index in STATUSES of each row's status."""
    applies = (
        columns.epochs.codes == columns.epochs.code(WRITTEN_OFF),
        ~columns.alive,
        ~columns.attested,
        columns.status == DISABLED,
        columns.status == DRAINING,
    )
    return np.select(applies, range(len(applies)), ENABLED_STATUS).astype(np.int64)


def _over(columns: Columns, rows: _Numbers) -> Generator[None, None, int]:
    """Return the number of rows of which a slot has less than is claimed of it."""
    over = np.zeros(len(rows), np.bool_)
    for slot in list(columns.claimed):
        over |= columns.claimed[slot][rows] > columns.capacity[slot][rows]
        yield
    return int(over.sum())


def _broken_groups(columns: Columns) -> Generator[None, None, int]:
    """Return the number of server groups whose hard policy is broken."""
    broken = 0
    for state in list(columns.declared.groups.values()):
        broken += state.declared and bool(state.group.breach(state.members, state.counts(state.group.by)))
        yield  # a group may be removed meanwhile
    return broken


def _classes(
    columns: Columns, rows: _Numbers, statuses: _Numbers
) -> Generator[None, None, dict[tuple[str, str], ClassUsage]]:
    slots: dict[str, list[str]] = {}
    for slot in columns.capacity:
        slots.setdefault(split_slot(slot)[1], []).append(slot)
    names, zones = _zones(columns, rows, len(slots))
    takes = statuses == ENABLED_STATUS
    per_class = dict[str, _PerRow]()
    for name, of in list(slots.items())[:MAX_ROOMS]:
        per_class[name] = _PerRow(len(rows))
        for slot in of:
            per_class[name].add(columns, slot, rows, takes)
            yield
    kept = _kept(columns, rows, zones)
    lacking = _lacking(per_class, int(columns.claims[rows].sum()), len(rows))
    found: dict[tuple[str, str], ClassUsage] = {}
    for name, one in per_class.items():
        sums = [_by_zone(zones, each, len(names)) for each in (one.capacity, one.claimed, one.external, one.free)]
        stranded = _by_zone(zones, one.free * lacking, len(names))
        largest = np.zeros(len(names), np.int64)
        np.maximum.at(largest, zones, one.largest)
        for index, zone in enumerate(names):
            capacity, claimed, external, free = (each.item(index) for each in sums)
            if capacity or claimed:
                keeps = kept.get((index, name), 0)
                found[zone, name] = ClassUsage(
                    capacity, claimed, external - keeps, keeps, free, int(largest[index]), int(stranded[index])
                )
        yield
    return found


class _PerRow:
    """The amounts of one class, over all of its slots, for each of some rows."""

    def __init__(self, rows: int) -> None:
        self.capacity, self.claimed, self.external, self.free, self.largest = (
            np.zeros(rows, np.int64) for _ in range(5)
        )

    def add(self, columns: Columns, slot: str, rows: _Numbers, takes: NDArray[np.bool_]) -> None:
        """Add a slot. `takes`: which of the rows take claims."""
        capacity, claimed, external = (
            family[slot][rows] for family in (columns.capacity, columns.claimed, columns.external)
        )
        free = np.maximum(capacity - claimed - external, 0) * takes
        self.capacity += capacity
        self.claimed += claimed
        self.external += external
        self.free += free
        np.maximum(self.largest, free, out=self.largest)


def _lacking(per_class: Mapping[str, _PerRow], claims: int, rows: int) -> NDArray[np.bool_]:
    """Return which rows lack VCPU or memory for an average claim of the cell; of a cell without claims, for 1."""
    lacking = np.zeros(rows, np.bool_)
    for name in ESSENTIAL:
        one = per_class.get(name)
        if one is not None:
            average = int(one.claimed.sum()) // claims if claims else 0
            lacking |= (one.capacity > 0) & (one.free < max(1, average))
    return lacking


def _zones(columns: Columns, rows: _Numbers, classes: int) -> tuple[list[str], _Numbers]:
    """Return the zones of the rows, and for each row the index of its zone."""
    codes = columns.zones.codes[rows] + 1
    held = np.flatnonzero(np.bincount(codes, minlength=1))
    if len(held) * classes > MAX_ROOMS:
        return [ALL_ZONES], np.zeros(len(rows), np.int64)
    texts = columns.zones.by_code
    return [texts[code - 1] if code else "" for code in held.tolist()], np.searchsorted(held, codes).astype(np.int64)


def _kept(columns: Columns, rows: _Numbers, zones: _Numbers) -> dict[tuple[int, str], int]:
    """Return what is kept for requests that wait, by the index of a zone and by class."""
    found: dict[tuple[int, str], int] = {}
    for row in columns.reserved.of_others(""):
        kept, place = columns.reserved.get(row), int(np.searchsorted(rows, row))
        if kept is None or place == len(rows) or rows[place] != row:
            continue
        for slot, amount in kept.amounts.items():
            key = int(zones[place]), split_slot(slot)[1]
            found[key] = found.get(key, 0) + amount
    return found


def _by_zone(zones: _Numbers, amounts: _Numbers, number: int) -> _Numbers:
    return np.bincount(zones, weights=amounts, minlength=number).astype(np.int64)
