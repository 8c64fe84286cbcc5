"""The mapping of hosts to rows of the columns. Rows of removed hosts are reused."""

from collections.abc import Collection
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import grown


class Rows:
    """Hosts by row. There are `size` rows; `present` (bool, of shape (size,)) marks those with a host."""

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self.present = np.zeros(self.size, np.bool_)
        self._rows: dict[str, int] = {}
        self._names: list[str] = [""] * self.size
        self._free_rows = list(range(self.size - 1, -1, -1))
        self._order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, host: object) -> bool:
        return host in self._rows

    def names(self) -> list[str]:
        """Return the hosts, sorted by name."""
        return sorted(self._rows)

    def names_in(self, wanted: NDArray[np.bool_]) -> list[str]:
        """Return the hosts of the rows that are True in `wanted` (of shape (size,)), sorted by name."""
        return sorted(self._names[row] for row in np.flatnonzero(wanted & self.present).tolist())

    def row(self, host: str) -> int | None:
        """Return the row of a host; None if it is unknown."""
        return self._rows.get(host)

    def rows_of(self, hosts: Collection[str]) -> NDArray[np.intp]:
        """Return the rows of many hosts, in their order; -1 for unknown ones."""
        return np.fromiter(map(self._rows.get, hosts, repeat(-1)), np.intp, len(hosts))

    def name(self, row: int) -> str:
        """Return the host of a row; '' if it has none."""
        return self._names[row]

    @property
    def order(self) -> NDArray[np.int64]:
        """The rank of each row's host among all names: int64 of shape (size,). Undefined for rows without a host."""
        if self._order is None:
            self._order = np.zeros(self.size, np.int64)
            self._order[[self._rows[name] for name in self.names()]] = np.arange(len(self._rows))
        return self._order

    def allocate(self, host: str) -> int:
        """Give a host that is unknown a row, whose values are the defaults."""
        if not self._free_rows:
            self._grow(self.size * 2)
        row = self._free_rows.pop()
        self._rows[host] = row
        self._names[row] = host
        self.present[row] = True
        self._order = None
        return row

    def _free_row(self, host: str) -> int | None:
        row = self._rows.pop(host, None)
        if row is not None:
            self.present[row] = False
            self._names[row] = ""
            self._free_rows.append(row)
            self._order = None
        return row

    def _grow(self, size: int) -> None:
        self.present = grown(self.present, np.zeros(size, np.bool_))
        self._names += [""] * (size - self.size)
        self._free_rows += range(size - 1, self.size - 1, -1)
        self.size = size
