"""One cell's hosts as numpy columns, one row per host, updated with the flat fields of the store's hashes and feed.

Deciding reads the arrays; snapshot and feed write through put, patch and remove. Nothing here does I/O, and there is no
object per host. Every array has the same length, `size`; rows without a host are not `present` and hold defaults.

A field with an invalid value (from a manual edit of the store) reads as the value that blocks placements, so that it
affects only its own host and not the scheduler.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import KeyedColumns, TextColumn, Value, grown
from redsched.cache.declared import Declared
from redsched.cache.derived import ALL_ROWS, Compute, Derived, Rows as RowIndex
from redsched.cache.dirty import DirtyRows
from redsched.cache.pool_tree import STRUCTURAL, PoolTree, pool_tree_of, tree_after
from redsched.cache.reserved import ABOUT, Reservation, ReservedRows
from redsched.cache.rows import Rows
from redsched.cache.slot_fields import AMOUNTS, amount_of
from redsched.model.hosts import ListedStatus
from redsched.model.one_of import OneOf, values_of
from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.model.workload import EMPTY
from redsched.store.codec.fields import WRITTEN_OFF
from redsched.store.codec.replies import HostUsage

ENABLED, DISABLED, DRAINING = 0, 1, 2
CHECKED_VALUES = 250_000
"""How many elements of each family of columns one call of `give_back` looks at: less than a millisecond in all."""
MAX_OF_INVENTORY = 64
"""The most results of `of_inventory` that are cached, because most have as many elements as the fleet has hosts."""
T = TypeVar("T")
_STATUS = {"enabled": ENABLED, "disabled": DISABLED, "draining": DRAINING}


def _count(text: str) -> int:
    return parse_int(text, MAX_AMOUNT) if text else 0


def _is_one(text: str) -> bool:
    return text == "1"


NUMBERS: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "version": ("versions", lambda text: parse_int(text, 0)),
    "status": ("status", lambda text: _STATUS.get(text, DISABLED)),
    "alive": ("alive", _is_one),
    "claims": ("claims", _count),
    "starting": ("starting", _count),
    # A preference and not a limit: as a very large number it would outweigh the failures of all other hosts.
    "failures": ("failures", lambda text: parse_int(text, 0)),
}
"""The arrays of fields without a key, by field: the attribute of `Columns`, and how a text is parsed."""


class Columns(Rows):
    """The hosts of one cell. All arrays have the shape (size,); amounts are int64 in the unit of the slot's class.

    `present`, `alive`, `attested` (bool), `status` (int8: ENABLED, DISABLED, DRAINING), `versions` (int64), `zones`
    (TextColumn); `claims` on the host, those of them that are `starting` (not active yet), and `failures` of hooks
    since the last success (int64); KeyedColumns by slot: `capacity claimed external minimum maximum step` (int64),
    where a pool's slot is `gpu0/CUSTOM_GPU_MILLI`; `ratios` by slot, the allocation ratio that its capacity includes
    (float64, 1 where absent); `traits` by name (bool), a pool's as `gpu0/CUSTOM_GPU_T4`;
    `aggregates` by name (bool), `labels` by key (TextColumn), `metrics` by key (float64, NaN where absent). `trees`
    (TextColumn) has one text for each distinct tree of pools: see `layout`. `external` includes what hosts keep for
    requests that wait for room; `kept` has that by row (see `without_reserved`). `declared` holds what
    operators declared for the cell, and `workload` what requests have asked for. `dirty` records which rows changed.
    `tentative` is above 0 while some rows hold tentative places, which `dirty` does not record.
    """

    def __init__(self, size: int = 64) -> None:
        super().__init__(size)
        self.epoch = ""
        self.dirty = DirtyRows()
        self.tentative = 0
        self.reserved = ReservedRows()
        self._derived = Derived()
        self._of_inventory: dict[Hashable, Any] = {}
        self.declared = Declared()
        self.workload = EMPTY
        self.alive = np.zeros(self.size, np.bool_)
        self.attested = np.zeros(self.size, np.bool_)
        self.status = np.full(self.size, DISABLED, np.int8)
        self.versions, self.claims, self.starting, self.failures = (np.zeros(self.size, np.int64) for _ in range(4))
        self.zones, self.epochs, self.trees = (TextColumn(self.size) for _ in range(3))
        self.amounts = {kind: KeyedColumns(np.int64, default, self.size) for kind, (default, _) in AMOUNTS.items()}
        self.ratios = KeyedColumns(np.float64, 1.0, self.size)
        self.traits = KeyedColumns(np.bool_, False, self.size)
        self.aggregates = KeyedColumns(np.bool_, False, self.size)
        self.metrics = KeyedColumns(np.float64, np.nan, self.size)
        self.labels: dict[str, TextColumn] = {}
        self._name_families()

    def label(self, key: str) -> TextColumn:
        """Return the texts of a label, creating its column."""
        if key not in self.labels:
            self.labels[key] = TextColumn(self.size)
        return self.labels[key]

    def _name_families(self) -> None:
        self.capacity, self.claimed, self.external = (
            self.amounts[kind] for kind in ("capacity", "claimed", "external")
        )
        self.minimum, self.maximum, self.step = (self.amounts[kind] for kind in ("min", "max", "step"))
        self.keyed: dict[str, tuple[KeyedColumns[Any], Callable[[str], Value]]] = {
            kind: (family, partial(amount_of, kind)) for kind, family in self.amounts.items()
        }
        self.keyed |= {"trait": (self.traits, _is_one), "aggregate": (self.aggregates, _is_one)}
        self.keyed |= {"metric": (self.metrics, _metric), "ratio": (self.ratios, _ratio)}

    def names_where(
        self,
        zone: OneOf = None,
        status: OneOf = None,
        trait: OneOf = None,
        aggregate: OneOf = None,
        label: OneOf = None,
    ) -> list[str]:
        """Return the hosts that match each filter by one of its values, sorted by name.

        `status` has listed statuses, and `label` texts of the form `key=value`.
        """
        filters: tuple[tuple[OneOf, Callable[[str], NDArray[np.bool_]]], ...] = (
            (zone, lambda name: np.equal(self.zones.codes, self.zones.code(name))),
            (status, self._with_status),
            (trait, self.traits.__getitem__),
            (aggregate, self.aggregates.__getitem__),
            (label, self._with_label),
        )
        wanted = self.present
        for values, matching in filters:
            if values:
                wanted = wanted & np.any([matching(one) for one in values_of(values)], axis=0)
        return self.names_in(wanted)

    def _with_label(self, pair: str) -> NDArray[np.bool_]:
        key, _, value = pair.partition("=")
        if key not in self.labels:
            return np.zeros(self.size, np.bool_)
        return np.equal(self.labels[key].codes, self.labels[key].code(value))

    def _with_status(self, status: str) -> NDArray[np.bool_]:
        is_lost: NDArray[np.bool_] = self.epochs.codes == self.epochs.code(WRITTEN_OFF)
        if status == ListedStatus.LOST:
            return is_lost
        return np.logical_and(~self.alive if status == ListedStatus.DOWN else self.status == _STATUS[status], ~is_lost)

    def is_written_off(self, host: str) -> bool:
        """Return whether a known host was written off by an operator and has not returned."""
        row = self._rows.get(host)
        return row is not None and self.epochs.text(row) == WRITTEN_OFF

    def version(self, host: str) -> int | None:
        """Return the version of a host; None if it is unknown."""
        row = self._rows.get(host)
        return None if row is None else self.versions.item(row)

    def derived(self, key: Hashable, compute: Compute, rows: RowIndex) -> Any:
        """Return what `compute` gives for these rows, from an array of all rows, to which you must not write.

        The array is cached by key, and computed again only for rows that have changed. Equal keys must come with
        functions that compute the same, from nothing but the columns at the rows that they are given.
        """
        if self.tentative:
            return compute(rows)
        array = self._derived.array(key, self.dirty, compute)
        return array if rows is ALL_ROWS else array[rows]

    def of_inventory(self, key: Hashable, compute: "Callable[[Columns], T]") -> T:
        """Return what `compute` gives (not None), cached by key until hosts come or go, or the capacity of one changes.

        Claims change nothing of it. Equal keys must come with functions that compute the same, from nothing but
        `present` and `capacity`. Do not write to an array that it returns.
        """
        found: T | None = self._of_inventory.get(key)
        if found is None:
            if len(self._of_inventory) >= MAX_OF_INVENTORY:
                self._of_inventory.clear()
            found = self._of_inventory[key] = compute(self)
        return found

    def inventory_changed(self) -> None:
        """Have `of_inventory` compute everything again."""
        self._of_inventory.clear()

    # Topology: where a host is, and its pools

    def texts(self, by: str) -> TextColumn | None:
        """Return the texts by which places are counted: `zone` or `label:<key>`; None if no host has such a label."""
        return self.zones if by == "zone" else self.labels.get(by.removeprefix("label:"))

    def domain(self, by: str, row: int) -> str:
        """Return the host, zone or label value (`host`, `zone`, `label:<key>`) of a row; '' if it has none."""
        if by == "host":
            return self.name(row)
        texts = self.texts(by)
        return "" if texts is None else texts.text(row)

    def layout(self, row: int) -> PoolTree:
        """Return the tree of a host's pools. Hosts with equal trees share one object."""
        return pool_tree_of(self.trees.text(row))

    def pool_slots(self, resource_class: str) -> tuple[str, ...]:
        """Return the slots of this class in pools (`gpu0/CUSTOM_GPU_MILLI`) of any host, in natural order.

        They are the keys of `capacity` and so on. Includes slots of hosts that are gone; a host without the slot has
        capacity 0.
        """
        return self.capacity.in_pools(resource_class)

    def pools_with_trait(self, trait: str) -> tuple[str, ...]:
        """Return the keys of `traits` that are this trait in pools (`gpu0/CUSTOM_GPU_T4`), in natural order."""
        return self.traits.in_pools(trait)

    # Writing

    def put(self, host: str, fields: Mapping[str, str]) -> None:
        """Replace all values of a host with the fields of both of its hashes, merged. Adds unknown hosts."""
        row = self._rows.get(host)
        if row is None:
            row = self.allocate(host)
        else:
            self._clear(row)
        self._apply(row, fields)

    def patch(self, host: str, fields: Mapping[str, str]) -> None:
        """Set changed fields (including `version`) to their new absolute values; '' deletes a field.

        Raises KeyError if the host is unknown: then read the whole host and `put` it.
        """
        self._apply(self._rows[host], fields)

    def remove(self, host: str) -> None:
        """Remove a host; do nothing if it is unknown."""
        row = self._free_row(host)
        if row is not None:
            self._clear(row)
            self.dirty.mark(row)

    @contextmanager
    def without_reserved(self, rows: Iterable[tuple[int, Reservation]]) -> Iterator[None]:
        """Inside the context, what these rows keep is free, as it is for the requests that may use it.

        Nothing inside may let other tasks run.
        """
        released = [(row, kept, kept.amounts) for row, kept in rows]
        listed = [(row, amounts) for row, _, amounts in released]
        self._add_external(listed, -1)
        for _, kept, _ in released:
            kept.amounts = {}
        try:
            yield
        finally:
            for _, kept, amounts in released:
                kept.amounts = amounts
            self._add_external(listed, 1)

    @contextmanager
    def released(self, row: int) -> Iterator[None]:
        """Inside the context, what a row keeps is free to tests of this row alone. No array is computed anew for it."""
        kept = [(slot, amount) for slot, amount in self.reserved.amounts(row).items()]
        self.tentative += 1
        for slot, amount in kept:
            self.external.set(slot, row, self.external[slot].item(row) - amount)
        try:
            yield
        finally:
            for slot, amount in kept:
                self.external.set(slot, row, self.external[slot].item(row) + amount)
            self.tentative -= 1

    def _add_external(self, amounts: Iterable[tuple[int, Mapping[str, int]]], sign: int) -> None:
        for row, by_slot in amounts:
            for slot, amount in by_slot.items():
                self.external.set(slot, row, self.external[slot].item(row) + sign * amount)
            self.dirty.mark(row)

    def set_epoch(self, epoch: str) -> None:
        """Set the cell's epoch. A host is attested only if its own `epoch` is the same."""
        if epoch == self.epoch:
            return
        self.epoch = epoch
        self.attested = self.present & (self.epochs.codes == self.epochs.code(epoch))
        self.dirty.mark_all()

    def has_attested(self, host: str) -> bool:
        """Return whether a host is known, and has attested to the cell's epoch."""
        row = self._rows.get(host)
        return row is not None and self.attested.item(row)

    def from_reply(self, seen: HostUsage, epoch: str, written: int = 1) -> bool:
        """Apply a script's reply about the claims on a host. Return False if it must not be applied.

        A reply is not applied if it is of another epoch or no newer than the row, or if the host is unknown. The
        version advances only if the script has made all changes since the row's: it has placed `written` claims on the
        host, each with a version. Otherwise the reply has only the claimed amounts of another change, and the feed has
        to supply the rest.
        """
        row = self._rows.get(seen.host)
        if row is None or epoch != self.epoch or seen.version <= self.versions.item(row):
            return False
        for slot, amount in seen.claimed.items():
            self.claimed.set(slot, row, amount)
        self.claims[row], self.starting[row] = seen.claims, seen.starting
        if written and seen.version == self.versions.item(row) + written:
            self.versions[row] = seen.version
        self.dirty.mark(row)
        return True

    def _apply(self, row: int, fields: Mapping[str, str]) -> None:
        structure = False
        for field, text in fields.items():
            kind, dot, key = field.partition(".")
            if dot:
                structure = structure or kind in STRUCTURAL
                self._set_keyed(row, kind, key, text)
            else:
                self._set_single(row, kind, text)
        if structure:
            self._build(row, fields)
        self.dirty.mark(row)

    def _build(self, row: int, fields: Mapping[str, str]) -> None:
        before = self.trees.text(row)
        after = tree_after(before, fields)
        if after != before:
            self.trees.set(row, after)

    def _set_keyed(self, row: int, kind: str, key: str, text: str) -> None:
        if kind == "external":
            self.external.set(key, row, amount_of(kind, text) + self.reserved.amount(row, key))
        elif kind == "kept":
            more = self.reserved.set_amount(row, key, text)
            self.external.set(key, row, self.external[key].item(row) + more)
        elif kind in self.keyed:
            family, parse = self.keyed[kind]
            family.set(key, row, parse(text))
            if kind == "capacity":
                self.inventory_changed()
        elif kind == "label":
            self.label(key).set(row, text)

    def _set_single(self, row: int, field: str, text: str) -> None:
        if field in NUMBERS:
            column, parse = NUMBERS[field]
            getattr(self, column)[row] = parse(text)
        elif field == "zone":
            self.zones.set(row, text)
        elif field in ABOUT:
            self.reserved.set_about(row, field, text)
        elif field == "epoch":
            self.epochs.set(row, text)
            self.attested[row] = bool(text) and text == self.epoch

    def give_back(self) -> None:
        """Drop columns that no host uses any longer, a few at each call: call it about once a second."""
        if not self.tentative:
            for family in self._families():
                family.give_back(CHECKED_VALUES)

    # Rows

    def allocate(self, host: str) -> int:
        """Give a host that is unknown a row, whose values are the defaults."""
        self.inventory_changed()
        return super().allocate(host)

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self.alive, self.attested = (grown(flags, np.zeros(size, np.bool_)) for flags in (self.alive, self.attested))
        self.status = grown(self.status, np.full(size, DISABLED, np.int8))
        self.versions, self.claims, self.starting, self.failures = (
            grown(numbers, np.zeros(size, np.int64))
            for numbers in (self.versions, self.claims, self.starting, self.failures)
        )
        for part in (*self._families(), self.zones, self.epochs, self.trees, *self.labels.values()):
            part.grow(size)
        self.dirty.mark_all()

    def _clear(self, row: int) -> None:
        self.inventory_changed()
        for field in (*NUMBERS, "zone", "epoch"):
            self._set_single(row, field, "")
        self.reserved.clear(row)
        for family in self._families():
            family.clear(row)
        for texts in (self.trees, *self.labels.values()):
            texts.set(row, "")

    def _families(self) -> "tuple[KeyedColumns[np.int64] | KeyedColumns[np.bool_] | KeyedColumns[np.float64], ...]":
        return (*self.amounts.values(), self.ratios, self.traits, self.aggregates, self.metrics)


def _metric(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _ratio(text: str) -> float:
    # Only a preference depends on it: an unreadable one counts as none.
    ratio = _metric(text)
    return ratio if 0 < ratio < float("inf") else 1.0
