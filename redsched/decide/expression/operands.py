"""The operands of a query: constants, and variables that stand for columns.

An operand is a number, a text, or either: a label is a text, but compared with a number it is the number in the text.
What a host lacks (a label, a metric, a zone) is NaN as a number and '' as a text.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import NO_TEXT, TextColumn
from redsched.cache.columns import Columns
from redsched.decide.conditions import number_of
from redsched.decide.fit import free_on
from redsched.decide.rules import Rows
from redsched.errors import InvalidRequest
from redsched.model import HostStatus
from redsched.model.validation import MAX_AMOUNT, SHARED_POOL, check_name, check_slot, shown

Numbers = Any
"""int64 or float64: a scalar for one row, else an array over the rows."""

STATUSES = (HostStatus.ENABLED, HostStatus.DISABLED, HostStatus.DRAINING)
"""The statuses in the order of their codes in `Columns.status`."""

HELP = (
    "use $free.CLASS, $capacity.CLASS, $claimed.CLASS or $external.CLASS (of a pool: $free.gpu0/CLASS), $label.KEY, "
    "$metric.NAME, $zone, $host, $status, $claims or $starting"
)


@dataclass(frozen=True, slots=True)
class Coded:
    """A text for each row: `codes(columns)` are indexes into `texts(columns)`; NO_TEXT means none."""

    codes: Callable[[Columns], NDArray[Any]]
    texts: Callable[[Columns], Sequence[str]]
    text: Callable[[Columns, int], str]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand, by its `name` in the query. It can be read in each form it has: `number`, `coded`, `text`.

    `number(columns, rows)` are numbers, `coded` texts of hosts; `text` is a constant.
    """

    name: str
    number: Callable[[Columns, Rows], Numbers] | None = None
    coded: Coded | None = None
    text: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether it can only be a number. A label may contain a number, but is a text too."""
        return self.number is not None and self.coded is None

    def values_text(self, columns: Columns, row: int) -> str:
        """Return the value of one host, as text."""
        if self.coded is not None:
            return self.coded.text(columns, row) or "none"
        value = None if self.number is None else self.number(columns, row).item()
        return (
            "none" if value is None or math.isnan(value) else f"{value:g}" if isinstance(value, float) else str(value)
        )


def operand(at: str, value: object) -> Operand:
    """Parse a constant or variable at location `at` of the query. Raises InvalidRequest if it is neither."""
    if isinstance(value, str):
        return _variable(at, value) if value.startswith("$") else Operand(shown(value), text=value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_AMOUNT:
        raise InvalidRequest(
            f"{at} compares {shown(value)}: use strings, numbers from -(2^53-1) to 2^53-1, or variables ({HELP})"
        )
    constant = np.float64(value) if isinstance(value, float) else np.int64(value)
    return Operand(str(value), number=lambda _columns, _rows: constant)


def _variable(at: str, name: str) -> Operand:
    kind, dot, key = name[1:].partition(".")
    try:
        if dot and kind in _KEYED:
            return _KEYED[kind](name, key)
    except InvalidRequest as error:
        raise InvalidRequest(f"{at}: {name[:80]!r}: {error.detail}") from None
    if dot or kind not in _SINGLE:
        raise InvalidRequest(f"{at}: unknown variable {name[:80]!r}: {HELP}")
    return _SINGLE[kind]


def _amount(name: str, key: str) -> Operand:
    kind = name[1:].partition(".")[0]
    if check_slot(key).startswith(SHARED_POOL):
        raise InvalidRequest("a shared pool belongs to no host: request an amount of it in resources")
    if kind == "free":
        return Operand(name, lambda columns, rows: free_on(columns, key, rows))
    return Operand(name, lambda columns, rows: columns.amounts[kind][key][rows])


def _metric(name: str, key: str) -> Operand:
    check_name("metric", key)
    return Operand(name, lambda columns, rows: columns.metrics[key][rows])


def _label(name: str, key: str) -> Operand:
    check_name("label", key)

    def numbers(columns: Columns, rows: Rows) -> Numbers:
        texts = columns.labels.get(key)
        if texts is None:
            return np.full(columns.size, np.nan)[rows]
        if isinstance(rows, int):
            return np.float64(number_of(texts.text(rows)))
        return np.array([*map(number_of, texts.by_code), np.nan])[texts.codes[rows]]

    return Operand(name, numbers, _coded(lambda columns: columns.labels.get(key)))


def _coded(texts: Callable[[Columns], TextColumn | None]) -> Coded:
    def codes(columns: Columns) -> NDArray[Any]:
        found = texts(columns)
        return np.full(columns.size, NO_TEXT) if found is None else found.codes

    def by_code(columns: Columns) -> Sequence[str]:
        found = texts(columns)
        return () if found is None else found.by_code

    def text(columns: Columns, row: int) -> str:
        found = texts(columns)
        return "" if found is None else found.text(row)

    return Coded(codes, by_code, text)


_KEYED: dict[str, Callable[[str, str], Operand]] = {
    "free": _amount,
    "capacity": _amount,
    "claimed": _amount,
    "external": _amount,
    "label": _label,
    "metric": _metric,
}
_SINGLE = {
    "zone": Operand("$zone", coded=_coded(lambda columns: columns.zones)),
    "host": Operand(
        "$host",
        coded=Coded(
            lambda columns: np.arange(columns.size),
            lambda columns: [columns.name(row) for row in range(columns.size)],
            lambda columns, row: columns.name(row),
        ),
    ),
    "status": Operand(
        "$status",
        coded=Coded(
            lambda columns: columns.status,
            lambda _columns: STATUSES,
            lambda columns, row: STATUSES[columns.status[row]],
        ),
    ),
    "claims": Operand("$claims", lambda columns, rows: columns.claims[rows]),
    "starting": Operand("$starting", lambda columns, rows: columns.starting[rows]),
}
