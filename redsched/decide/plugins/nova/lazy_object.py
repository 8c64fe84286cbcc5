"""Stand-ins for Nova's objects, whose attributes are computed on access."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar


class LazyObject:
    """An object with the attributes of `_readers` (each called once, with the stand-in) and those given.

    Like Nova's objects it supports `"name" in it` and assignment, because classes for Nova set attributes of hosts. A
    missing attribute raises an AttributeError that names Nova's class. Nova's classes look up names from requests as
    attributes, so what is not an attribute in Nova begins with an underscore.
    """

    _kind: ClassVar[str] = "object"
    _readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        read = self._readers.get(name)
        if read is None:
            raise AttributeError(f"redsched's stand-in for Nova's {self._kind} has no attribute {name!r}")
        value = self.__dict__[name] = read(self)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._readers or (name in self.__dict__ and not str(name).startswith("_"))

    def obj_attr_is_set(self, name: str) -> bool:
        """Return whether it has the attribute (Nova's name for this method)."""
        return name in self


def make_object(kind: str, **given: Any) -> LazyObject:
    """Make a stand-in for a small object from all its attributes."""
    return type(kind, (LazyObject,), {"_kind": kind})(**given)  # type: ignore[no-any-return]


def constant(value: Any) -> Callable[[Any], Any]:
    """Make a reader that returns a copy of a constant, for attributes that redsched has no data for."""
    return lambda _: copy(value)
