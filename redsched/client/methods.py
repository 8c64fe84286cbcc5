"""How the calls of the table look as methods of a client: their names and types, as `help()` prints them."""

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar, get_args

from redsched.model.readable import Shown, shown_signature, shown_type

P = ParamSpec("P")
T = TypeVar("T")

_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


class MethodHelp:
    """What `help()` shows of a call as a method. `returns`: how its result is printed; `{}` stands for its type."""

    def __init__(self, make: Callable[..., Any], returns: str = "{}") -> None:
        self._make, self._returns = make, returns
        self._name, self._owner = make.__name__, ""
        self._signatures: tuple[inspect.Signature, inspect.Signature] | None = None

    def named(self, owner: type[Any], name: str) -> None:
        """Record which method of which class the call is."""
        self._name, self._owner = name, owner.__qualname__

    def on(self, method: Callable[P, T], is_bound: bool) -> Callable[P, T]:
        """Return the method with this help. `is_bound`: whether it is one of an object, and not of the class."""
        shown: Any = update_wrapper(method, self._make)
        shown.__name__, shown.__qualname__ = self._name, f"{self._owner}.{self._name}"
        shown.__signature__ = self._both()[is_bound]
        del shown.__wrapped__
        return method

    def _both(self) -> tuple[inspect.Signature, inspect.Signature]:
        if self._signatures is None:
            bound = shown_signature(self._make, self._shown_result)
            self._signatures = bound.replace(parameters=[_SELF, *bound.parameters.values()]), bound
        return self._signatures

    def _shown_result(self, annotation: Any) -> Shown:
        [result] = get_args(annotation)
        return Shown(self._returns.format(shown_type(result)))


def readable(method: Callable[P, T]) -> Callable[P, T]:
    """Let `help()` print a method with short names of types."""
    described: Any = method
    described.__signature__ = shown_signature(method)
    return method
