"""Read JSON in which no object has a key twice. Python's and pydantic's parsers keep the last one without a word."""

import json
from typing import Any


class DuplicateKey(ValueError):
    """An object has a key twice."""


def loads(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or an object has a key twice."""
    return json.loads(text, object_pairs_hook=_unique)


def check_unique_keys(text: bytes) -> None:
    """Raise DuplicateKey if an object of a text has a key twice. The text has been parsed, and is valid JSON."""
    try:
        _READER.decode(text.decode())
    except DuplicateKey:
        raise
    except (ValueError, RecursionError):
        return  # only Python's parser has such limits, of the digits of a number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise DuplicateKey(f"has the key {twice[:80]!r} twice in one object: give each key once")
    return found


_READER = json.JSONDecoder(object_pairs_hook=_unique)
