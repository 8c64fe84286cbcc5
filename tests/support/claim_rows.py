"""The rows of docs/keys.md for the fields of a claim, from their table. `scripts/claim-fields` writes them."""

import re
from pathlib import Path

from redsched.store.codec.claim_fields import CLAIM, FIELDS, PLACEMENT

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
SECTION = re.compile(r"(?<=\n)## `rs:\{c\}:claim:<id>`\n.*?(?=\n## )", re.DOTALL)
TABLE = re.compile(r"(\| field \| meaning \|\n\|---\|---\|\n)(?:\|[^\n]*\n)*")
OTHERS = "`placement.<placed>.<field>`"
"""The row on the fields of further placements, which no table has."""


def written(page: str) -> str:
    """Return the page with the rows of the table."""
    return SECTION.sub(lambda found: _section(found[0]), page)


def _section(text: str) -> str:
    kinds = iter((CLAIM, PLACEMENT))
    last = next(line for line in text.splitlines() if OTHERS in line)
    return TABLE.sub(lambda found: f"{found[1]}{_rows(next(kinds))}", text).rstrip("\n") + f"\n{last}\n"


def _rows(kind: str) -> str:
    return "".join(f"| `{one.shown_name}` | {one.doc} |\n" for one in FIELDS if one.of == kind)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
