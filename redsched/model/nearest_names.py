"""The names that a mistyped one probably means."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

CLOSE = 0.6
"""How similar two names are, from 0 to 1, if one may be a slip of the other."""
MOST = 3
"""The most names that are suggested."""
LISTED = 20
"""The most names that a text lists."""
LONGEST = 80
"""The longest part of a typed name that is shown and compared."""


def by_nearness(typed: str, names: Iterable[str]) -> list[str]:
    """Return all names, the nearest to the typed one first, then by name."""
    return sorted(set(names), key=lambda name: (-_nearness(typed, name), name))


def nearest(typed: str, names: Iterable[str]) -> list[str]:
    """Return up to MOST names that the typed one probably means, the nearest first; [] if none is near."""
    return by_nearness(typed, [name for name in names if _nearness(typed, name) >= CLOSE])[:MOST]


def those_there(typed: str, names: Iterable[str]) -> str:
    """Return a typed name with those that it may mean, and all that there are, the nearest first."""
    there = by_nearness(typed[:LONGEST], names)
    near = nearest(typed[:LONGEST], there)
    listed = ", ".join(there[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
    return f"{typed[:LONGEST]!r}: {f'did you mean {one_of(near)}? There' if near else 'there'} are {listed}"


def one_of(names: Sequence[str]) -> str:
    """Return names as `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def nearest_parts(typed: str, names: Iterable[str]) -> list[str]:
    """Return those of `nearest` that are a part of the typed name, or it of them: in microseconds, for any caller."""
    return sorted((name for name in names if _part(typed, name)), key=lambda name: (-_part(typed, name), name))[:MOST]


def _nearness(typed: str, name: str) -> float:
    """Return how probably a typed name means another: above 1 by `_part`, else how similar they are, 0 to 1."""
    return _part(typed, name) or SequenceMatcher(None, typed.upper(), name.upper(), autojunk=False).ratio()


def _part(typed: str, name: str) -> float:
    """Return how much of the longer name the shorter one is, and more if it is an end of it: 1 to 3; 0 if no part."""
    short, long = sorted((typed.upper(), name.upper()), key=len)
    if len(short) < 2 or short not in long:
        return 0.0
    at_an_end = long.startswith(short) or long.endswith(short)
    return 1.0 + len(short) / len(long) + at_an_end
