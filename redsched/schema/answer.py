"""Base of the response models: each describes a response, and builds it from the scheduler's dataclass.

A field is read from the attribute of its name, or from the source in `From`, and converted by its type: another Answer
by its own model, sets and maps in sorted order. A class names the dataclass that it shows; if that lacks an attribute,
the import fails.

    class QuotaAnswer(Answer, shows=QuotaView):
        project: str
        limits: Amounts

    QuotaAnswer.of(view)  # {"project": "web", "limits": {"VCPU": 100}}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

Show = Callable[[Any], Any]


@dataclass(frozen=True)
class From:
    """The source of a field: an attribute path of the dataclass (`group.name`), or a function of the dataclass."""

    source: str | Callable[[Any], Any]


class Answer(BaseModel):
    """Base class of responses."""

    model_config = ConfigDict(extra="forbid")

    def __init_subclass__(cls, shows: type | None = None, **more: Any) -> None:
        """Accept the class argument `shows`, which is checked once the fields are known."""
        super().__init_subclass__(**more)

    @classmethod
    def __pydantic_init_subclass__(cls, shows: type | None = None, **_: Any) -> None:
        """Check that the dataclass has the attributes that the fields are read from. Raises TypeError."""
        for name in cls.model_fields if shows else ():
            source = _source(cls, name)
            if isinstance(source, str) and not _has(shows, source.partition(".")[0]):
                raise TypeError(f"{cls.__name__}.{name} is read from {source}, which {shows} does not have")

    @classmethod
    def of(cls, thing: Any) -> dict[str, Any]:
        """Return the response for a dataclass, ready for pydantic's serialiser."""
        return _builder(cls)(thing)


@cache
def _builder(model: type[Answer]) -> Callable[[Any], dict[str, Any]]:
    """Return the function that builds a response: it reads all attributes at once, then converts and computes."""
    sources = {name: _source(model, name) for name in model.model_fields}
    attributes = {name: source for name, source in sources.items() if isinstance(source, str)}
    computed = [(name, source) for name, source in sources.items() if not isinstance(source, str)]
    shows = ((name, _show(model.model_fields[name].annotation)) for name in attributes)
    shown = [(name, show) for name, show in shows if show]
    names, order, read = tuple(attributes), tuple(sources), _reader(tuple(attributes.values()))

    def plain(thing: Any) -> dict[str, Any]:
        return dict(zip(names, read(thing), strict=True))

    def build(thing: Any) -> dict[str, Any]:
        found = dict(zip(names, read(thing), strict=True))
        for name, show in shown:
            found[name] = show(found[name])
        for name, source in computed:
            found[name] = source(thing)
        return {name: found[name] for name in order} if computed else found

    return build if shown or computed else plain


def _reader(attributes: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    getter = attrgetter(*attributes)
    return getter if len(attributes) > 1 else lambda thing: (getter(thing),)


def _source(model: type[Answer], name: str) -> str | Callable[[Any], Any]:
    return next((one.source for one in model.model_fields[name].metadata if isinstance(one, From)), name)


def _has(shown: Any, name: str) -> bool:
    return name in shown.__dataclass_fields__ or isinstance(getattr(shown, name, None), property)


def _show(annotation: Any) -> Show | None:
    """Return the function that converts a value to this type; None if no conversion is needed."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (inner,) = (_show(one) for one in arguments if one is not NoneType)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if isinstance(annotation, type) and issubclass(annotation, Answer):
        return _builder(annotation)
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
