"""One cell's hosts as numpy columns, one row per host, fed with the flat fields that the store's hashes and feed speak.

Deciding reads the arrays; snapshot and feed write through put, patch and remove; nothing here does I/O. There is no
object per host. Every array has the same length, `size`; rows without a host are not `present` and hold defaults.

A field that cannot be read as what it should be (someone wrote into the store by hand) reads as the value that lets
nothing in, so that one bad host costs that host and not the scheduler.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import Family, Texts, grown
from redsched.cache.compare import difference
from redsched.cache.dirty import DirtyRows
from redsched.names import MAX_AMOUNT, whole

ENABLED, DISABLED, DRAINING = 0, 1, 2
_STATUS = {"enabled": ENABLED, "disabled": DISABLED, "draining": DRAINING}
NO_LIMIT = MAX_AMOUNT

# What a field without a value means, and what one with an unreadable value is taken for.
_AMOUNTS = {
    "capacity": (0, 0),
    "claimed": (0, MAX_AMOUNT),
    "external": (0, MAX_AMOUNT),
    "min": (1, MAX_AMOUNT),
    "max": (NO_LIMIT, 0),
    "step": (1, MAX_AMOUNT),
}


class Columns:
    """The hosts of one cell. All arrays have the shape (size,); amounts are int64 in the unit of the slot's class.

    `present`, `alive`, `attested` (bool), `status` (int8: ENABLED, DISABLED, DRAINING), `versions` (int64), `zones`
    (Texts); families by slot: `capacity claimed external minimum maximum step` (int64); `traits` by name (bool),
    `labels` by key (Texts), `metrics` by key (float64, NaN where absent). `dirty` tells which rows changed.
    """

    def __init__(self, size: int = 64) -> None:
        self.size = max(1, size)
        self.epoch = ""
        self.dirty = DirtyRows()
        self.present = np.zeros(self.size, np.bool_)
        self.alive = np.zeros(self.size, np.bool_)
        self.attested = np.zeros(self.size, np.bool_)
        self.status = np.full(self.size, DISABLED, np.int8)
        self.versions = np.zeros(self.size, np.int64)
        self.zones = Texts(self.size)
        self.epochs = Texts(self.size)
        self.amounts = {kind: Family(np.int64, default, self.size) for kind, (default, _) in _AMOUNTS.items()}
        self.traits = Family(np.bool_, False, self.size)
        self.metrics = Family(np.float64, np.nan, self.size)
        self.labels: dict[str, Texts] = {}
        self._name_families()
        self._rows: dict[str, int] = {}
        self._names: list[str] = [""] * self.size
        self._spare = list(range(self.size - 1, -1, -1))
        self._order: NDArray[np.int64] | None = None

    def _name_families(self) -> None:
        self.capacity, self.claimed, self.external = (
            self.amounts[kind] for kind in ("capacity", "claimed", "external")
        )
        self.minimum, self.maximum, self.step = (self.amounts[kind] for kind in ("min", "max", "step"))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, host: object) -> bool:
        return host in self._rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and not self.difference(other)

    __hash__ = None  # type: ignore[assignment]  # it changes all the time

    def names(self) -> list[str]:
        """Hosts in the order of their names."""
        return sorted(self._rows)

    def names_where(self, zone: str | None, status: str | None) -> list[str]:
        """Hosts of a zone and with a status, in the order of their names; None: of any."""
        wanted = self.present.copy()
        if zone is not None:
            wanted &= self.zones.codes == self.zones.code(zone)
        if status is not None:
            wanted &= self.status == _STATUS[status]
        return sorted(self._names[row] for row in np.flatnonzero(wanted).tolist())

    def row(self, host: str) -> int | None:
        """Row of a host; None where it is not known."""
        return self._rows.get(host)

    def name(self, row: int) -> str:
        """Host of a row; '' where there is none."""
        return self._names[row]

    def version(self, host: str) -> int | None:
        """Version of a host; None where it is not known."""
        row = self._rows.get(host)
        return None if row is None else self.versions.item(row)

    @property
    def order(self) -> NDArray[np.int64]:
        """int64 of shape (size,): the place of each row's host among all names; meaningless for rows without one."""
        if self._order is None:
            self._order = np.zeros(self.size, np.int64)
            self._order[[self._rows[name] for name in self.names()]] = np.arange(len(self._rows))
        return self._order

    # Writing

    def put(self, host: str, fields: Mapping[str, str]) -> None:
        """Replace a host whole by the fields of its hashes `host` and `facts` together; a new host gets a row."""
        row = self._rows.get(host)
        if row is None:
            row = self._new_row(host)
        else:
            self._clear(row)
        self._apply(row, fields)

    def patch(self, host: str, fields: Mapping[str, str]) -> None:
        """Set changed fields (with `version` among them) to new absolute values; '' means that the field is gone.

        Raises KeyError for a host that is not known: read it whole and put it.
        """
        self._apply(self._rows[host], fields)

    def remove(self, host: str) -> None:
        """Forget a host; nothing happens where it is not known."""
        row = self._rows.pop(host, None)
        if row is None:
            return
        self._clear(row)
        self.present[row] = False
        self._names[row] = ""
        self._spare.append(row)
        self._order = None
        self.dirty.mark(row)

    def set_epoch(self, epoch: str) -> None:
        """Set the cell's epoch. A host is attested only where its own `epoch` is the same."""
        if epoch == self.epoch:
            return
        self.epoch = epoch
        self.attested = self.present & (self.epochs.codes == self.epochs.code(epoch))
        self.dirty.mark_all()

    def claimed_from_reply(
        self, host: str, claimed: Mapping[str, int], version: int, epoch: str, written: bool = True
    ) -> bool:
        """Take `claimed` (absolute amounts by slot) from the reply of a script; False where it must not be applied.

        Not applied: a reply of another epoch, one no newer than the row, a host that is not known. The version moves
        only by one, and only where the script has `written` the host: else the step is somebody else's change, of which
        the reply tells no more than what is claimed, and the feed has to bring the rest.
        """
        row = self._rows.get(host)
        if row is None or epoch != self.epoch or version <= self.versions.item(row):
            return False
        for slot, amount in claimed.items():
            self.claimed.set(slot, row, amount)
        if written and version == self.versions.item(row) + 1:
            self.versions[row] = version
        self.dirty.mark(row)
        return True

    def _apply(self, row: int, fields: Mapping[str, str]) -> None:
        for field, text in fields.items():
            kind, dot, key = field.partition(".")
            if dot:
                self._set_keyed(row, kind, key, text)
            elif kind in _SINGLE:
                _SINGLE[kind](self, row, text)
        self.dirty.mark(row)

    def _set_keyed(self, row: int, kind: str, key: str, text: str) -> None:
        if kind in _AMOUNTS:
            default, unreadable = _AMOUNTS[kind]
            least = 1 if kind == "step" else 0
            self.amounts[kind].set(key, row, whole(text, unreadable, least) if text else default)
        elif kind == "trait":
            self.traits.set(key, row, text == "1")
        elif kind == "metric":
            self.metrics.set(key, row, _number(text))
        elif kind == "label":
            self._set_label(row, key, text)

    def _set_label(self, row: int, key: str, text: str) -> None:
        if key not in self.labels:
            self.labels[key] = Texts(self.size)
        self.labels[key].set(row, text)

    def _set_version(self, row: int, text: str) -> None:
        self.versions[row] = whole(text, 0)

    def _set_epoch(self, row: int, text: str) -> None:
        self.epochs.set(row, text)
        self.attested[row] = bool(text) and text == self.epoch

    def _set_status(self, row: int, text: str) -> None:
        self.status[row] = _STATUS.get(text, DISABLED)

    def _set_alive(self, row: int, text: str) -> None:
        self.alive[row] = text == "1"

    def _set_zone(self, row: int, text: str) -> None:
        self.zones.set(row, text)

    # Rows

    def _new_row(self, host: str) -> int:
        if not self._spare:
            self._grow(self.size * 2)
        row = self._spare.pop()
        self._rows[host] = row
        self._names[row] = host
        self.present[row] = True
        self._order = None
        return row

    def _grow(self, size: int) -> None:
        self.present, self.alive, self.attested = (
            grown(flags, np.zeros(size, np.bool_)) for flags in (self.present, self.alive, self.attested)
        )
        self.status = grown(self.status, np.full(size, DISABLED, np.int8))
        self.versions = grown(self.versions, np.zeros(size, np.int64))
        for part in (*self._families(), self.zones, self.epochs, *self.labels.values()):
            part.grow(size)
        self._names += [""] * (size - self.size)
        self._spare += range(size - 1, self.size - 1, -1)
        self.size = size
        self.dirty.mark_all()

    def _clear(self, row: int) -> None:
        for setter in _SINGLE.values():
            setter(self, row, "")
        for family in self._families():
            family.clear(row)
        for texts in self.labels.values():
            texts.set(row, "")

    def _families(self) -> "tuple[Family[np.int64] | Family[np.bool_] | Family[np.float64], ...]":
        return (*self.amounts.values(), self.traits, self.metrics)

    def extract(self, rows: NDArray[np.intp]) -> "Columns":
        """Return a copy of some rows, numbered anew from 0, to try claims out on: change only `claimed` in it."""
        copy = Columns(len(rows))
        for flags in ("present", "alive", "attested", "status", "versions"):
            setattr(copy, flags, getattr(self, flags)[rows])
        copy.epoch = self.epoch
        copy.zones, copy.epochs = self.zones.extract(rows), self.epochs.extract(rows)
        copy.amounts = {kind: family.extract(rows) for kind, family in self.amounts.items()}
        copy.traits, copy.metrics = self.traits.extract(rows), self.metrics.extract(rows)
        copy.labels = {key: texts.extract(rows) for key, texts in self.labels.items()}
        copy._name_families()
        copy._names = [self._names[row] for row in rows.tolist()]
        copy._rows = {name: row for row, name in enumerate(copy._names) if name}
        copy._spare = []
        return copy

    def difference(self, other: "Columns") -> list[str]:
        """Readable differences from `other`, one for each value of each host; empty where both are the same."""
        return difference(self, other)


_SINGLE: dict[str, Callable[[Columns, int, str], None]] = {
    "version": Columns._set_version,
    "epoch": Columns._set_epoch,
    "status": Columns._set_status,
    "alive": Columns._set_alive,
    "zone": Columns._set_zone,
}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
