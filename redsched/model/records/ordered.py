"""Types of fields that JSON shows in sorted order, whatever order they have in memory."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer


def _by_key(found: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(found.items()))


def sorted_keys(kind: Any) -> PlainSerializer:
    """Return the annotation of a mapping whose JSON object has sorted keys. `kind`: the type that describes it."""
    return PlainSerializer(_by_key, return_type=kind)


Names = Annotated[frozenset[str], PlainSerializer(sorted, return_type=list[str])]
"""A set of names, which JSON shows as a sorted list."""
Texts = Annotated[Mapping[str, str], sorted_keys(dict[str, str])]
Numbers = Annotated[Mapping[str, int], sorted_keys(dict[str, int])]
"""Texts, or whole numbers, by name."""
