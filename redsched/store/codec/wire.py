"""What goes to scripts and comes back from them, as flat lists."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

Reply = list[Any]
"""What a script answers: its outcome first."""


def flat(mapping: Mapping[str, str | int] | Iterable[tuple[str, str | int]]) -> list[str | int]:
    """Return field, value, field, value ..."""
    pairs = mapping.items() if isinstance(mapping, Mapping) else mapping
    return list(chain.from_iterable(pairs))


def mapping_of(values: Sequence[Any]) -> dict[str, str]:
    """Return a mapping of field, value, field, value ..."""
    return dict(zip(values[::2], values[1::2], strict=True))
