"""Signatures as `help()` is to print them: with short names of types, and without what validation needs."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

P = ParamSpec("P")
T = TypeVar("T")

_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")
_LONGEST_DEFAULT = 30


class Shown:
    """Stands for a type or a default in a signature, and is printed as this text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def shown_type(annotation: Any) -> Any:
    """Return how a type is printed: without the modules of its names."""
    if annotation is inspect.Signature.empty:
        return annotation
    return Shown(_MODULES.sub("", inspect.formatannotation(annotation)).replace("NoneType", "None"))


def shown_signature(
    function: Callable[..., Any], returned: Callable[[Any], Any] = shown_type, hints: Mapping[str, Any] | None = None
) -> inspect.Signature:
    """Return the signature of a function with short types. `hints`: its types, if they are not those it declares."""
    own = inspect.signature(function)
    types = {name: one.annotation for name, one in own.parameters.items()} if hints is None else hints
    parameters = [
        one.replace(
            annotation=shown_type(types[name]) if name in types else inspect.Parameter.empty,
            default=_shown_default(one.default),
        )
        for name, one in own.parameters.items()
    ]
    return own.replace(parameters=parameters, return_annotation=returned(own.return_annotation))


def make_readable(record: type[Any]) -> None:
    """Give the constructor of a dataclass a short signature, and a docstring with the descriptions of its fields."""
    init: Any = record.__init__
    init.__signature__ = shown_signature(init, hints=get_type_hints(record))
    described = {one.name: _description(one.type) for one in dataclasses.fields(record)}
    init.__doc__ = "\n".join(f"{name}: {text}" for name, text in described.items() if text)


def _description(annotation: Any) -> str:
    if get_origin(annotation) is not Annotated:
        return ""
    return next((text for one in get_args(annotation) if (text := getattr(one, "description", None))), "")


def _shown_default(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    text = repr(default.value if isinstance(default, Enum) else default)
    return Shown(text if len(text) <= _LONGEST_DEFAULT and not text.startswith("<") else "...")


def readable(method: Callable[P, T]) -> Callable[P, T]:
    """Let `help()` print a method with short names of types."""
    described: Any = method
    described.__signature__ = shown_signature(method)
    return method
