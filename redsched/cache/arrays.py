"""The arrays that columns are made of: numeric columns by key, and texts held as codes. No field names here."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
Value = int | float | bool

_DIGITS = re.compile(r"([0-9]+)")

NO_TEXT = -1
UNHELD = -2
"""The code of a text that no row holds: equal to no row's code, so a comparison with it is an ordinary "no"."""

MAX_NAMES = 1024
"""Names whose keys in pools are remembered: requests may ask for any."""


class KeyedColumns(Generic[Scalar]):
    """Columns of one kind by key, such as the claimed amounts by slot; each of shape (rows,).

    A key that nobody ever set reads as a column of defaults, so a request may name anything.
    """

    def __init__(self, dtype: type[Scalar], default: Value, rows: int) -> None:
        self._dtype = dtype
        self.default = default
        self._columns: dict[str, NDArray[Scalar]] = {}
        self._in_pools: dict[str, tuple[str, ...]] = {}
        self._nothing = self._blank(rows)

    def __getitem__(self, key: str) -> NDArray[Scalar]:
        return self._columns.get(key, self._nothing)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def where_set(self, key: str, rows: Any) -> Any:
        """The values of some rows; the plain default for a key that nobody ever set: nothing is to be worked out."""
        column = self._columns.get(key)
        return self.default if column is None else column[rows]

    def at(self, row: int, keys: Iterable[str]) -> list[Any]:
        """The values of one row for these keys, as plain numbers: for many keys much faster than one by one."""
        get, default = self._columns.get, self.default
        if not self._columns:
            return [default for _ in keys]
        return [default if (column := get(key)) is None else column.item(row) for key in keys]

    def in_pools(self, name: str) -> tuple[str, ...]:
        """The keys that are this name in a pool, `<pool>/<name>`, in natural order."""
        found = self._in_pools.get(name)
        if found is None:
            found = tuple(sorted((key for key in self._columns if key.endswith(f"/{name}")), key=natural))
            if len(self._in_pools) >= MAX_NAMES:
                self._in_pools.clear()
            self._in_pools[name] = found
        return found

    def set(self, key: str, row: int, value: Value) -> None:
        """Set one value; the first one of a key makes its column."""
        column = self._columns.get(key)
        if column is None:
            if value == self.default or value != value:  # NaN, the default of metrics, is equal to nothing
                return
            column = self._columns[key] = self._blank(len(self._nothing))
            self._in_pools.clear()
        column[row] = value

    def clear(self, row: int) -> None:
        """Set every key of a row to the default."""
        for column in self._columns.values():
            column[row] = self.default

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self._nothing = self._blank(rows)
        for key, column in self._columns.items():
            self._columns[key] = grown(column, self._blank(rows))

    def _blank(self, rows: int) -> NDArray[Scalar]:
        return np.full(rows, self.default, self._dtype)


class TextColumn:
    """One text per row, held as codes (int32, NO_TEXT where there is none), so that comparing is comparing numbers.

    Codes that no row holds any longer are used again: look a text's code up for each comparison and never keep it.
    """

    def __init__(self, rows: int) -> None:
        self.codes = np.full(rows, NO_TEXT, np.int32)
        self._code: dict[str, int] = {}
        self._texts: list[str] = []
        self._holders: list[int] = []
        self._spare: list[int] = []

    def code(self, text: str) -> int:
        """Code of a text; UNHELD where no row has it."""
        return self._code.get(text, UNHELD)

    def text(self, row: int) -> str:
        """Text of a row; '' where there is none."""
        code = self.codes.item(row)
        return "" if code == NO_TEXT else self._texts[code]

    @property
    def by_code(self) -> Sequence[str]:
        """Texts by code; of a code that no row holds any longer, the last one that it stood for."""
        return self._texts

    def set(self, row: int, text: str) -> None:
        """Set the text of a row; '' for none."""
        old = self.codes.item(row)
        self.codes[row] = self._take(text) if text else NO_TEXT
        if old != NO_TEXT:
            self._give_back(old)

    def table(self, values: Mapping[str, int], other: int, none: int) -> NDArray[np.int64]:
        """A number for each row by its text: int64 of shape (rows,), `other` for texts that `values` does not name."""
        by_code = np.full(len(self._texts) + 1, other, np.int64)
        for text, value in values.items():
            if text in self._code:
                by_code[self._code[text]] = value
        by_code[NO_TEXT] = none
        found: NDArray[np.int64] = by_code[self.codes]
        return found

    def among(self, rows: NDArray[np.intp]) -> list[str]:
        """The texts that some of these rows have, each once."""
        held = np.bincount(self.codes[rows] + 1, minlength=1)
        return [self._texts[code] for code in (np.flatnonzero(held[1:])).tolist()]

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self.codes = grown(self.codes, np.full(rows, NO_TEXT, np.int32))

    def _take(self, text: str) -> int:
        code = self._code.get(text)
        if code is None:
            code = self._new_code(text)
        self._holders[code] += 1
        return code

    def _new_code(self, text: str) -> int:
        if self._spare:
            code = self._spare.pop()
            self._texts[code] = text
        else:
            code = len(self._texts)
            self._texts.append(text)
            self._holders.append(0)
        self._code[text] = code
        return code

    def _give_back(self, code: int) -> None:
        self._holders[code] -= 1
        if not self._holders[code]:
            del self._code[self._texts[code]]
            self._spare.append(code)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key by which gpu2 comes before gpu10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name))


def grown(column: NDArray[Scalar], blank: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return `blank`, the longer of the two, with its front filled from `column`."""
    blank[: len(column)] = column
    return blank
