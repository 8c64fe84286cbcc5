"""What all parts of a remote fleet share: calls, and pages of lists."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from redsched.client.async_client import AsyncClient
from redsched.client.call_parts import Pages
from redsched.model import OneOf, values_of
from redsched.scheduler import Page

T = TypeVar("T")

MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a remote fleet."""

    client: AsyncClient

    async def page(self, listing: Pages[T], after: str = "") -> Page[T]:
        """Return a page of a list after a position; '' for the first one."""
        return await self.client.run(listing.after(after))


def names(**filters: OneOf) -> dict[str, Iterable[str]]:
    """Return filters of the library as those of the client."""
    return {name: [str(one) for one in values_of(given)] for name, given in filters.items()}


def body_of(thing: Any) -> dict[str, Any]:
    """Return the body that declares an object: its fields are those of the dataclass, and its name is in the path."""
    found: dict[str, Any] = to_jsonable_python(thing, exclude_none=True)
    return {name: value for name, value in found.items() if name != "name"}
