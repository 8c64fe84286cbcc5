"""The aggregates of hosts, and their metadata, which is parsed once per revision."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import nowhere

Read = TypeVar("Read")


def in_any(columns: Columns, names: Iterable[str], rows: Rows) -> Mask:
    """Return whether each row's host is in one of these aggregates. An unknown aggregate has no hosts."""
    if isinstance(rows, int):
        return np.bool_(any(columns.aggregates[name][rows] for name in names))
    found = nowhere(columns, rows)
    for name in names:
        found = found | columns.aggregates[name][rows]
    return found


def aggregates_of(columns: Columns, row: int) -> list[str]:
    """Return the aggregates of a host, sorted by name."""
    return sorted(name for name in columns.aggregates if columns.aggregates[name][row])


def listed(value: str) -> frozenset[str]:
    """Return the items of a metadata value, which are separated by commas as in Nova."""
    return frozenset(one.strip() for one in value.split(",")) - {""}


def metadata(declared: Declared) -> Iterator[tuple[str, str, str]]:
    """Yield every (aggregate, key, value), sorted by aggregate and key."""
    for name in sorted(declared.aggregates):
        for key, value in sorted(declared.aggregates[name].metadata.items()):
            yield name, key, value


def per_revision(read: Callable[[Declared], Read]) -> Callable[[Columns], Read]:
    """Cache what `read` derives from the declared objects until their revision changes.

    A rule that uses the result must set `depends=revision`.
    """
    seen: list[tuple[Declared, int, Read]] = []

    def current(columns: Columns) -> Read:
        declared = columns.declared
        if not seen or seen[0][0] is not declared or seen[0][1] != declared.revision:
            seen[:] = [(declared, declared.revision, read(declared))]
        return seen[0][2]

    return current


def revision(columns: Columns) -> int:
    """Return the dependency of rules that read aggregate metadata or definitions of shared pools."""
    return columns.declared.revision
