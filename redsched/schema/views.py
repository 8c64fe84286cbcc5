"""The dataclass that a response shows, for what gets responses from the API and works on what the library returns.

The inverse of `Answer.of`, by the same declarations. What a response leaves out has its default in the dataclass.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from redsched.errors import RedschedError
from redsched.model import Claim
from redsched.rest.problems import ERRORS
from redsched.scheduler import BulkResult, EventView
from redsched.schema.answer import Answer, source_of
from redsched.schema.responses import Alternate, BulkClaimAnswer, EventAnswer

Read = Callable[[Any], Any]


def view_of(answer: Answer) -> Any:
    """Return the dataclass that a response shows."""
    return _maker(type(answer))(answer)


def _event(answer: EventAnswer) -> EventView:
    """Return an event: every further member of its response is one of its facts."""
    known = {name: getattr(answer, name) for name in EventAnswer.model_fields}
    facts = {name: str(getattr(answer, name)) for name in answer.model_fields_set - known.keys()}
    return EventView(**known, facts=facts)


def _bulk(answer: BulkClaimAnswer) -> BulkResult:
    """Return the result for a claim, of which a response has only what identifies it."""
    claim = Claim(answer.claim_id, "", answer.host, answer.state, "", {}, answer.project)
    if (problem := answer.problem) is None:
        return BulkResult(claim, answer.outcome)
    known = ERRORS.get(problem.type.rpartition("/")[2], RedschedError)
    return BulkResult(claim, answer.outcome, known(problem.detail, problem.model_extra or {}))


OWN: Mapping[type[Answer], Read] = {
    Alternate: lambda answer: answer.host,
    BulkClaimAnswer: _bulk,
    EventAnswer: _event,
}
"""Responses whose fields are not those of the dataclass, with what restores it."""


@cache
def _maker(model: type[Answer]) -> Read:
    """Return the function that restores the dataclass from a response."""
    if own := next((one for one in model.__mro__ if one in OWN), None):
        return OWN[own]
    shown = next(one.shown for one in model.__mro__ if issubclass(one, Answer) and one.shown is not None)
    hints, names = get_type_hints(shown), {one.name for one in fields(shown)}
    parts = _parts(model, hints)
    given = {name: read for name, read in parts.items() if name in names}  # the others are properties

    def make(answer: Answer) -> Any:
        return shown(**{name: read(answer) for name, read in given.items()})

    return make


def _parts(model: type[Answer], hints: Mapping[str, Any]) -> dict[str, Read]:
    """Return how each attribute of the dataclass is read from a response."""
    found: dict[str, Read] = {}
    nested: dict[str, dict[str, Read]] = {}
    for name in model.model_fields:
        source = source_of(model, name)
        if not isinstance(source.source, str):
            if source.attribute:
                found[source.attribute] = _restored(name, source.back)
            continue
        attribute, _, inner = source.source.partition(".")
        if attribute not in hints:
            continue
        if inner:
            nested.setdefault(attribute, {})[inner] = _read(name, get_type_hints(hints[attribute])[inner])
        else:
            found[attribute] = _read(name, hints[attribute])
    return found | {name: _of(hints[name], parts) for name, parts in nested.items()}


def _of(kind: Any, parts: Mapping[str, Read]) -> Read:
    return lambda answer: kind(**{name: read(answer) for name, read in parts.items()})


def _restored(name: str, back: Read) -> Read:
    return lambda answer: back(getattr(answer, name))


def _read(name: str, hint: Any) -> Read:
    convert = _converter(hint)
    return lambda answer: convert(getattr(answer, name))


def _converter(hint: Any) -> Read:
    """Return the function that converts a value of a response to this type of an attribute."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = _converter(next(one for one in arguments if one is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin in (tuple, frozenset):
        make, item = origin, _converter(arguments[0])
        return lambda value: make(map(item, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        item = _converter(arguments[1])
        return lambda value: {name: item(one) for name, one in value.items()}
    if isinstance(origin, type):  # another sequence
        item = _converter(arguments[0])
        return lambda value: tuple(map(item, value))
    return _plain


def _plain(value: Any) -> Any:
    return view_of(value) if isinstance(value, Answer) else value
