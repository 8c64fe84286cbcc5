"""Tables that fit a terminal: columns that have room stand side by side, the others in lines below their row."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from redsched.cli.formats import BETWEEN, INDENT, NOTHING, At, shown


@dataclass(frozen=True, slots=True)
class _Row:
    """A row on a terminal: its day ('' for none), its cells, and the lines below them."""

    day: str
    cells: Sequence[str]
    below: Sequence[str]


def show(heads: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str]) -> None:
    """Print rows under their heads, each with its note ('' for none) in lines of its own."""
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
