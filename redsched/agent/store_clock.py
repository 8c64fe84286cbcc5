"""The store's time in the current epoch, on this machine.

The times that the store gives to claims are the store's. Each reply says what time it was when the store sent it, so
the store's clock is at or past that when the reply arrives: of the replies of a minute, the one that was under way for
the shortest time counts. Between replies the time since this machine's boot continues it.

A clock that jumps, or another server's, begins an epoch. Times of different epochs do not compare, so each epoch begins
anew, and how long work may still run is counted on the journal's own clock.
"""

from collections.abc import Callable

from redsched.agent.journal.steady_clock import up_ms
from redsched.model.tokens import is_newer

WINDOW_MS = 60_000
"""The time for which a reply counts although later ones imply an earlier time: clocks drift, and may be set back."""


class StoreClock:
    """The clock of one cell's store, which all hosts of the cell in this process share."""

    def __init__(self, now_ms: Callable[[], int] = up_ms) -> None:
        self._now_ms = now_ms
        self.epoch = ""
        """The newest epoch of which a reply has come."""
        self._offset_ms = 0
        self._noted_at_ms = 0

    def note(self, epoch: str, now_ms: int) -> None:
        """Record the epoch and the store's time in a reply that has just arrived."""
        if is_newer(self.epoch, epoch):
            return  # it was under way for long, or comes from a stale replica
        at_ms = self._now_ms()
        is_old = epoch != self.epoch or at_ms - self._noted_at_ms > WINDOW_MS
        if is_old or now_ms - at_ms >= self._offset_ms:
            self.epoch, self._offset_ms, self._noted_at_ms = epoch, now_ms - at_ms, at_ms

    def now_ms(self) -> int | None:
        """Return the store's time; None before the first reply."""
        return self._now_ms() + self._offset_ms if self.epoch else None
