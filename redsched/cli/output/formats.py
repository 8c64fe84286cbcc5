"""How values look in tables and lines: texts, times with their ages, colours, hosts and claims in words.

Names are in natural order everywhere: numbers in them count as numbers, so that ci-2 comes before ci-10.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from redsched.model import Claim, ClaimStatus, HostCondition, HostStatus
from redsched.model.gpus import count

if TYPE_CHECKING:
    from redsched.model.records.hosts import HostView

NOTHING = "-"
BETWEEN = 2
"""Characters between two columns on a terminal."""
INDENT = 4
"""Characters before the continuation of a row or line on a terminal."""
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
"""The units of ages, in seconds."""
LEAST_COUNT = 2
"""An age is in the largest unit of which it has this many, so that it is off by less than half."""
GONE = (HostCondition.DOWN, HostCondition.LOST)
"""Hosts of which nothing is heard: what the store has of their claims is as old as their last report."""
_MILLI = "_MILLI"
_NUMBERS = re.compile(r"([0-9]+)")

Value = TypeVar("Value")
Key = tuple[tuple[tuple[str, int], ...], str]


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


def natural(name: str) -> Key:
    """Return the sort key of a name."""
    texts = _NUMBERS.split(name)
    numbers = [*(int(one) for one in texts[1::2]), 0]
    return tuple(zip(texts[::2], numbers, strict=True)), name


def in_names(found: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the items of a mapping in the order of their names."""
    return sorted(found.items(), key=lambda one: natural(one[0]))


def short_name(name: str) -> str:
    """Return the name of a class without what all of its kind have: `GPU` for CUSTOM_GPU_MILLI."""
    return name.removeprefix("CUSTOM_").removesuffix(_MILLI)


def in_units(name: str, amount: int) -> str:
    """Return an amount of a class as text, beside its short name: of thousandths in whole units, such as `3.5`."""
    return count(amount) if name.endswith(_MILLI) else str(amount)


def host_text(host: "HostView") -> str:
    """Return a host in one word; with the time since when it is down, and what an operator has set besides."""
    if host.condition not in (HostCondition.DOWN, HostCondition.UNATTESTED):
        return host.condition
    besides = "" if host.status is HostStatus.ENABLED else f", {host.status}"
    return f"{_since(host.condition, host.down_since_ms)}{besides}"


def claim_text(claim: Claim) -> str:
    """Return a claim's state; for an active one, whether its work has ended and whether its host is down or lost.

    Also whether it has to leave its host, and waits for another place.
    """
    parts = [str(claim.state)]
    if claim.state is ClaimStatus.ACTIVE and claim.work_ended_at_ms is not None:
        parts = [f"{claim.state} (work ended)"]
    if claim.host_condition in GONE:
        parts.append(f"host {_since(claim.host_condition, claim.host_down_since_ms)}")
    if claim.waits_to_leave:
        parts.append("waits for another place")
    return ", ".join(parts)


def _since(condition: HostCondition, at_ms: int | None) -> str:
    return condition if at_ms is None else f"{condition} {age(at_ms)}"
