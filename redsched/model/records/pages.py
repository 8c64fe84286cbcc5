"""Pages of lists, and the responses that they are: `{"hosts": [...], "next": "h17"}`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import GenericAlias
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict
from typing_extensions import TypedDict

from redsched.model.claims import Claim
from redsched.model.record import adapter
from redsched.model.records.declared import AggregateView, QuotaView, ServerGroupView, SharedPoolView
from redsched.model.records.events import EventJson
from redsched.model.records.hosts import HostView

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. Pass `next` as `after` to get the next page; None on the last page."""

    items: tuple[T, ...]
    next: str | None = None


class PageOf(Generic[T]):
    """The response that is a page of records of one kind, whose list is called `plural`."""

    def __init__(self, name: str, plural: str, record: type[T]) -> None:
        self.name, self.plural, self.record = name, plural, record

    @cached_property
    def type(self) -> Any:
        """The type that describes the response."""
        make: Any = TypedDict  # at run time, which type checkers do not follow
        found = make(self.name, {self.plural: GenericAlias(list, self.record), "next": str | None})
        found.__pydantic_config__ = ConfigDict(extra="forbid")
        found.__doc__ = (
            f"A page of {self.plural.replace('_', ' ')}. `next` is the `after` of the next page, null on the last one."
        )
        return found

    def json(self, page: Page[T]) -> bytes:
        """Return a page as JSON text."""
        return adapter(self.type).dump_json(self._members(page))

    def values(self, page: Page[T]) -> dict[str, Any]:
        """Return a page as JSON values."""
        found: dict[str, Any] = adapter(self.type).dump_python(self._members(page), mode="json")
        return found

    def read(self, text: bytes) -> Page[T]:
        """Return the page of a response."""
        found = adapter(self.type).validate_json(text, extra="ignore")
        return Page(tuple(found[self.plural]), found["next"])

    def _members(self, page: Page[T]) -> Mapping[str, Any]:
        return {self.plural: list(page.items), "next": page.next}


CLAIMS = PageOf("ClaimPage", "claims", Claim)
HOSTS = PageOf("HostPage", "hosts", HostView)
AGGREGATES = PageOf("AggregatePage", "aggregates", AggregateView)
SERVER_GROUPS = PageOf("ServerGroupPage", "server_groups", ServerGroupView)
SHARED_POOLS = PageOf("SharedPoolPage", "shared_pools", SharedPoolView)
QUOTAS = PageOf("QuotaPage", "quotas", QuotaView)
EVENTS = PageOf("EventPage", "events", EventJson)
PAGES: tuple[PageOf[Any], ...] = (CLAIMS, HOSTS, AGGREGATES, SERVER_GROUPS, SHARED_POOLS, QUOTAS, EVENTS)
