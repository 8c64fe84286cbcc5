"""Types of fields of records that JSON shows in their own way: sorted, as objects, or not at all."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, with_config
from typing_extensions import TypedDict

HIDDEN = Field(exclude=True)
"""The annotation of a field that JSON does not show."""


def if_any(description: str | None = None) -> Any:
    """Return the annotation of a field that JSON does not show if it is None."""
    return Field(description=description, exclude_if=lambda value: value is None)


EMPTY_IF_NULL = BeforeValidator(lambda found: "" if found is None else found)
"""The annotation of a text that JSON may show as null."""


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


@with_config(ConfigDict(extra="forbid"))
class Alternate(TypedDict):
    """Another host that fitted at the time of the selection. It is not claimed."""

    host: str


def as_objects(hosts: Iterable[str]) -> list[Alternate]:
    """Return names of alternate hosts as JSON shows them."""
    return [{"host": one} for one in hosts]


def _as_names(found: Any) -> Any:
    return tuple(one["host"] for one in found or ())


Alternates = Annotated[tuple[str, ...], BeforeValidator(_as_names), PlainSerializer(as_objects)]
"""Names of alternate hosts, best first, which JSON shows as objects."""
