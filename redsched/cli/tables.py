"""Output of commands: tables that fit the terminal, plain columns elsewhere, and JSON on request."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from redsched.cli.formats import INDENT, NOTHING, shown


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
        from redsched.cli import fitted  # with rich, which only terminals need

        fitted.show(heads, found, texts)
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


def first_line(text: str) -> str:
    """Return the first line of a text; '' for an empty text."""
    return text.partition("\n")[0]


def _with_note(cells: list[str], note: str) -> list[str]:
    last = [one for one in (cells[-1], note) if one and one != NOTHING]
    return [*cells[:-1], " ".join(last) or NOTHING]


def _show_plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [list(heads), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
