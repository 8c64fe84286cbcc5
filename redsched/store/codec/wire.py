"""Conversion between mappings and the flat lists that scripts take and return."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from redsched.origin import UNKNOWN, Origin, checked

Reply = list[Any]
"""A script's reply: a flat array, beginning with its outcome."""


def flat(mapping: Mapping[str, str | int] | Iterable[tuple[str, str | int]]) -> list[str | int]:
    """Return the pairs as a flat list: field, value, field, value ..."""
    pairs = mapping.items() if isinstance(mapping, Mapping) else mapping
    return list(chain.from_iterable(pairs))


def mapping_of(values: Sequence[Any]) -> dict[str, str]:
    """Return the mapping in a flat list: field, value, field, value ..."""
    return dict(zip(values[::2], values[1::2], strict=True))


def origin_text(origins: Sequence[Origin]) -> str:
    """Return origins as include/core/origin.lua parses them; '' if nothing is known of any. Raises InvalidRequest."""
    if all(one is UNKNOWN or one == UNKNOWN for one in origins):
        return ""
    return "".join(f"{checked(one).actor}\n{one.request_id}\n" for one in origins)
