"""Which rows changed since a reader last looked, so that it need not look at the whole fleet. Knows no hosts."""


class DirtyRows:
    """A growing counter of changes and a bounded ring of the rows that they touched.

    A reader keeps `now` and asks `since` it later. The ring forgets: a reader that comes back too late, or after all
    rows were marked, is told to look at everything.
    """

    def __init__(self, remembered: int = 4096) -> None:
        self.now = 0
        self._oldest = 0
        self._ring = [0] * remembered

    def mark(self, row: int) -> None:
        """Note that `row` changed."""
        self._ring[self.now % len(self._ring)] = row
        self.now += 1

    def mark_all(self) -> None:
        """Note that every row may have changed, or that rows were added to the arrays."""
        self.now += 1
        self._oldest = self.now

    def since(self, seen: int) -> set[int] | None:
        """Rows marked since `now` was `seen`; None: look at all rows."""
        if seen < self._oldest or self.now - seen > len(self._ring):
            return None
        return {self._ring[change % len(self._ring)] for change in range(seen, self.now)}
