"""What stands in for an object of Nova: attributes that are worked out when they are asked for."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar


class StandIn:
    """Has the attributes of `readers` (each called once, with the stand-in) and those given.

    Like Nova's objects it answers `"name" in it`, and like them it may be written to: classes for Nova leave notes on
    hosts. An attribute that it does not have is an AttributeError which says whose it would be.
    """

    kind: ClassVar[str] = "object"
    readers: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        read = self.readers.get(name)
        if read is None:
            raise AttributeError(f"redsched's stand-in for Nova's {self.kind} has no attribute {name!r}")
        value = self.__dict__[name] = read(self)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self.readers or name in self.__dict__

    def obj_attr_is_set(self, name: str) -> bool:
        """Whether it has the attribute (Nova's name for it)."""
        return name in self


def made(kind: str, **given: Any) -> StandIn:
    """Make a stand-in for a small object, all of whose attributes are given."""
    return type(kind, (StandIn,), {"kind": kind})(**given)  # type: ignore[no-any-return]


def always(value: Any) -> Callable[[Any], Any]:
    """Make a reader of what redsched never has more to say about; each stand-in gets a copy of its own."""
    return lambda _: copy(value)
