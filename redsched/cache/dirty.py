"""Tracking of changed rows, so that readers need not rescan the whole fleet. Independent of hosts."""


class DirtyRows:
    """A counter of changes, with a bounded ring of the rows that changed.

    A reader keeps `now` and passes it to `since` later. The ring overwrites old entries, so a reader that is too late,
    or reads after all rows were marked, has to rescan every row.
    """

    def __init__(self, remembered: int = 4096) -> None:
        self.now = 0
        self._oldest = 0
        self._ring = [0] * remembered

    def mark(self, row: int) -> None:
        """Record that `row` changed."""
        self._ring[self.now % len(self._ring)] = row
        self.now += 1

    def mark_all(self) -> None:
        """Record that any row may have changed, or that rows were added to the arrays."""
        self.now += 1
        self._oldest = self.now

    def since(self, seen: int) -> set[int] | None:
        """Return the rows marked since `now` was `seen`; None means that any row may have changed."""
        if seen < self._oldest or self.now - seen > len(self._ring):
            return None
        return {self._ring[change % len(self._ring)] for change in range(seen, self.now)}
