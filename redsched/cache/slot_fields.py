"""What the fields of a slot read as: the one place for their defaults, and for what nobody can read."""

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
"""By kind: what a field without a value means, and what one is taken for that somebody made unreadable by hand: the
value that lets nothing in."""


def amount_of(kind: str, text: str) -> int:
    """The amount that a field of this kind stands for; '' where there is no such field."""
    default, unreadable = AMOUNTS[kind]
    return parse_int(text, unreadable, 1 if kind == "step" else 0) if text else default
