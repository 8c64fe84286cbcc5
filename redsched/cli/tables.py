"""Output of commands: tables that fit the terminal, plain columns elsewhere, and JSON on request."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

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


@dataclass(frozen=True, slots=True)
class _Row:
    """A row on a terminal: its day ('' for none), its cells, and the lines below them."""

    day: str
    cells: Sequence[str]
    below: Sequence[str]


def show_json(content: Mapping[str, Any]) -> None:
    """Print `content` as JSON: indented on a terminal, one line elsewhere."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(json.loads(to_json(content)), indent=indent, ensure_ascii=False))


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    empty: str,
    notes: Iterable[str] | None = None,
    wide: bool = False,
) -> None:
    """Print rows under their heads, or the line `empty` if there are none.

    `notes` has a text for each row, '' for none. It is appended to the row's last cell; on a terminal it has its own
    lines. With `wide` a terminal gets plain columns too.
    """
    found = list(rows)
    texts = [""] * len(found) if notes is None else list(notes)
    if not found:
        print(empty)
    elif is_fitted(wide):
        _show_fitted(heads, found, texts)
    else:
        _show_plain(heads, [_with_note([*map(shown, row)], note) for row, note in zip(found, texts, strict=True)])


def is_fitted(wide: bool = False) -> bool:
    """Return whether to fit lines to the terminal: stdout is one, and `wide` lines are not requested."""
    return sys.stdout.isatty() and not wide


def show_more(after: str | None) -> None:
    """Print how to get the next page, if there is one."""
    if after:
        print(f"there are more: --after {after}")


def say(line: str) -> None:
    """Print a line immediately; on a terminal it is wrapped between words, with an indented continuation."""
    if is_fitted():
        width, indent = shutil.get_terminal_size().columns, " " * INDENT
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
        )
        line = "\n".join(wrapper.fill(part) for part in line.split("\n"))
    print(line, flush=True)


def amounts(found: Mapping[str, int]) -> str:
    """Format amounts for one cell: `MEMORY_MB=4096 VCPU=2`."""
    return " ".join(f"{slot}={amount}" for slot, amount in sorted(found.items()))


def time(at_ms: int) -> str:
    """Format a time (Unix ms) in UTC: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def first_line(text: str) -> str:
    """Return the first line of a text; '' for an empty text."""
    return text.partition("\n")[0]


def shown(value: object) -> str:
    """Return a cell's text in plain columns."""
    if value is None or value == "":
        return NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _with_note(cells: list[str], note: str) -> list[str]:
    last = [one for one in (cells[-1], note) if one and one != NOTHING]
    return [*cells[:-1], " ".join(last) or NOTHING]


def _show_fitted(heads: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str]) -> None:
    console = Console(highlight=False)
    texts = [[value.clock if isinstance(value, At) else shown(value) for value in row] for row in rows]
    columns = [list(column) for column in zip(heads, *texts, strict=True)]
    filled = [column for column in columns if set(column[1:]) != {NOTHING}] or columns[:1]
    count = _beside(filled, console.width)
    below = [[_named(column[0], text) for text in column[1:]] for column in filled[count:]]
    lines = [[one for one in (*cells, note) if one] for *cells, note in zip(*below, notes, strict=True)]
    cells = zip(*(column[1:] for column in filled[:count]), strict=True)
    made = [_Row(_day(row), *of_row) for row, *of_row in zip(rows, cells, lines, strict=True)]
    _print_rows(console, filled[:count], made)


def _beside(columns: Sequence[Sequence[str]], room: int) -> int:
    """Return how many columns fit side by side without breaking their longest words; at least one."""
    longest = [_longest_word(column) for column in columns]
    count = len(columns)
    while count > 1 and sum(longest[:count]) + BETWEEN * (count - 1) > room:
        count -= 1
    return count


def _named(head: str, text: str) -> str:
    return "" if text == NOTHING else f"{head}: {text}"


def _day(row: Sequence[object]) -> str:
    return next((value.day for value in row if isinstance(value, At)), "")


def _print_rows(console: Console, columns: Sequence[Sequence[str]], rows: Sequence[_Row]) -> None:
    """Print rows as tables of equal widths, interrupted by days and by the lines below a row."""
    widths = _widths(columns, console.width - BETWEEN * (len(columns) - 1))
    heads = [column[0] for column in columns]
    table, day = _table(heads, widths, show_header=True), ""
    for row in rows:
        if row.day != day:
            if table.row_count:
                console.print(table)
                table = _table(heads, widths)
            day = row.day
            console.print(day)
        table.add_row(*map(Text, row.cells))
        if row.below:
            console.print(table)
            console.print(Padding(Text("\n".join(row.below)), (0, 0, 0, INDENT), expand=False))
            table = _table(heads, widths)
    if table.row_count:
        console.print(table)


def _table(heads: Sequence[str], widths: Sequence[int], show_header: bool = False) -> Table:
    # Cells are folded and never truncated, because half a token or claim id is useless.
    columns = (Column(head, overflow="fold", width=width) for head, width in zip(heads, widths, strict=True))
    return Table(*columns, box=None, padding=(0, BETWEEN, 0, 0), pad_edge=False, show_header=show_header)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the widths of columns: room for the longest word of each; the rest goes to whole texts from the left."""
    widths = [_longest_word(column) for column in columns]
    for number, column in enumerate(columns):
        more = max(map(cell_len, column)) - widths[number]
        widths[number] += max(0, min(more, room - sum(widths)))
    return widths


def _longest_word(column: Sequence[str]) -> int:
    return max(cell_len(word) for text in column for word in text.split())


def _show_plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [list(heads), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
