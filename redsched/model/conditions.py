"""Conditions of a write: on the tag of what is written, or on whether it exists."""

from collections.abc import Collection
from enum import Enum


class Existence(Enum):
    """Conditions on whether the object to write exists, in the form that if_match.lua takes."""

    EXISTS = "*"
    ABSENT = "-"


IfMatch = str | Collection[str] | Existence | None
"""The tag that the object to write must have, or several of which it must have one, or whether it must exist; None: no
condition."""
EXISTS, ABSENT = Existence.EXISTS, Existence.ABSENT
