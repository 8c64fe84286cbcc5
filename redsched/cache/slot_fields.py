"""Parsing of a slot's fields: their defaults, and the values that stand for invalid ones."""

from redsched.model.validation import MAX_AMOUNT, parse_int

NO_LIMIT = MAX_AMOUNT

AMOUNTS = {
    "capacity": (0, 0),
    "claimed": (0, MAX_AMOUNT),
    "external": (0, MAX_AMOUNT),
    "min": (1, MAX_AMOUNT),
    "max": (NO_LIMIT, 0),
    "step": (1, MAX_AMOUNT),
}
"""By kind: the value of a missing field, and the one that replaces an invalid value.

Fields become invalid by manual edits; the replacement is the value that blocks placements.
"""


def amount_of(kind: str, text: str) -> int:
    """Return the amount in a field of this kind; '' means that the field is missing."""
    default, unreadable = AMOUNTS[kind]
    return parse_int(text, unreadable, 1 if kind == "step" else 0) if text else default
