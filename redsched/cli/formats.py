"""How values look in tables and lines: texts, times, and the spaces around them."""

from dataclasses import dataclass
from datetime import UTC, datetime

NOTHING = "-"
BETWEEN = 2
"""Characters between two columns on a terminal."""
INDENT = 4
"""Characters before the continuation of a row or line on a terminal."""


@dataclass(frozen=True, slots=True)
class At:
    """A time (Unix ms) in a table: in full in plain columns; on a terminal as HH:MM:SS below a line with the day."""

    ms: int

    def __str__(self) -> str:
        return time(self.ms)

    @property
    def day(self) -> str:
        """The day in UTC: `2026-01-02 UTC`."""
        return f"{time(self.ms)[:10]} UTC"

    @property
    def clock(self) -> str:
        """The time of day in UTC: `03:04:05`."""
        return time(self.ms)[11:19]


def time(at_ms: int) -> str:
    """Format a time (Unix ms) in UTC: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(value: object) -> str:
    """Return a cell's text in plain columns."""
    if value is None or value == "":
        return NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
