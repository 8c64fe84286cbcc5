"""Arrays for columns: numeric columns by key, and texts stored as codes. Independent of field names."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
Value = int | float | bool

_DIGITS = re.compile(r"([0-9]+)")

NO_TEXT = -1
UNHELD = -2
"""The code of a text that no row has. It equals no row's code, so that comparisons with it are simply false."""

MAX_NAMES = 1024
"""The number of names whose pool keys are cached. Bounded, as requests may use any name."""


class KeyedColumns(Generic[Scalar]):
    """Columns of one kind by key, such as the claimed amounts by slot; each of shape (rows,).

    A key that was never set reads as a column of defaults, so that requests may use any key.
    """

    def __init__(self, dtype: type[Scalar], default: Value, rows: int) -> None:
        self._dtype = dtype
        self.default = default
        self._columns: dict[str, NDArray[Scalar]] = {}
        self._in_pools: dict[str, tuple[str, ...]] = {}
        self._unchecked: list[str] = []
        self._unset = self._blank(rows)

    def __getitem__(self, key: str) -> NDArray[Scalar]:
        return self._columns.get(key, self._unset)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, key: object) -> bool:
        return key in self._columns

    def __len__(self) -> int:
        return len(self._columns)

    def where_set(self, key: str, rows: Any) -> Any:
        """Return the values of some rows, or the scalar default for a key that was never set, to save work."""
        column = self._columns.get(key)
        return self.default if column is None else column[rows]

    def at(self, row: int, keys: Iterable[str]) -> list[Any]:
        """Return one row's values for these keys as plain Python numbers: for many keys much faster than one by one."""
        get, default = self._columns.get, self.default
        if not self._columns:
            return [default for _ in keys]
        return [default if (column := get(key)) is None else column.item(row) for key in keys]

    def in_pools(self, name: str) -> tuple[str, ...]:
        """Return the keys that are this name in a pool, `<pool>/<name>`, in natural order."""
        found = self._in_pools.get(name)
        if found is None:
            found = tuple(sorted((key for key in self._columns if key.endswith(f"/{name}")), key=natural))
            if len(self._in_pools) >= MAX_NAMES:
                self._in_pools.clear()
            self._in_pools[name] = found
        return found

    def set(self, key: str, row: int, value: Value) -> None:
        """Set one value. The first value of a key creates its column."""
        column = self._columns.get(key)
        if column is None:
            if value == self.default or value != value:  # NaN, the default of metrics, does not equal itself
                return
            column = self._create(key)
        column[row] = value

    def set_many(self, key: str, rows: NDArray[np.intp], values: Sequence[Value]) -> None:
        """Set the values of some rows, as `set` sets each."""
        column = self._columns.get(key)
        if column is None:
            if not any(value != self.default and value == value for value in set(values)):
                return
            column = self._create(key)
        column[rows] = values

    def add(self, key: str, rows: NDArray[np.intp], amount: int) -> None:
        """Add to the values of some rows, each of which occurs once."""
        column = self._columns.get(key)
        if column is None:
            column = self._create(key)
        column[rows] += amount  # type: ignore[misc]  # numpy stubs: not for every scalar

    def _create(self, key: str) -> NDArray[Scalar]:
        column = self._columns[key] = self._blank(len(self._unset))
        self._in_pools.clear()
        return column

    def clear(self, row: int) -> None:
        """Reset all keys of a row to the default."""
        for column in self._columns.values():
            column[row] = self.default

    def give_back(self, values: int) -> None:
        """Drop the columns without any value, of the next ones that have about this number of elements together.

        A key without a column reads the same. Called again and again, this checks all columns in turn.
        """
        if not self._unchecked:
            self._unchecked = list(self._columns)
        count = max(1, values // len(self._unset))
        keys, self._unchecked = self._unchecked[:count], self._unchecked[count:]
        blank = [key for key in keys if key in self._columns and self._is_blank(self._columns[key])]
        for key in blank:
            del self._columns[key]
        if blank:
            self._in_pools.clear()

    def _is_blank(self, column: NDArray[Scalar]) -> bool:
        if self.default != self.default:  # NaN does not equal itself
            return bool(np.isnan(column).all())
        return not (column != self.default).any()

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self._unset = self._blank(rows)
        for key, column in self._columns.items():
            self._columns[key] = grown(column, self._blank(rows))

    def _blank(self, rows: int) -> NDArray[Scalar]:
        return np.full(rows, self.default, self._dtype)


class TextColumn:
    """One text per row, stored as codes (int32, NO_TEXT for none), so that comparing texts is comparing numbers.

    Codes that no row uses any longer are reused, so look up the code of a text for each comparison, and never keep it.
    """

    def __init__(self, rows: int) -> None:
        self.codes = np.full(rows, NO_TEXT, np.int32)
        self._code: dict[str, int] = {}
        self._texts: list[str] = []
        self._holders: list[int] = []
        self._free_codes: list[int] = []

    def code(self, text: str) -> int:
        """Return the code of a text; UNHELD if no row has it."""
        return self._code.get(text, UNHELD)

    def text(self, row: int) -> str:
        """Return the text of a row; '' if it has none."""
        code = self.codes.item(row)
        return "" if code == NO_TEXT else self._texts[code]

    @property
    def by_code(self) -> Sequence[str]:
        """The texts by code. An unused code maps to the last text it stood for."""
        return self._texts

    def set(self, row: int, text: str) -> None:
        """Set the text of a row; '' removes it."""
        old = self.codes.item(row)
        self.codes[row] = self._acquire(text) if text else NO_TEXT
        if old != NO_TEXT:
            self._release(old)

    def set_new(self, rows: NDArray[np.intp], texts: Sequence[str]) -> None:
        """Set the texts of some rows that have none."""
        codes = {"": NO_TEXT}
        for text, count in Counter(filter(None, texts)).items():
            codes[text] = code = self._code[text] if text in self._code else self._new_code(text)
            self._holders[code] += count
        self.codes[rows] = [codes[text] for text in texts]

    def table(self, values: Mapping[str, int], other: int, none: int) -> NDArray[np.int64]:
        """Map each row's text to a number: int64 of shape (rows,).

        `other` is the number of texts that are not in `values`, `none` that of rows without a text.
        """
        by_code = np.full(len(self._texts) + 1, other, np.int64)
        for text, value in values.items():
            if text in self._code:
                by_code[self._code[text]] = value
        by_code[NO_TEXT] = none
        found: NDArray[np.int64] = by_code[self.codes]
        return found

    def among(self, rows: NDArray[np.intp]) -> list[str]:
        """Return the distinct texts of these rows."""
        held = np.bincount(self.codes[rows] + 1, minlength=1)
        return [self._texts[code] for code in (np.flatnonzero(held[1:])).tolist()]

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self.codes = grown(self.codes, np.full(rows, NO_TEXT, np.int32))

    def _acquire(self, text: str) -> int:
        code = self._code.get(text)
        if code is None:
            code = self._new_code(text)
        self._holders[code] += 1
        return code

    def _new_code(self, text: str) -> int:
        if self._free_codes:
            code = self._free_codes.pop()
            self._texts[code] = text
        else:
            code = len(self._texts)
            self._texts.append(text)
            self._holders.append(0)
        self._code[text] = code
        return code

    def _release(self, code: int) -> None:
        self._holders[code] -= 1
        if not self._holders[code]:
            del self._code[self._texts[code]]
            self._free_codes.append(code)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which gpu2 comes before gpu10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name))


def grown(column: NDArray[Scalar], blank: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return `blank`, the longer of the two, with its front filled from `column`."""
    blank[: len(column)] = column
    return blank
