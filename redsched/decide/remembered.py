"""What is remembered of the latest requests: a bounded number of values, and a bounded size of their keys.

The key of an unusual request is its text, of up to 128 KiB, and what is remembered of it takes about ten times that. So
few large requests are remembered, and many small ones.
"""

from collections import OrderedDict
from collections.abc import Hashable, ValuesView
from typing import Generic, TypeVar

MAX_BYTES = 500_000
"""The most bytes of the keys of one cache, unless the latest alone has more."""
NAME_BYTES = 32
"""What a name in a key counts; its length is not looked at."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """The latest values by key."""

    def __init__(self, most: int, most_bytes: int = MAX_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._known: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.size = 0
        """The bytes of all keys."""

    def __len__(self) -> int:
        return len(self._known)

    def values(self) -> list[Value]:
        """Return all values, the latest last."""
        known: ValuesView[tuple[Value, int]] = self._known.values()
        return [value for value, _ in known]

    def get(self, key: Key) -> Value | None:
        """Return the value, which is then the latest; None if there is none."""
        found = self._known.get(key)
        if found is None:
            return None
        self._known.move_to_end(key)
        return found[0]

    def add(self, key: Key, value: Value) -> None:
        """Add a value for a key that has none, and forget the oldest ones beyond the bounds."""
        size = size_of(key)
        self._known[key] = value, size
        self.size += size
        while len(self._known) > self._most or (self.size > self._most_bytes and len(self._known) > 1):
            self.size -= self._known.popitem(last=False)[1][1]

    def forget(self, key: Key) -> None:
        """Forget the value of a key that has one."""
        self.size -= self._known.pop(key)[1]


def size_of(key: object) -> int:
    """Return about how many bytes the texts in a key have, which may have tuples and sets in tuples."""
    if isinstance(key, str):
        return len(key)
    if isinstance(key, frozenset):
        return NAME_BYTES * len(key)
    return sum(map(size_of, key)) if isinstance(key, tuple) else 0
