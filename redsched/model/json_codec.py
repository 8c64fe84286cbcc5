"""Canonical JSON of dataclasses and back: for digests, request shapes, and the requests that the store keeps.

Canonical means that equal content gives equal text, regardless of the order in which it was written. A request's text
omits fields with their default, so that a field added by a later release changes no digest.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from redsched.errors import InvalidRequest

T = TypeVar("T")

_AS_THEY_ARE = (str, int, float)
as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""Return a JSON value as canonical text."""


class CustomJson:
    """A dataclass that chooses itself which of its fields are written, and how."""

    __slots__ = ()

    def json_fields(self) -> dict[str, Any]:
        """Return the fields to write, as JSON values."""
        raise NotImplementedError


class Fields:
    """Some fields of a dataclass, prepared so that they can be read in one call."""

    def __init__(self, names: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        self._names = names
        self._defaults = tuple(defaults[name] for name in names)
        self._values_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)

    def of(self, thing: Any) -> dict[str, Any]:
        """Return the values of these fields as JSON values, omitting those with their default."""
        return {
            name: _plain(value)
            for name, value, default in zip(self._names, self._values_of(thing), self._defaults, strict=True)
            # Most values are the default object itself.
            if value is not default and value != default
        }


def _plain(value: Any) -> Any:
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, CustomJson):
        return value.json_fields()
    if isinstance(value, tuple):
        plain = [_plain(one) for one in value]
        return sorted(plain) if value and all(isinstance(one, frozenset) for one in value) else plain
    if isinstance(value, (dict, Mapping)):
        return {key: _plain(one) for key, one in value.items()}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def from_text(text: str, of: type[T], names: Mapping[str, Any]) -> T:
    """Parse a text into the dataclass `of`. `names` resolves types that its annotations name before their definition.

    Raises InvalidRequest if the text is malformed or has something that this release does not know.
    """
    try:
        found: T = _made(of, json.loads(text), tuple(names.items()))
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        # InvalidRequest is a ValueError too; include its message about the field in the sentence.
        raise InvalidRequest(f"not a {of.__name__} in JSON: {error}") from error
    return found


def _made(hint: Any, value: Any, names: tuple[tuple[str, Any], ...]) -> Any:
    """Convert a JSON value to the type of the hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return None if value is None else _made(arguments[0], value, names)
    if origin is tuple:
        return tuple(_made(arguments[0], one, names) for one in value)
    if origin is frozenset:
        return frozenset(value)
    if origin is Mapping:
        return {name: _made(arguments[1], one, names) for name, one in value.items()}
    if hint is Any and isinstance(value, list):
        return tuple(_made(Any, one, names) for one in value)
    if is_dataclass(hint):
        return _dataclass(hint, value, names)
    return hint(value) if isinstance(hint, type) and issubclass(hint, str) else value


def _dataclass(of: Any, value: Mapping[str, Any], names: tuple[tuple[str, Any], ...]) -> Any:
    hints = _hints(of, names)
    if unknown := sorted(value.keys() - hints.keys()):
        raise InvalidRequest(f"{', '.join(unknown)} of {of.__name__} is not known to this release")
    return of(**{name: _made(hints[name], one, names) for name, one in value.items()})


@cache
def _hints(of: Any, names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return get_type_hints(of, localns=dict(names))
