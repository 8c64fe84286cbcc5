"""What a selection that was to be active shows on stderr when it was not: each attempt, with what was seen there."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from redsched.cli import tables
from redsched.model.claims import one_line

HEADS = ("TIME", "CLAIM", "HOST", "KIND")


def headline(attempts: Sequence[dict[str, Any]]) -> str:
    """Return which claims are given back, and why."""
    claim_ids = list(dict.fromkeys(one["claim_id"] for one in attempts))
    which = f"claim {claim_ids[0]} was" if len(claim_ids) == 1 else f"claims {', '.join(claim_ids)} were"
    return f"{which} not active in time; all that was claimed is given back"


def show(attempts: Sequence[dict[str, Any]]) -> None:
    """Show each attempt of each claim, in the order of time."""
    found = sorted(attempts, key=lambda one: (one["claim_id"], one["at_ms"]))
    rows = ((tables.At(one["at_ms"]), one["claim_id"], one["host"], one["kind"]) for one in found)
    # Tables go to stdout, which is for what was asked for.
    with redirect_stdout(sys.stderr):
        tables.show_table(HEADS, rows, "", [one_line(one["reason"]) for one in found])
