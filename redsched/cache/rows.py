"""Which host lies in which row of the columns. Rows of hosts that went are used again."""

from collections.abc import Collection
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from redsched.cache.arrays import grown


class Rows:
    """Hosts by row. `size` rows; `present` (bool, of shape (size,)) marks those that hold a host."""

    def __init__(self, size: int) -> None:
        self.size = max(1, size)
        self.present = np.zeros(self.size, np.bool_)
        self._rows: dict[str, int] = {}
        self._names: list[str] = [""] * self.size
        self._spare = list(range(self.size - 1, -1, -1))
        self._order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, host: object) -> bool:
        return host in self._rows

    def names(self) -> list[str]:
        """Hosts in the order of their names."""
        return sorted(self._rows)

    def names_in(self, wanted: NDArray[np.bool_]) -> list[str]:
        """Hosts of the rows that are True in `wanted` (of shape (size,)), in the order of their names."""
        return sorted(self._names[row] for row in np.flatnonzero(wanted & self.present).tolist())

    def row(self, host: str) -> int | None:
        """Row of a host; None where it is not known."""
        return self._rows.get(host)

    def rows_of(self, hosts: Collection[str]) -> NDArray[np.intp]:
        """Rows of many hosts, in their order; -1 for one that is not known."""
        return np.fromiter(map(self._rows.get, hosts, repeat(-1)), np.intp, len(hosts))

    def name(self, row: int) -> str:
        """Host of a row; '' where there is none."""
        return self._names[row]

    @property
    def order(self) -> NDArray[np.int64]:
        """int64 of shape (size,): the place of each row's host among all names; meaningless for rows without one."""
        if self._order is None:
            self._order = np.zeros(self.size, np.int64)
            self._order[[self._rows[name] for name in self.names()]] = np.arange(len(self._rows))
        return self._order

    def _take_row(self, host: str) -> int:
        if not self._spare:
            self._grow(self.size * 2)
        row = self._spare.pop()
        self._rows[host] = row
        self._names[row] = host
        self.present[row] = True
        self._order = None
        return row

    def _give_row_back(self, host: str) -> int | None:
        row = self._rows.pop(host, None)
        if row is not None:
            self.present[row] = False
            self._names[row] = ""
            self._spare.append(row)
            self._order = None
        return row

    def _grow(self, size: int) -> None:
        self.present = grown(self.present, np.zeros(size, np.bool_))
        self._names += [""] * (size - self.size)
        self._spare += range(size - 1, self.size - 1, -1)
        self.size = size
