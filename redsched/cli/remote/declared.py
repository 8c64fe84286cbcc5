"""Quotas, aggregates, server groups and shared pools over REST."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redsched.cli.remote.base import Part, body_of
from redsched.client import calls, operator_calls
from redsched.client.exchange import Call
from redsched.errors import NotFound
from redsched.model import Aggregate, Quota, ServerGroup, SharedPool
from redsched.scheduler import AggregateView, Page, QuotaView, ServerGroupView, SharedPoolView

View = TypeVar("View")


class _Declared(Part):
    """What the parts of all kinds share."""

    async def put_one(self, get: Callable[[], Awaitable[View]], call: Call[Any]) -> tuple[View, bool]:
        """Declare an object, and return it and whether it is new."""
        new = False
        try:
            await get()
        except NotFound:
            new = True
        return await self.view(call), new


class RemoteQuotas(_Declared):
    """As `Scheduler.quotas`."""

    async def get(self, project: str) -> QuotaView:
        """Return a quota."""
        found: QuotaView = await self.view(calls.get_quota(project))
        return found

    async def list(self, limit: int = 100, after: str = "") -> Page[QuotaView]:
        """Return a page of quotas."""
        return await self.page(calls.list_quotas(page_size=limit, after=after))

    async def put(self, quota: Quota) -> tuple[QuotaView, bool]:
        """Declare a quota."""
        return await self.put_one(
            lambda: self.get(quota.project), operator_calls.put_quota(quota.project, quota.limits)
        )

    async def delete(self, project: str) -> None:
        """Delete a quota."""
        await self.client.run(operator_calls.delete_quota(project))


class RemoteAggregates(_Declared):
    """As `Scheduler.aggregates`."""

    async def get(self, name: str) -> AggregateView:
        """Return an aggregate."""
        found: AggregateView = await self.view(operator_calls.get_aggregate(name))
        return found

    async def list(self, limit: int = 100, after: str = "") -> Page[AggregateView]:
        """Return a page of aggregates."""
        return await self.page(operator_calls.list_aggregates(page_size=limit, after=after))

    async def put(self, one: Aggregate) -> tuple[AggregateView, bool]:
        """Declare an aggregate."""
        call = operator_calls.put_aggregate(one.name, one.metadata, one.hosts)
        return await self.put_one(lambda: self.get(one.name), call)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete an aggregate."""
        await self.client.run(operator_calls.delete_aggregate(name, force))


class RemoteServerGroups(_Declared):
    """As `Scheduler.server_groups`."""

    async def get(self, name: str) -> ServerGroupView:
        """Return a server group."""
        found: ServerGroupView = await self.view(operator_calls.get_server_group(name))
        return found

    async def list(self, limit: int = 100, after: str = "") -> Page[ServerGroupView]:
        """Return a page of server groups."""
        return await self.page(operator_calls.list_server_groups(page_size=limit, after=after))

    async def put(self, one: ServerGroup) -> tuple[ServerGroupView, bool]:
        """Declare a server group."""
        call = operator_calls.put_server_group(one.name, body_of(one))
        return await self.put_one(lambda: self.get(one.name), call)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete a server group."""
        await self.client.run(operator_calls.delete_server_group(name, force))


class RemoteSharedPools(_Declared):
    """As `Scheduler.pools`."""

    async def get(self, name: str) -> SharedPoolView:
        """Return a shared pool."""
        found: SharedPoolView = await self.view(operator_calls.get_shared_pool(name))
        return found

    async def list(self, limit: int = 100, after: str = "") -> Page[SharedPoolView]:
        """Return a page of shared pools."""
        return await self.page(operator_calls.list_shared_pools(page_size=limit, after=after))

    async def put(self, one: SharedPool, cell: str = "c1") -> tuple[SharedPoolView, bool]:
        """Declare a shared pool."""
        call = operator_calls.put_shared_pool(one.name, {**body_of(one), "cell": cell})
        return await self.put_one(lambda: self.get(one.name), call)

    async def delete(self, name: str, force: bool = False) -> None:
        """Delete a shared pool."""
        await self.client.run(operator_calls.delete_shared_pool(name, force))
