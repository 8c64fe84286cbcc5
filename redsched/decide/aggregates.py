"""Which hosts are in aggregates, and what their metadata say: the metadata are read once for each revision of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import nowhere

Read = TypeVar("Read")


def in_any(columns: Columns, names: Iterable[str], rows: Rows) -> Mask:
    """Whether each row's host is in one of these aggregates; one that does not exist has no hosts."""
    if isinstance(rows, int):
        return np.bool_(any(columns.aggregates[name][rows] for name in names))
    found = nowhere(columns, rows)
    for name in names:
        found = found | columns.aggregates[name][rows]
    return found


def aggregates_of(columns: Columns, row: int) -> list[str]:
    """The aggregates of a host, in the order of their names."""
    return sorted(name for name in columns.aggregates if columns.aggregates[name][row])


def listed(value: str) -> frozenset[str]:
    """The values that a value of metadata lists, with commas between them as in Nova."""
    return frozenset(one.strip() for one in value.split(",")) - {""}


def metadata(declared: Declared) -> Iterator[tuple[str, str, str]]:
    """Every (aggregate, key, value), in the order of the aggregates' and keys' names."""
    for name in sorted(declared.aggregates):
        for key, value in sorted(declared.aggregates[name].metadata.items()):
            yield name, key, value


def per_revision(read: Callable[[Declared], Read]) -> Callable[[Columns], Read]:
    """Make what is read from declared objects be read anew only when they have changed.

    Whoever uses it says `depends=revision` in its rule.
    """
    seen: list[tuple[Declared, int, Read]] = []

    def current(columns: Columns) -> Read:
        declared = columns.declared
        if not seen or seen[0][0] is not declared or seen[0][1] != declared.revision:
            seen[:] = [(declared, declared.revision, read(declared))]
        return seen[0][2]

    return current


def revision(columns: Columns) -> int:
    """What a rule depends on that reads metadata of aggregates or definitions of shared pools."""
    return columns.declared.revision
