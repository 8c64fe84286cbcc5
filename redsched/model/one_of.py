"""What a filter accepts for a field: one value, or several of which any will do."""

from collections.abc import Collection

OneOf = str | Collection[str] | None
"""A value, or a collection of values. None and what is empty accept every value."""


def accepts(wanted: OneOf, value: str | None) -> bool:
    """Return whether a filter accepts a value."""
    if not wanted:
        return True
    return value == wanted if isinstance(wanted, str) else value in wanted


def values_of(wanted: OneOf) -> tuple[str, ...]:
    """Return the values that a filter names, each once; none where it accepts every value."""
    if not wanted:
        return ()
    return (wanted,) if isinstance(wanted, str) else tuple(dict.fromkeys(wanted))
