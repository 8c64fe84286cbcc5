"""The order of names in lists: numbers in names count as numbers, so that ci-2 comes before ci-10."""

import re
from collections.abc import Mapping
from typing import TypeVar

_NUMBERS = re.compile(r"([0-9]+)")

Value = TypeVar("Value")
Key = tuple[tuple[tuple[str, int], ...], str]


def natural(name: str) -> Key:
    """Return the sort key of a name."""
    texts = _NUMBERS.split(name)
    numbers = [*(int(one) for one in texts[1::2]), 0]
    return tuple(zip(texts[::2], numbers, strict=True)), name


def in_names(found: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the items of a mapping in the order of their names."""
    return sorted(found.items(), key=lambda one: natural(one[0]))
