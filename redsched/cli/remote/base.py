"""What all parts of a remote fleet share: calls, and pages of lists."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from redsched.client.async_client import AsyncClient
from redsched.client.call_parts import Pages
from redsched.client.exchange import Call
from redsched.model import OneOf, values_of
from redsched.scheduler import Page
from redsched.schema.answer import Answer
from redsched.schema.views import view_of

T = TypeVar("T")

MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a remote fleet."""

    client: AsyncClient

    async def view(self, call: Call[Any]) -> Any:
        """Return what the response of a call shows."""
        found = await self.client.run(call)
        return view_of(found) if isinstance(found, Answer) else found

    async def page(self, listing: Pages[Any], after: str = "") -> Page[Any]:
        """Return a page of a list after a position; '' for the first one."""
        found = await self.client.run(listing.after(after))
        items = (view_of(one) if isinstance(one, Answer) else one for one in found.items)
        return Page(tuple(items), found.next)


def names(**filters: OneOf) -> dict[str, Iterable[str]]:
    """Return filters of the library as those of the client."""
    return {name: [str(one) for one in values_of(given)] for name, given in filters.items()}


def body_of(thing: Any) -> dict[str, Any]:
    """Return the body that declares an object: its fields are those of the dataclass, and its name is in the path."""
    found: dict[str, Any] = to_jsonable_python(thing, exclude_none=True)
    return {name: value for name, value in found.items() if name != "name"}
