"""How values look in tables and lines: texts, times with their ages, colours, and the spaces around them."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

NOTHING = "-"
BETWEEN = 2
"""Characters between two columns on a terminal."""
INDENT = 4
"""Characters before the continuation of a row or line on a terminal."""
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
"""The units of ages, in seconds."""
LEAST_COUNT = 2
"""An age is in the largest unit of which it has this many, so that it is off by less than half."""


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


@dataclass(frozen=True, slots=True)
class Dated:
    """A time (Unix ms) in a table as a text of its own, with its age on a terminal: `2027-01-31T00:00:00Z (in 66d)`."""

    text: str
    ms: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Coloured:
    """A text in a table that has a colour on a terminal: `red`, `yellow`."""

    text: str
    colour: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How a table is printed: `wide` gives a terminal one line for each row; `heads` prints the names of columns.

    `leave` has a number for each column, if a terminal without room may leave columns out: 1 is left out first, and 0
    never. Without it, columns without room are printed below their row.
    """

    wide: bool = False
    heads: bool = True
    leave: Sequence[int] = ()


def bad(text: str) -> Coloured:
    """Return a text that reports what is broken or over a limit: red on a terminal."""
    return Coloured(text, "red")


def caution(text: str) -> Coloured:
    """Return a text that reports a temporary state, such as draining: yellow on a terminal."""
    return Coloured(text, "yellow")


def time(at_ms: int) -> str:
    """Format a time (Unix ms) in UTC: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_and_age(at_ms: int) -> str:
    """Format a time (Unix ms) in UTC with its age: `2026-01-02T03:04:05.678Z (3m)`."""
    return f"{time(at_ms)} ({age(at_ms)})"


def age(at_ms: int) -> str:
    """Return how long ago a time (Unix ms) was, by this machine's clock: `45s`, `3m`, `5h`, `2d`; if later, `in 3m`."""
    seconds = int(datetime.now(UTC).timestamp() - at_ms / 1000)
    amount = abs(seconds)
    unit, letter = next((one for one in UNITS if amount >= LEAST_COUNT * one[0]), (1, "s"))
    return f"{'in ' * (seconds < 0)}{amount // unit}{letter}"


def shown(value: object) -> str:
    """Return a cell's text in plain columns."""
    if value is None or value == "":
        return NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def wrapped(line: str, width: int, indent: str = "") -> str:
    """Wrap a line between words, with an indented continuation. A word that is longer than a line is not cut.

    `indent` is added before each line.
    """
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=indent or " " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(wrapper.fill(part) for part in line.split("\n"))
