"""Tables that fit a terminal: columns that have room stand side by side; the others are left out or below their row."""

from collections.abc import Sequence
from dataclasses import dataclass
from shutil import get_terminal_size

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from redsched.cli.output.formats import BETWEEN, INDENT, NOTHING, At, Coloured, Dated, TableStyle, age, shown, wrapped


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """A column: its head, the texts below it, and when it is left out (see `TableStyle.leave`)."""

    head: str
    texts: Sequence[Text]
    leave: int
    least: int
    """The width that it needs for its longest word; for times, which are not wrapped, for the longest text."""

    @property
    def most(self) -> int:
        """The width of its longest text."""
        return max(cell_len(text) for text in (self.head, *map(str, self.texts)))

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value in it."""
        return all(str(text) == NOTHING for text in self.texts)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row on a terminal: its day ('' for none), its cells, and the lines below them."""

    day: str
    cells: Sequence[Text]
    below: Sequence[str]


def show(heads: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str], layout: TableStyle) -> None:
    """Print rows under their heads, each with its note ('' for none) in lines of its own."""
    room, height = get_terminal_size()
    console = Console(highlight=False, width=room, height=height)  # rich takes 80 columns for a dumb terminal
    filled = _columns(heads, rows, layout.leave, ages=True)
    if sum(one.most + BETWEEN for one in filled) - BETWEEN > room:
        filled = _columns(heads, rows, layout.leave, ages=False)
    beside, apart, left_out = _arranged(filled, room)
    below = [[_named(column.head, str(text)) for text in column.texts] for column in apart]
    lines = [[one for one in (*cells, note) if one] for *cells, note in zip(*below, notes, strict=True)]
    cells = zip(*(column.texts for column in beside), strict=True)
    made = [_Row(_day(row), *of_row) for row, *of_row in zip(rows, cells, lines, strict=True)]
    _print_rows(console, beside, made, layout.heads)
    if left_out and layout.heads:
        names = ", ".join(one.head for one in left_out)
        print(wrapped(f"no room for {names}: -o wide shows all columns", room))


def show_wide(rows: Sequence[Sequence[object]]) -> None:
    """Print each row as one line of any length, in columns of equal widths."""
    texts = [[_text(value) for value in row] for row in rows]
    widths = [max(text.cell_len for text in column) for column in zip(*texts, strict=True)]
    console = Console(highlight=False)
    for line in texts:
        for text, width in zip(line[:-1], widths[:-1], strict=True):
            text.pad_right(width + BETWEEN - text.cell_len)
        console.print(Text.assemble(*line), soft_wrap=True)


def _columns(heads: Sequence[str], rows: Sequence[Sequence[object]], leave: Sequence[int], ages: bool) -> list[_Column]:
    """Return the columns that have a value in any row, at least one. With `ages`, these follow times."""
    made = []
    orders = leave or [0] * len(heads)
    for head, order, values in zip(heads, orders, zip(*rows, strict=True), strict=True):
        texts = [_text(_time(value, ages) if isinstance(value, At | Dated) else value) for value in values]
        whole = [head, *map(str, texts)]
        is_time = any(isinstance(value, At | Dated) for value in values)
        parts = whole if is_time else [word for text in whole for word in text.split()]
        made.append(_Column(head, texts, order, max(map(cell_len, parts))))
    return [one for one in made if not one.is_empty] or made[:1]


def _time(value: At | Dated, with_age: bool) -> str:
    text = value.clock if isinstance(value, At) else value.text
    return f"{text} ({age(value.ms)})" if with_age else text


def _text(value: object) -> Text:
    return Text(shown(value), style=value.colour if isinstance(value, Coloured) else "")


def _arranged(columns: list[_Column], room: int) -> tuple[list[_Column], list[_Column], list[_Column]]:
    """Return the columns that stand side by side, those below their row, and those that are left out.

    The columns that are never left out have room first, from the left; then the others, the most important first.
    """
    kept = [one for one in columns if not one.leave]
    beside = kept[: _beside(kept, room)]
    for one in sorted((one for one in columns if one.leave), key=lambda one: -one.leave):
        if _needed([*beside, one]) <= room:
            beside.append(one)
    shown = [one for one in columns if one in beside]
    return (
        shown,
        [one for one in kept if one not in beside],
        [one for one in columns if one.leave and one not in beside],
    )


def _needed(columns: Sequence[_Column]) -> int:
    return sum(one.least for one in columns) + BETWEEN * (len(columns) - 1)


def _beside(columns: Sequence[_Column], room: int) -> int:
    """Return how many columns fit side by side without breaking their longest words; at least one, if there is any."""
    count = len(columns)
    while count > 1 and _needed(columns[:count]) > room:
        count -= 1
    return count


def _named(head: str, text: str) -> str:
    return "" if text == NOTHING else f"{head}: {text}"


def _day(row: Sequence[object]) -> str:
    return next((value.day for value in row if isinstance(value, At)), "")


def _print_rows(console: Console, columns: Sequence[_Column], rows: Sequence[_Row], show_header: bool) -> None:
    """Print rows as tables of equal widths, interrupted by days and by the lines below a row."""
    room = console.width
    widths = _widths(columns, room - BETWEEN * (len(columns) - 1))
    # A single name that is longer than a line is wrapped by the terminal, so that it can be copied.
    console.width = max(room, sum(widths) + BETWEEN * (len(columns) - 1))
    heads = [column.head for column in columns]
    table, day = _table(heads, widths, show_header), ""
    for row in rows:
        if row.day != day:
            if table.row_count:
                console.print(table)
                table = _table(heads, widths)
            day = row.day
            console.print(day)
        table.add_row(*row.cells)
        if row.below:
            console.print(table)
            print("\n".join(wrapped(line, room, " " * INDENT) for line in row.below))
            table = _table(heads, widths)
    if table.row_count:
        console.print(table)


def _table(heads: Sequence[str], widths: Sequence[int], show_header: bool = False) -> Table:
    # Cells are folded and never truncated, because half a token or claim id is useless.
    columns = (Column(head, overflow="fold", width=width) for head, width in zip(heads, widths, strict=True))
    return Table(*columns, box=None, padding=(0, BETWEEN, 0, 0), pad_edge=False, show_header=show_header)


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """Return the widths of columns: the least of each; the rest goes to whole texts from the left."""
    widths = [one.least for one in columns]
    for number, column in enumerate(columns):
        widths[number] += max(0, min(column.most - widths[number], room - sum(widths)))
    return widths
