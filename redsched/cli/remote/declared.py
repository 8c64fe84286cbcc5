"""Quotas, aggregates, server groups and shared pools over REST."""

import re
from dataclasses import replace
from typing import Any

import httpx

from redsched.cli.remote.base import Part, body_of
from redsched.client import calls, operator_calls
from redsched.client.exchange import Call
from redsched.errors import StoreUnavailable
from redsched.model import Aggregate, Quota, ServerGroup, SharedPool
from redsched.scheduler import AggregateView, Page, QuotaView, ServerGroupView, SharedPoolView
from redsched.store.codec.tags import Existence, IfMatch

_TAG = re.compile(r'"[^"]+"')


class _Declared(Part):
    """What the parts of all kinds share."""

    async def etag(self, call: Call[Any]) -> str:
        """Return the tag of an object that this call would return. Raises StoreUnavailable if the reply has none."""
        # A proxy that compresses a reply changes its tag.
        plain = replace(call, read=lambda reply: reply.headers.get("ETag", ""), headers={"Accept-Encoding": "identity"})
        tag: str = await self.client.run(plain)
        if not _TAG.fullmatch(tag):
            found = f"the ETag {tag[:100]}" if tag else "no ETag"
            raise StoreUnavailable(f"the reply has {found}: a proxy has changed it; turn off its compression")
        return tag.strip('"')

    async def declare(self, call: Call[Any], if_match: IfMatch = None) -> tuple[Any, bool]:
        """Declare an object on a condition, and return it and whether it is new."""

        def read(reply: httpx.Response) -> tuple[Any, bool]:
            return call.read(reply), reply.status_code == httpx.codes.CREATED

        shown, new = await self.client.run(replace(call, read=read, headers=_headers(if_match)))
        return shown, new


def _headers(if_match: IfMatch) -> dict[str, str]:
    match if_match:
        case None:
            return {}
        case Existence.ABSENT:
            return {"If-None-Match": "*"}
        case Existence.EXISTS:
            return {"If-Match": "*"}
        case tags:
            return {"If-Match": ", ".join(f'"{tag}"' for tag in tags)}


class RemoteQuotas(_Declared):
    """As `Scheduler.quotas`."""

    async def get(self, project: str) -> QuotaView:
        """Return a quota."""
        return await self.client.run(calls.get_quota(project))

    async def list(self, limit: int = 100, after: str = "") -> Page[QuotaView]:
        """Return a page of quotas."""
        return await self.page(calls.list_quotas(page_size=limit, after=after))

    async def put(self, quota: Quota) -> tuple[QuotaView, bool]:
        """Declare a quota."""
        return await self.declare(operator_calls.put_quota(quota.project, quota.limits))

    async def delete(self, project: str) -> None:
        """Delete a quota."""
        await self.client.run(operator_calls.delete_quota(project))


class RemoteAggregates(_Declared):
    """As `Scheduler.aggregates`."""

    async def get(self, name: str) -> AggregateView:
        """Return an aggregate."""
        return await self.client.run(operator_calls.get_aggregate(name))

    async def tag(self, name: str) -> str:
        """Return the tag of an aggregate, for `if_match`."""
        return await self.etag(operator_calls.get_aggregate(name))

    async def list(self, limit: int = 100, after: str = "") -> Page[AggregateView]:
        """Return a page of aggregates."""
        return await self.page(operator_calls.list_aggregates(page_size=limit, after=after))

    async def put(self, one: Aggregate, if_match: IfMatch = None) -> tuple[AggregateView, bool]:
        """Declare an aggregate."""
        return await self.declare(operator_calls.put_aggregate(one.name, one.metadata, one.hosts), if_match)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete an aggregate."""
        await self.client.run(operator_calls.delete_aggregate(name, force))


class RemoteServerGroups(_Declared):
    """As `Scheduler.server_groups`."""

    async def get(self, name: str) -> ServerGroupView:
        """Return a server group."""
        return await self.client.run(operator_calls.get_server_group(name))

    async def tag(self, name: str) -> str:
        """Return the tag of a server group, for `if_match`."""
        return await self.etag(operator_calls.get_server_group(name))

    async def list(self, limit: int = 100, after: str = "") -> Page[ServerGroupView]:
        """Return a page of server groups."""
        return await self.page(operator_calls.list_server_groups(page_size=limit, after=after))

    async def put(self, one: ServerGroup, if_match: IfMatch = None) -> tuple[ServerGroupView, bool]:
        """Declare a server group."""
        return await self.declare(operator_calls.put_server_group(one.name, body_of(one)), if_match)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete a server group."""
        await self.client.run(operator_calls.delete_server_group(name, force))


class RemoteSharedPools(_Declared):
    """As `Scheduler.pools`."""

    async def get(self, name: str) -> SharedPoolView:
        """Return a shared pool."""
        return await self.client.run(operator_calls.get_shared_pool(name))

    async def tag(self, name: str) -> str:
        """Return the tag of a shared pool, for `if_match`."""
        return await self.etag(operator_calls.get_shared_pool(name))

    async def list(self, limit: int = 100, after: str = "") -> Page[SharedPoolView]:
        """Return a page of shared pools."""
        return await self.page(operator_calls.list_shared_pools(page_size=limit, after=after))

    async def put(self, one: SharedPool, cell: str = "c1", if_match: IfMatch = None) -> tuple[SharedPoolView, bool]:
        """Declare a shared pool."""
        return await self.declare(operator_calls.put_shared_pool(one.name, {**body_of(one), "cell": cell}), if_match)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete a shared pool."""
        await self.client.run(operator_calls.delete_shared_pool(name, force))
