"""Summarize the columns of a cell, step by step, so that other work can run in between.

The steps may see different states of the columns: a summary holds for the hosts that do not change while it is made.
"""

from collections.abc import Generator, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import DISABLED, DRAINING, Columns
from redsched.model.validation import split_slot
from redsched.store.codec.summary import (
    AGGREGATES,
    ALL_ZONES,
    CLASSES,
    TRAITS,
    UNREADY,
    WITH_VCPU,
    CellSummary,
    Room,
)

MAX_ROOMS = 256
"""The most zones times classes. With more, the zones are not told apart; then further classes are left out."""
MAX_NAMES = 128
"""The most traits, and the most aggregates."""
_LEVELS = 55
"""Levels of an amount: 0 for none, else the number of its binary digits."""

Amounts = NDArray[np.int64]


class Summarizing:
    """A summary in the making. `steps` makes it; `summary` returns it once all steps are done."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._rooms: dict[tuple[str, str], Room] = {}
        self._traits: dict[str, int] = {}
        self._aggregates: dict[str, int] = {}
        self._cut: set[str] = set()
        self._hosts = len(columns)
        self._unready: dict[str, int] = {}
        self._rows = self._ready()
        self._slots = self._slots_by_class()
        self._zones, self._zone_of = self._zones_of_rows()
        self._vcpu_levels = np.zeros(len(self._rows), np.int64)

    def steps(self) -> Generator[None, None, None]:
        """Make the summary in steps of a few milliseconds for 100,000 hosts each."""
        for name, slots in self._slots.items():
            total, largest = np.zeros(len(self._rows), np.int64), np.zeros(len(self._rows), np.int64)
            for slot in slots:
                left = self._free(slot)
                np.maximum(largest, left, out=largest)
                total += left
                yield
            self._add_rooms(name, total, largest)
            yield
        yield from self._count_traits()
        yield from self._count_aggregates()

    def summary(self, epoch: str = "", seq: int = 0, entry: str = "0-0", at_ms: int = 0) -> CellSummary:
        """Return the summary as of this position in the feed."""
        return CellSummary(
            epoch,
            seq,
            entry,
            at_ms,
            self._hosts,
            self._unready,
            self._rooms,
            _shared(self._columns),
            self._traits,
            self._aggregates,
            frozenset(self._cut),
        )

    def _ready(self) -> NDArray[np.intp]:
        """Return the rows of the hosts that take claims, and count the others."""
        columns, left = self._columns, self._columns.present.copy()
        passes = columns.alive, columns.attested, columns.status != DISABLED, columns.status != DRAINING
        for name, passing in zip(UNREADY, passes, strict=True):
            self._unready[name] = int((left & ~passing).sum())
            left &= passing
        return np.flatnonzero(left)

    def _slots_by_class(self) -> dict[str, list[str]]:
        slots: dict[str, list[str]] = {WITH_VCPU: []}  # the first, because the others are given beside it
        for slot in self._columns.capacity:
            slots.setdefault(split_slot(slot)[1], []).append(slot)
        if len(slots) > MAX_ROOMS:
            self._cut.add(CLASSES)
        return dict(list(slots.items())[:MAX_ROOMS])

    def _zones_of_rows(self) -> tuple[list[str], Amounts]:
        """Return the zones of the rows, and for each row the index of its zone."""
        codes = self._columns.zones.codes[self._rows] + 1
        held = np.flatnonzero(np.bincount(codes, minlength=1))
        if len(held) * len(self._slots) > MAX_ROOMS:
            return [ALL_ZONES], np.zeros(len(self._rows), np.int64)
        texts = self._columns.zones.by_code
        names = [texts[code - 1] if code else "" for code in held.tolist()]
        return names, np.searchsorted(held, codes).astype(np.int64)

    def _free(self, slot: str) -> Amounts:
        columns, rows = self._columns, self._rows
        left = columns.capacity[slot][rows] - columns.claimed[slot][rows] - columns.external[slot][rows]
        free: Amounts = np.maximum(left, 0)
        return free

    def _add_rooms(self, name: str, total: Amounts, largest: Amounts) -> None:
        zones, levels = len(self._zones), _levels(largest)
        totals = np.bincount(self._zone_of, weights=total, minlength=zones)
        counts = np.bincount(self._zone_of * _LEVELS + levels, minlength=zones * _LEVELS).reshape(zones, _LEVELS)
        at_least = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        if name == WITH_VCPU:
            self._vcpu_levels = levels
        table = np.zeros(zones * _LEVELS, np.int64)
        np.maximum.at(table, self._zone_of * _LEVELS + self._vcpu_levels, largest)
        beside = np.maximum.accumulate(table.reshape(zones, _LEVELS)[:, ::-1], axis=1)[:, ::-1]
        for index, zone in enumerate(self._zones):
            steps = {} if name == WITH_VCPU else _steps(beside[index])
            most = int(beside[index, 0])
            self._rooms[zone, name] = Room(int(totals[index]), most, _steps(at_least[index]), steps)

    def _count_traits(self) -> Iterator[None]:
        by_name: dict[str, list[str]] = {}
        for key in self._columns.traits:
            by_name.setdefault(split_slot(key)[1], []).append(key)
        # A place may also be a shared pool.
        found = {trait: 1 for pool in self._columns.declared.pools.values() for trait in pool.traits}
        for name, keys in by_name.items():
            have = np.zeros(len(self._rows), np.bool_)
            for key in keys:
                have |= self._columns.traits[key][self._rows]
                yield
            if count := int(have.sum()):
                found[name] = count
        self._traits = self._bounded(found, TRAITS)

    def _count_aggregates(self) -> Iterator[None]:
        found: dict[str, int] = {}
        for name in list(self._columns.aggregates):
            if count := int(self._columns.aggregates[name][self._rows].sum()):
                found[name] = count
            yield
        self._aggregates = self._bounded(found, AGGREGATES)

    def _bounded(self, counts: Mapping[str, int], part: str) -> dict[str, int]:
        if len(counts) > MAX_NAMES:
            self._cut.add(part)
        return dict(sorted(counts.items())[:MAX_NAMES])


def summarized(columns: Columns) -> CellSummary:
    """Return the summary of columns at once; for few hosts."""
    making = Summarizing(columns)
    for _ in making.steps():
        pass
    return making.summary()


def _shared(columns: Columns) -> dict[str, int]:
    found: dict[str, int] = {}
    for pool in columns.declared.pools.values():
        for name, slot in pool.slots.items():
            found[name] = max(found.get(name, 0), slot.capacity - slot.claimed - slot.external)
    return found


def _levels(amounts: Amounts) -> Amounts:
    """Return the number of binary digits of each amount."""
    return np.frexp(amounts.astype(np.float64))[1].astype(np.int64)


def _steps(by_level: Amounts) -> dict[int, int]:
    """Return values that fall with the level by power of two, each at the highest power that has it."""
    values = by_level.tolist()
    following = [*values[2:], 0]
    return {
        1 << (level - 1): value
        for level, (value, after) in enumerate(zip(values[1:], following, strict=True), 1)
        if value > after
    }
