"""A share of the time for work that can be left out."""

import time
from collections.abc import Callable

_MOST_SAVED_S = 0.5
"""The time whose share can be saved up, so that a burst after a pause has it too."""
_MOST_CHARGED_S = 1e-3
"""The most that is charged at once: a pause of the process in the middle of the work is not the work's."""


class Allowance:
    """Allows work until it has taken a share of the time (0.01: one percent), and again as time passes.

    Below its share it costs two reads of the clock. All times are in seconds.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._share = share
        self._clock = clock
        self._most = share * _MOST_SAVED_S
        self._left = self._most
        self._seen_s = self._began_s = clock()
        self.refused = 0
        """How often the work was not allowed."""

    def begin(self) -> bool:
        """Return whether the work may be done now. If it is, call `end` after it."""
        now = self._began_s = self._clock()
        self._left = min(self._most, self._left + (now - self._seen_s) * self._share)
        self._seen_s = now
        is_allowed = self._left > 0
        self.refused += not is_allowed
        return is_allowed

    def end(self) -> None:
        """Charge the time since `begin`."""
        self._left -= min(self._clock() - self._began_s, _MOST_CHARGED_S)
