"""The values that a filter accepts for a field: one, or any of several."""

from collections.abc import Collection

OneOf = str | Collection[str] | None
"""A value, or a collection of values. None or an empty collection accepts every value."""


def accepts(wanted: OneOf, value: str | None) -> bool:
    """Return whether a filter accepts a value."""
    if not wanted:
        return True
    return value == wanted if isinstance(wanted, str) else value in wanted


def values_of(wanted: OneOf) -> tuple[str, ...]:
    """Return the values that a filter names, each once; empty if it accepts every value."""
    if not wanted:
        return ()
    return (wanted,) if isinstance(wanted, str) else tuple(dict.fromkeys(wanted))
