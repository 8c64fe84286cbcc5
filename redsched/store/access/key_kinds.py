"""The kinds of keys. A kind is named after the member of `Keys` that returns its keys."""

from typing import Any

from redsched.store.codec import keys as codec

IN_ORDER = (
    *("meta", "changes", "hosts", "host", "claim", "claims", "inbox", "deadlines", "reconcile", "shelved", "quota"),
    *("gang", "server_group", "pool", "reason", "request", "alternates", "decision", "attributes"),
    *("draining", "removed", "workload", "reservations", "schedulers", "missing", "audit", "fencing", "expected"),
    "refused",
    *("aggregate", "aggregates", "server_groups", "pools", "quotas", "events", "recorder", "duty", "probe"),
)
"""The kinds of a cell. A server compares a key with the patterns of a user in turn: the most used come first."""
OF_CELL = frozenset(IN_ORDER)
CELLS = "cells"
"""The list of the cells."""
HOME = "home"
"""The cell of a host's name: a process of one cell needs it too, if the store has others."""
BETWEEN_CELLS = frozenset({"binding", "group_pin", HOME})
"""The kinds that only stores with several cells use. Their keys belong to no cell, as `CELLS`."""


def pattern_of(cell: str, kind: str, name: str = "*") -> str:
    """Return the glob of the keys of a kind. `name`: the only thing whose keys it is to match; '*' for any."""
    if kind == CELLS:
        return codec.CELLS
    member: Any = getattr(codec.Keys(cell), kind)
    return str(member if isinstance(member, str) else member(name))


def pattern_of_cell(cell: str) -> str:
    """Return the glob of all keys of a cell."""
    return pattern_of(cell, "meta").removesuffix("meta") + "*"
