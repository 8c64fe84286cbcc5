"""The report on stderr about a failed selection with `--until active`: each attempt and its reason."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from redsched.cli import formats, tables
from redsched.model.claims import one_line

HEADS = ("TIME", "CLAIM", "HOST", "KIND")


def headline(attempts: Sequence[dict[str, Any]]) -> str:
    """Return a line that says which claims are released, and why."""
    claim_ids = list(dict.fromkeys(one["claim_id"] for one in attempts))
    which = f"claim {claim_ids[0]} was" if len(claim_ids) == 1 else f"claims {', '.join(claim_ids)} were"
    return f"{which} not active in time; everything that was claimed is released"


def show(attempts: Sequence[dict[str, Any]]) -> None:
    """Show the attempts of each claim, oldest first."""
    found = sorted(attempts, key=lambda one: (one["claim_id"], one["at_ms"]))
    rows = ((formats.At(one["at_ms"]), one["claim_id"], one["host"], one["kind"]) for one in found)
    # Tables are printed to stdout, which is reserved for the requested output.
    with redirect_stdout(sys.stderr):
        tables.show_table(HEADS, rows, "", [one_line(one["reason"]) for one in found])
