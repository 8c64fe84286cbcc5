"""Parts of calls: queries, lists page by page, and how replies are read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from difflib import get_close_matches
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from redsched.client.exchange import Call, Query, Read
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.record import adapter
from redsched.model.records.pages import Page
from redsched.model.validation import check_name
from redsched.schema.pages import PageOf

T = TypeVar("T")
Model = TypeVar("Model")
Names = str | Iterable[str]
Asked = Request | Mapping[str, int]
"""A request, or its amounts by class."""


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list: the call for its page after a position; '' for the first page."""

    after: Callable[[str], Call[Page[T]]]


def request_of(asked: Asked, fields: Mapping[str, Any]) -> Request:
    """Return the request with these fields set. Raises InvalidRequest."""
    for name in fields.keys() - _FIELDS:
        closest = get_close_matches(name, _FIELDS, 1)
        hint = f"did you mean {closest[0]}?" if closest else f"use {', '.join(sorted(_FIELDS))}"
        raise InvalidRequest(f"a request has no field {name!r}: {hint}")
    return replace(asked, **fields) if isinstance(asked, Request) else Request(asked, **fields)


_FIELDS = {one.name for one in dataclass_fields(Request)}


def reader(model: type[Model]) -> Read[Model]:
    """Return the function that reads a reply. Fields of a newer API are ignored; by a model, kept as attributes."""
    read = adapter(model).validate_json
    return lambda reply: read(reply.content, extra="ignore" if is_dataclass(model) else "allow")


def reader_if_any(model: type[Model]) -> Read[Model | None]:
    """Return the function that reads a reply that may be empty: None then."""
    read = reader(model)
    return lambda reply: read(reply) if reply.content else None


def pages(
    path: str,
    filters: Query,
    model: type[Model],
    items: Callable[[Model], Sequence[T]],
    first: str = "",
    method: str = "GET",
) -> Pages[T]:
    """Return a list at a path, whose pages are responses of `model` with these `items`. `first`: where it begins."""
    read = reader(model)

    def page(reply: httpx.Response) -> Page[T]:
        found = read(reply)
        following: str | None = getattr(found, "next")  # noqa: B009 - every page has it
        return Page(tuple(items(found)), following)

    def after(position: str) -> Call[Page[T]]:
        return Call(method, path, page, [*filters, *query(after=position or first)], is_repeatable=True)

    return Pages(after)


def listed(path: str, filters: Query, kind: PageOf[T], first: str = "") -> Pages[T]:
    """Return a list of records at a path. `first`: where it begins."""

    def after(position: str) -> Call[Page[T]]:
        asked = [*filters, *query(after=position or first)]
        return Call("GET", path, lambda reply: kind.read(reply.content), asked, is_repeatable=True)

    return Pages(after)


def path_of(kind: str, name: str) -> str:
    """Return the path of an object, such as `/v1/hosts/h1`. Raises InvalidRequest for a name that none can have."""
    return f"/v1/{kind}/{quote(check_name(_NAMES.get(kind, 'name'), name))}"


_NAMES = {"hosts": "host", "claims": "claim id", "quotas": "project"}
"""What errors call the name of an object, where it has a term of its own."""


def query(**given: Names | int | bool) -> Query:
    """Return query parameters. '' and () are none, and a flag that is not set is none either."""
    return [(name, one) for name, value in given.items() for one in _values(value) if one]


def _values(value: Names | int | bool) -> Iterable[str]:
    if isinstance(value, bool):
        return ("true",) if value else ()
    if isinstance(value, int):
        return (str(value),)
    return (value,) if isinstance(value, str) else value
