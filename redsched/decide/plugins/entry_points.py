"""User-supplied filters, weighers and policies: entry points of any installed package. See docs/own-code.md.

redsched.filters     a Filter: called with a request, yields Rules
redsched.weighers    a Weigher, of the entry point's name
redsched.policies    a mapping of weighers to multipliers
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.rules import Filter, Rows, Rule
from redsched.decide.scoring.weigher import Weigher
from redsched.errors import InvalidRequest, PluginError
from redsched.model import Request
from redsched.model.validation import check_name, shown

FILTERS = "redsched.filters"
WEIGHERS = "redsched.weighers"
POLICIES = "redsched.policies"


@dataclass(frozen=True, slots=True)
class Plugins:
    """All installed plugins, in the order of the entry points' names."""

    filters: tuple[Filter, ...]
    weighers: Mapping[str, Weigher]
    policies: Mapping[str, Mapping[str, float]]


@cache
def own_code() -> Plugins:
    """Load every entry point, once per process.

    Raises InvalidRequest if one cannot be loaded, does not match its group, or has a name already in use.
    """
    return Plugins(
        filters=tuple(_filter(point, found) for point, found in _loaded(FILTERS)),
        weighers={point.name: _weigher(point, found) for point, found in _loaded(WEIGHERS)},
        policies={point.name: _policy(point, found) for point, found in _loaded(POLICIES)},
    )


def _loaded(group: str) -> Iterator[tuple[EntryPoint, Any]]:
    seen: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda one: (one.name, one.value)):
        if point.name in seen:
            raise InvalidRequest(f"{_named(point)} has the name of {seen[point.name].value}: give it another")
        seen[point.name] = point
        try:
            found = point.load()
        except Exception as error:  # a plugin's module may raise anything
            raise InvalidRequest(f"{_named(point)} cannot be loaded: {type(error).__name__}: {error}") from error
        yield check_point(point), found


def check_point(point: EntryPoint) -> EntryPoint:
    """Return the entry point if its name is valid for a weigher or policy, else raise InvalidRequest."""
    check_name(f"entry point of {point.group}", point.name)
    return point


def _filter(point: EntryPoint, found: Any) -> Filter:
    if not callable(found):
        raise InvalidRequest(f"{_named(point)} is {shown(found)}: it must be a function of a request that yields Rules")

    def rules(request: Request) -> Iterator[Rule]:
        for rule in _calling(point, lambda: list(found(request))):
            if not isinstance(rule, Rule):
                raise PluginError(f"{_named(point)} yielded {shown(rule)}: it must yield redsched.Rule")
            yield replace(rule, passes=_passes(point, rule), detail=_detail(point, rule))

    return rules


def _passes(point: EntryPoint, rule: Rule) -> Callable[[Columns, Rows], Any]:
    def passes(columns: Columns, rows: Rows) -> Any:
        return _checked(point, columns, rows, np.bool_, _calling(point, lambda: rule.passes(columns, rows)))

    return passes


def _detail(point: EntryPoint, rule: Rule) -> Callable[[Columns, int], str]:
    return lambda columns, row: str(_calling(point, lambda: rule.detail(columns, row)))


def _weigher(point: EntryPoint, found: Any) -> Weigher:
    if not isinstance(found, Weigher) or found.name != point.name:
        raise InvalidRequest(f"{_named(point)} is {shown(found)}: it must be a Weigher with the name {point.name!r}")

    def raw(columns: Columns, request: Request, rows: Rows) -> Any:
        values = _calling(point, lambda: found.raw(columns, request, rows))
        return _checked(point, columns, rows, np.float64, values)

    return replace(found, raw=raw)


def _policy(point: EntryPoint, found: Any) -> Mapping[str, float]:
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and _is_number(multiplier) for name, multiplier in found.items()
    ):
        raise InvalidRequest(f"{_named(point)} is {shown(found)}: it must map names of weighers to multipliers")
    return {name: float(multiplier) for name, multiplier in found.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _calling(point: EntryPoint, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # a plugin may raise anything, and the log must name it
        raise PluginError(f"{_named(point)} failed: {type(error).__name__}: {error}") from error


def _checked(point: EntryPoint, columns: Columns, rows: Rows, dtype: type[np.generic], values: Any) -> Any:
    """Return the values if there is one for each row, of the right type; else they would be misinterpreted."""
    given = np.asarray(values)
    wanted = np.shape(columns.present[rows])
    if given.shape != wanted or not np.can_cast(given.dtype, dtype, "safe"):
        raise PluginError(
            f"{_named(point)} returned {given.dtype} of shape {given.shape}: "
            f"it must return {np.dtype(dtype)} of shape {wanted}, one for each row"
        )
    return given.astype(dtype, copy=False)[()]


def _named(point: EntryPoint) -> str:
    return f"entry point {point.name!r} of {point.group} ({point.value})"
