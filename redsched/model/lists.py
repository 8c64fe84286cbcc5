"""Types of lists that mean sets, of one name or a list, and of nested lists. Their schemas state what is invalid."""

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from redsched.errors import InvalidRequest
from redsched.model.limits import MAX_ALTERNATIVES, MAX_PARTS, MAX_QUERY_DEPTH, MAX_QUERY_ENTRIES, MAX_TRAITS
from redsched.model.types import Host, Name, Trait
from redsched.model.validation import MAX_AMOUNT, NAME_PATTERN, shown

MAX_NAMES = 10_000


def as_list(schema: dict[str, Any]) -> None:
    """Remove `uniqueItems` from the schema of a set: duplicate names are merged, not rejected."""
    del schema["uniqueItems"]


def as_filled_list(schema: dict[str, Any]) -> None:
    """Do the same, and require an item: `redsched.model` rejects an empty set."""
    as_list(schema)
    schema["minItems"] = 1


def _name_or_names(value: Any) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset((value,))
    if isinstance(value, list) and len(value) <= MAX_NAMES and all(isinstance(one, str) for one in value):
        return frozenset(value)
    raise InvalidRequest(f"must be a name or a list of up to {MAX_NAMES} names, not {shown(value)}")


def _name_or_lists(value: Any) -> tuple[frozenset[str], ...]:
    """Return the sets of alternatives: one set for a name or a flat list, one for each list in a nested list."""
    if isinstance(value, list) and any(isinstance(one, list) for one in value):
        if len(value) <= MAX_PARTS and all(isinstance(one, list) for one in value):
            return tuple(map(_name_or_names, value))
        raise InvalidRequest(f"must be a name, names, or up to {MAX_PARTS} lists of names, not {shown(value)}")
    names = _name_or_names(value)
    return (names,) if names else ()


def _frozen_query(value: Any) -> tuple[Any, ...]:
    """Convert nested lists to nested tuples. `redsched.decide` interprets their contents."""
    if not isinstance(value, list):
        raise InvalidRequest(f'must be a list such as [">=", "$free.VCPU", 2], not {shown(value)}')
    room = [MAX_QUERY_ENTRIES]

    def frozen(one: Any, depth: int) -> Any:
        room[0] -= 1
        if depth > MAX_QUERY_DEPTH or room[0] < 0:
            raise InvalidRequest(
                f"has more than {MAX_QUERY_ENTRIES} entries, or more than {MAX_QUERY_DEPTH} levels: use a smaller query"
            )
        if isinstance(one, list):
            return tuple([frozen(entry, depth + 1) for entry in one])
        if isinstance(one, str) or (isinstance(one, int | float) and abs(one) <= MAX_AMOUNT):
            return one
        raise InvalidRequest(f"contains {shown(one)}: use strings, numbers up to 2^53-1, true, false and lists of them")

    frozen_value: tuple[Any, ...] = frozen(value, 0)
    return frozen_value


_NAME = {"type": "string", "pattern": NAME_PATTERN}
_NAMES = {"type": "array", "items": _NAME, "maxItems": MAX_NAMES}
_LISTS = {"type": "array", "items": {**_NAMES, "minItems": 1}, "maxItems": MAX_PARTS}
_LEAVES: list[dict[str, Any]] = [{"type": kind} for kind in ("string", "number", "boolean")]
_QUERY = {"type": "array", "items": {"anyOf": [*_LEAVES, {"type": "array"}]}, "maxItems": MAX_QUERY_ENTRIES}

Traits = Annotated[frozenset[Trait], Field(max_length=MAX_TRAITS, json_schema_extra=as_list)]
SomeTraits = Annotated[frozenset[Trait], Field(max_length=MAX_ALTERNATIVES, json_schema_extra=as_filled_list)]
Names = Annotated[frozenset[Name], Field(max_length=MAX_NAMES, json_schema_extra=as_list)]
Hosts = Annotated[frozenset[Host], Field(max_length=MAX_NAMES, json_schema_extra=as_list)]
NameOrNames = Annotated[frozenset[str], PlainValidator(_name_or_names), WithJsonSchema({"anyOf": [_NAME, _NAMES]})]
NameOrLists = Annotated[
    tuple[frozenset[str], ...], PlainValidator(_name_or_lists), WithJsonSchema({"anyOf": [_NAME, _NAMES, _LISTS]})
]
Query = Annotated[tuple[Any, ...], PlainValidator(_frozen_query), WithJsonSchema(_QUERY)]
