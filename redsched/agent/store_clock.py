"""The store's time on this machine, also while the store cannot be reached.

Deadlines of claims are the store's times. Each reply says what time it was when the store sent it, so the store's clock
is at or past that when the reply arrives: of the replies of a minute, the one that was under way for the shortest time
counts. Between replies this machine's monotonic clock continues it, which nobody sets. A process that starts without
the store knows only how far the machine's own clock was from the store's, which the journal keeps.
"""

import time
from collections.abc import Callable

WINDOW_MS = 60_000
"""The time for which a reply counts although later ones imply an earlier time: clocks drift, and may be set back."""

KEEP_MS = 1000
"""The change of the distance between the two clocks that is worth a write to the journal."""


class StoreClock:
    """The clock of one cell's store. `wall_offset_ms`: the store's time less this machine's, as last journaled."""

    def __init__(
        self,
        wall_offset_ms: int,
        keep: Callable[[int], object],
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._wall_offset_ms = wall_offset_ms
        self._keep = keep
        self._monotonic_s, self._wall_s = monotonic_s, wall_s
        self._offset_ms: float | None = None
        self._noted_at_ms = 0.0

    def note(self, now_ms: int) -> None:
        """Record the store's time in a reply that has just arrived."""
        at_ms = self._monotonic_s() * 1000
        offset_ms = now_ms - at_ms
        is_old = at_ms - self._noted_at_ms > WINDOW_MS
        if self._offset_ms is not None and offset_ms < self._offset_ms and not is_old:
            return
        self._offset_ms, self._noted_at_ms = offset_ms, at_ms
        wall_offset_ms = now_ms - round(self._wall_s() * 1000)
        if abs(wall_offset_ms - self._wall_offset_ms) >= KEEP_MS:
            self._wall_offset_ms = wall_offset_ms
            self._keep(wall_offset_ms)

    def now_ms(self) -> int:
        """Return the store's time (Unix, ms)."""
        if self._offset_ms is None:
            return round(self._wall_s() * 1000) + self._wall_offset_ms
        return round(self._monotonic_s() * 1000 + self._offset_ms)
