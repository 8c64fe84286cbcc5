"""Output of commands: tables that fit the terminal, columns separated by tabs elsewhere, and JSON on request."""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from redsched.cli.output.formats import BETWEEN, NOTHING, TableStyle, in_names, shown, wrapped

SEPARATOR = "\t"
"""Between two columns where stdout is not a terminal: no value of a table contains it."""


USUAL = TableStyle()


def show_json(content: Mapping[str, Any]) -> None:
    """Print `content` as JSON: indented on a terminal, one line elsewhere."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(json.loads(to_json(content)), indent=indent, ensure_ascii=False))


def show_yaml(content: Mapping[str, Any]) -> None:
    """Print `content` as a YAML document."""
    import yaml  # few commands need it

    print(yaml.safe_dump(json.loads(to_json(content)), sort_keys=False, allow_unicode=True), end="", flush=True)


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    empty: str,
    notes: Iterable[str] | None = None,
    layout: TableStyle = USUAL,
) -> None:
    """Print rows under their heads, or the line `empty` if there are none.

    `notes` has a text for each row, '' for none. It is appended to the row's last cell; on a terminal it has its own
    lines.
    """
    found = list(rows)
    texts = [""] * len(found) if notes is None else list(notes)
    if not found:
        if layout.heads:
            print(empty)
    elif is_fitted(layout.wide):
        from redsched.cli.output import fitted  # with rich, which only terminals need

        fitted.show(heads, found, texts, layout)
    else:
        whole = [_with_note(row, note) for row, note in zip(found, texts, strict=True)]
        _show_plain([*([heads] if layout.heads else []), *whole])


def line_of(row: Sequence[object]) -> str:
    """Return a row as one line: its values are separated by tabs, or by spaces on a terminal."""
    separator = " " * BETWEEN if sys.stdout.isatty() else SEPARATOR
    return separator.join(" ".join(shown(value).split()) for value in row)


def is_fitted(wide: bool = False) -> bool:
    """Return whether to fit lines to the terminal: stdout is one, and `wide` lines are not requested."""
    return sys.stdout.isatty() and not wide


def show_more(after: str | None) -> None:
    """Print how to get the next page, if there is one."""
    if after:
        remark(f"there are more: --after {after}")


def remark(line: str) -> None:
    """Print a line about a table: to stderr if programs read stdout."""
    print(line, file=sys.stdout if sys.stdout.isatty() else sys.stderr)


def say(line: str) -> None:
    """Print a line immediately; on a terminal it is wrapped between words, with an indented continuation."""
    print(wrapped(line, shutil.get_terminal_size().columns) if is_fitted() else line, flush=True)


def amounts(found: Mapping[str, int]) -> str:
    """Format amounts for one cell: `MEMORY_MB=4096 VCPU=2`."""
    return " ".join(f"{slot}={amount}" for slot, amount in in_names(found))


def first_line(text: str) -> str:
    """Return the first line of a text; '' for an empty text."""
    return text.partition("\n")[0]


def _with_note(row: Sequence[object], note: str) -> Sequence[object]:
    if not note:
        return row
    last = shown(row[-1])
    return [*row[:-1], note if last == NOTHING else f"{last} {note}"]


def _show_plain(rows: Sequence[Sequence[object]]) -> None:
    """Print one line for each row: columns of equal widths on a terminal, and separated by tabs elsewhere."""
    if sys.stdout.isatty():
        from redsched.cli.output import fitted

        return fitted.show_wide(rows)
    for row in rows:
        print(line_of(row))
    return None
