"""Dataclasses as canonical JSON and back: what digests and shapes are made of, and how the store keeps a request.

Canonical: the same content is the same text, whatever the order in which it was named. What has its default is left out
of a request, so that a field which a later release adds changes no digest.
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
"""Words as canonical JSON."""


class Worded:
    """A dataclass that says itself which of its fields are written, and how."""

    __slots__ = ()

    def words(self) -> dict[str, Any]:
        """The fields that are written, as JSON has them."""
        raise NotImplementedError


class Fields:
    """Some fields of a dataclass, made ready so that they are read in one go."""

    def __init__(self, names: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        self._names = names
        self._defaults = tuple(defaults[name] for name in names)
        self._values_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)

    def of(self, thing: Any) -> dict[str, Any]:
        """What these fields say, as JSON has it, but for those that have their default."""
        return {
            name: _plain(value)
            for name, value, default in zip(self._names, self._values_of(thing), self._defaults, strict=True)
            # Nearly all of them are the default itself.
            if value is not default and value != default
        }


def _plain(value: Any) -> Any:
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Worded):
        return value.words()
    if isinstance(value, tuple):
        plain = [_plain(one) for one in value]
        return sorted(plain) if value and all(isinstance(one, frozenset) for one in value) else plain
    if isinstance(value, (dict, Mapping)):
        return {key: _plain(one) for key, one in value.items()}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def from_text(text: str, of: type[T], names: Mapping[str, Any]) -> T:
    """The dataclass `of` that this is the text of; `names` are those its types name before they are there.

    Raises InvalidRequest for what is no such text, or says something that this release does not know.
    """
    try:
        found: T = _made(of, json.loads(text), tuple(names.items()))
    except (TypeError, ValueError, AttributeError) as error:
        # InvalidRequest is a ValueError too: what it says of the field belongs into the sentence.
        raise InvalidRequest(f"this is not the text of a {of.__name__}: {error}") from error
    return found


def _made(hint: Any, value: Any, names: tuple[tuple[str, Any], ...]) -> Any:
    """A JSON value as what the type hint says."""
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
