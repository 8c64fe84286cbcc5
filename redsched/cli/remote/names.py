"""Names of objects over REST, for the completion of shells."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from redsched.cli.remote.base import MAX_PAGE
from redsched.cli.remote.fleet import RemoteFleet
from redsched.client import calls, operator_calls
from redsched.client.call_parts import Pages

LISTS: Mapping[str, tuple[Callable[..., Pages[Any]], str]] = {
    "hosts": (calls.list_hosts, "name"),
    "claims": (calls.list_claims, "claim_id"),
    "quotas": (calls.list_quotas, "project"),
    "aggregates": (operator_calls.list_aggregates, "name"),
    "server_groups": (operator_calls.list_server_groups, "name"),
    "shared_pools": (operator_calls.list_shared_pools, "name"),
}
"""The list of each kind of object, and the field with the name of one."""


async def names_of(remote: RemoteFleet, kind: str) -> AsyncIterator[str]:
    """Yield the names of all objects of a kind."""
    listing, field = LISTS[kind]
    async for one in remote.client.items(listing(page_size=MAX_PAGE)):
        yield getattr(one, field)
