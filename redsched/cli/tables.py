"""What commands show: tables with lines on a terminal, plain columns elsewhere, and JSON where it was asked for."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

NOTHING = "-"
BETWEEN = 3
"""Characters between two columns of a table with lines."""


def show_json(content: Mapping[str, Any]) -> None:
    """Show `content` as JSON: indented for people on a terminal, one line elsewhere."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(json.loads(to_json(content)), indent=indent, ensure_ascii=False))


def show_table(heads: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Show rows under their heads, or the line `empty` where there is none."""
    texts = [[_text(value) for value in row] for row in rows]
    if not texts:
        print(empty)
    elif sys.stdout.isatty():
        _show_with_lines(heads, texts)
    else:
        _show_plain(heads, texts)


def amounts(found: Mapping[str, int]) -> str:
    """Amounts in one cell: `VCPU=2 MEMORY_MB=4096`."""
    return " ".join(f"{slot}={amount}" for slot, amount in sorted(found.items()))


def time(at_ms: int) -> str:
    """A time (Unix ms) in UTC: `2026-01-02T03:04:05.678Z`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def first_line(text: str) -> str:
    """Return the first line of a text, which may have none."""
    return text.partition("\n")[0]


def _text(value: object) -> str:
    if value is None or value == "":
        return NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _show_with_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = Console()
    widths = _widths([heads, *rows], console.width - BETWEEN * (len(heads) - 1))
    # Folded and never cut: half a token or claim id is of no use to anyone.
    columns = (Column(head, overflow="fold", width=width) for head, width in zip(heads, widths, strict=True))
    table = Table(*columns, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    console.print(table)


def _widths(lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the widths of columns: each has room for its longest word, and from the left for whole texts."""
    columns = list(zip(*lines, strict=True))
    widths = [max(cell_len(word) for text in column for word in text.split()) for column in columns]
    for number, column in enumerate(columns):
        more = max(map(cell_len, column)) - widths[number]
        widths[number] += max(0, min(more, room - sum(widths)))
    return widths


def _show_plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [list(heads), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
