"""The journal's clock: how much time passes on this machine, whatever clocks are set here or elsewhere.

Only differences of its times count: how long work has run, how old a tombstone is. While the machine runs it follows
the time since boot, suspends included, which nobody can set. Over a restart of the machine, its wall clock tells how
long it was off; if that was set back meanwhile, only the time since the new boot counts.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux counts suspends."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The clocks of the machine at one moment: the boot it runs since, the time since then, and the wall clock."""

    boot_id: str
    up_ms: int
    wall_ms: int

    def ms_until(self, later: "Reading") -> int:
        """Return the time from this reading to a later one, perhaps of a later boot."""
        if later.boot_id == self.boot_id:
            return max(0, later.up_ms - self.up_ms)
        return max(later.up_ms, later.wall_ms - self.wall_ms)


def up_ms() -> int:
    """Return the time since this machine's boot, suspends included."""
    return time.clock_gettime_ns(_SINCE_BOOT) // 1_000_000


def read_clocks() -> Reading:
    """Read the clocks of this machine."""
    return Reading(_boot_id(), up_ms(), time.time_ns() // 1_000_000)


class SteadyClock:
    """The journal's clock. `kept`: a reading in the journal, and the journal's time then; None for a new journal."""

    def __init__(self, kept: tuple[Reading, int] | None, read: Callable[[], Reading] = read_clocks) -> None:
        self._read = read
        self._since = read()
        # A new clock begins with the wall clock's time, so that the times of tombstones of earlier releases compare.
        self._since_ms = self._since.wall_ms if kept is None else kept[1] + kept[0].ms_until(self._since)

    def now_ms(self) -> int:
        """Return the journal's time."""
        return self.reading()[1]

    def reading(self) -> tuple[Reading, int]:
        """Return the clocks of the machine and the journal's time now: what the next process continues from."""
        now = self._read()
        return now, self._since_ms + self._since.ms_until(now)


@cache
def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # another system: no other process can know whether it is the same boot
        return f"process-{uuid.uuid4().hex}"
