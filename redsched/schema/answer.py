"""Base of the response models: each describes a response, and builds it from the scheduler's dataclass.

A field is read from the attribute of its name, or from the source in `From`, and converted by its type: another Answer
by its own model, a `set` or `dict` in sorted order, a `Mapping` in its own. A field that equals its default is omitted.
A class names the dataclass that it shows; if that lacks an attribute, the import fails.

    class ReportAnswer(Answer, shows=ReportResult):
        outcome: str
        version: int

    ReportAnswer.of(result)  # {"outcome": "OK", "version": 7}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

Show = Callable[[Any], Any]


@dataclass(frozen=True)
class From:
    """The source of a field: an attribute path of the dataclass (`group.name`), or a function of the dataclass."""

    source: str | Callable[[Any], Any]


class Answer(BaseModel):
    """Base class of responses."""

    # Built when first used: the command line only calls `of`, which needs no validator.
    model_config = ConfigDict(extra="forbid", defer_build=True)
    shown: ClassVar[type | None] = None
    """The dataclass that it shows."""

    def __init_subclass__(cls, shows: type | None = None, **more: Any) -> None:
        """Accept the class argument `shows`, which is checked once the fields are known."""
        super().__init_subclass__(**more)
        if shows is not None:
            cls.shown = shows

    @classmethod
    def __pydantic_init_subclass__(cls, shows: type | None = None, **_: Any) -> None:
        """Check that the dataclass has the attributes that the fields are read from. Raises TypeError."""
        for name in cls.model_fields if shows else ():
            source = source_of(cls, name).source
            if isinstance(source, str) and not _has(shows, source.partition(".")[0]):
                raise TypeError(f"{cls.__name__}.{name} is read from {source}, which {shows} does not have")

    @classmethod
    def of(cls, thing: Any) -> dict[str, Any]:
        """Return the response for a dataclass, ready for pydantic's serialiser."""
        return _builder(cls)(thing)


@cache
def _builder(model: type[Answer]) -> Callable[[Any], dict[str, Any]]:
    """Return the function that builds a response, from a plan that is made once for each model."""
    plan = [(name, _reader(model, name)) for name in model.model_fields]
    optional = [(name, one) for name, one in model.model_fields.items() if not one.is_required()]
    defaults = [(name, one.get_default(call_default_factory=True)) for name, one in optional]

    def build(thing: Any) -> dict[str, Any]:
        found = {name: read(thing) for name, read in plan}
        for name, default in defaults:
            if found[name] == default:
                del found[name]
        return found

    return build


def _reader(model: type[Answer], name: str) -> Show:
    """Return the function that reads a field from the dataclass and converts it."""
    source = source_of(model, name).source
    if not isinstance(source, str):
        return source
    read, show = attrgetter(source), _show(model.model_fields[name].annotation)
    return read if show is None else lambda thing: show(read(thing))


def source_of(model: type[Answer], name: str) -> From:
    """Return the source of a field."""
    return next((one for one in model.model_fields[name].metadata if isinstance(one, From)), From(name))


def _has(shown: Any, name: str) -> bool:
    return name in shown.__dataclass_fields__ or isinstance(getattr(shown, name, None), property)


def _show(annotation: Any) -> Show | None:
    """Return the function that converts a value to this type; None if no conversion is needed."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (inner,) = (_show(one) for one in arguments if one is not NoneType)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if isinstance(annotation, type) and issubclass(annotation, Answer):
        return annotation.of
    if origin is dict:
        return _mapping(_show(arguments[1]))
    return _sequence(_show(arguments[0])) if origin is list else None


def _mapping(show: Show | None) -> Show:
    def shown(value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: show(one) for name, one in sorted(value.items())} if show else dict(sorted(value.items()))

    return shown


def _sequence(show: Show | None) -> Show:
    def shown(value: Any) -> list[Any]:
        ordered = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [show(one) for one in ordered] if show else list(ordered)

    return shown
