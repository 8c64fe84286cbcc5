"""The best hosts of a shape, sorted and updated row by row, so that a repeated decision need not scan the fleet."""

from bisect import bisect_left, insort

Entry = tuple[float, str, int]
"""(-score, host, row): sorts as hosts are picked, by highest score and then by name."""

_BEFORE_ALL: Entry = (float("-inf"), "", -1)


class TopHosts:
    """The entries of all fitting rows up to some position in the order, and none beyond it.

    A row that becomes better than the last entry is inserted, one that becomes worse is removed; what lies beyond is
    unknown. So the list shrinks as its hosts fill up, and `first` returns None when it is too short.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._by_row: dict[int, Entry] = {}
        # Nothing is known until the first `fill`.
        self._last: Entry | None = _BEFORE_ALL
        self._room = 0

    @property
    def is_new(self) -> bool:
        """Whether it was never filled."""
        return self._last is _BEFORE_ALL

    def fill(self, entries: list[Entry], complete: bool) -> None:
        """Replace all entries by the best ones, in order; `complete` means that no other rows fit."""
        self._entries = entries
        self._by_row = {entry[2]: entry for entry in entries}
        self._last = None if complete else entries[-1]
        self._room = 2 * len(entries) + 64

    def update(self, row: int, entry: Entry | None) -> None:
        """Record that a row has changed; `entry` is None if it no longer fits."""
        old = self._by_row.get(row)
        if old == entry:
            return
        if old is not None:
            del self._entries[bisect_left(self._entries, old)], self._by_row[row]
        if entry is not None and (self._last is None or entry <= self._last):
            insort(self._entries, entry)
            self._by_row[row] = entry
            self._trim()

    def first(self, count: int) -> list[Entry] | None:
        """Return the best `count`, or all that fit if they are fewer; None if that is unknown and `fill` is needed."""
        if len(self._entries) < count and self._last is not None:
            return None
        return self._entries[:count]

    def _trim(self) -> None:
        if len(self._entries) <= self._room:
            return
        for entry in self._entries[self._room // 2 :]:
            del self._by_row[entry[2]]
        del self._entries[self._room // 2 :]
        self._last = self._entries[-1]
