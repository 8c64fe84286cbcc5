"""Short texts that stand for a candidate, so that a record of many candidates stays small."""

from collections.abc import Mapping
from hashlib import sha1


def digest(taken: Mapping[str, Mapping[str, int]]) -> str:
    """Return six characters for the amounts by place and class."""
    text = repr(sorted((place, sorted(amounts.items())) for place, amounts in taken.items()))
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:6]
