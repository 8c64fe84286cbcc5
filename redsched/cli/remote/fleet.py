"""A fleet over REST: the part of a Scheduler that commands use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from redsched.cli.remote.base import MAX_PAGE, Part
from redsched.cli.remote.claims import RemoteBulk, RemoteClaims, RemoteMigrations
from redsched.cli.remote.declared import RemoteAggregates, RemoteQuotas, RemoteServerGroups, RemoteSharedPools
from redsched.cli.remote.events import RemoteEvents
from redsched.cli.remote.hosts import RemoteHosts
from redsched.cli.remote.plans import RemoteMoves, RemotePlans
from redsched.client import calls, operator_calls
from redsched.client.async_client import AsyncClient
from redsched.model import Request
from redsched.scheduler import (
    CapacityBy,
    CapacityRow,
    Explanation,
    Selections,
    StatusReport,
)

HOSTS_AT_ONCE = 100
"""The most hosts of which one call asks for every check: their names are in its URL."""


class RemoteFleet(Part):
    """A fleet over REST."""

    @classmethod
    @asynccontextmanager
    async def connect(cls, client: AsyncClient) -> AsyncIterator["RemoteFleet"]:
        """Use a client until the block ends, and close it then."""
        async with client:
            yield cls(client)

    @property
    def claims(self) -> RemoteClaims:
        """Claims, one by one."""
        return RemoteClaims(self.client)

    @property
    def migrations(self) -> RemoteMigrations:
        """The verbs that find a new place."""
        return RemoteMigrations(self.client)

    @property
    def bulk(self) -> RemoteBulk:
        """The verbs on many claims."""
        return RemoteBulk(self.client)

    @property
    def hosts(self) -> RemoteHosts:
        """Hosts."""
        return RemoteHosts(self.client)

    @property
    def quotas(self) -> RemoteQuotas:
        """Quotas."""
        return RemoteQuotas(self.client)

    @property
    def aggregates(self) -> RemoteAggregates:
        """Aggregates."""
        return RemoteAggregates(self.client)

    @property
    def server_groups(self) -> RemoteServerGroups:
        """Server groups."""
        return RemoteServerGroups(self.client)

    @property
    def pools(self) -> RemoteSharedPools:
        """Shared pools."""
        return RemoteSharedPools(self.client)

    @property
    def plans(self) -> RemotePlans:
        """Plans."""
        return RemotePlans(self.client)

    @property
    def move_runner(self) -> RemoteMoves:
        """The moves of plans."""
        return RemoteMoves(self.client)

    @property
    def events(self) -> RemoteEvents:
        """Events."""
        return RemoteEvents(self.client)

    async def select(self, request: Request) -> Selections:
        """Select and, unless it is a dry run, claim."""
        if request.claim:
            places = await self.client.run(calls.select(request))
            return Selections(places.selections)
        return await self.client.run(calls.dry_run(request))

    async def explain(self, request: Request, *hosts: str) -> Explanation:
        """Explain a selection, with every check of these hosts."""
        found = await self.client.run(calls.explain(request, hosts[:HOSTS_AT_ONCE]))
        for first in range(HOSTS_AT_ONCE, len(hosts), HOSTS_AT_ONCE):
            more = await self.client.run(calls.explain(request, hosts[first : first + HOSTS_AT_ONCE]))
            found = replace(found, checks=(*found.checks, *more.checks))
        return found

    async def host_names(self, limit: int, after: str = "") -> tuple[str, ...]:
        """Return the names of up to `limit` hosts after one."""
        found: list[str] = []
        async for one in self.client.items(calls.list_hosts(page_size=MAX_PAGE, after=after)):
            found.append(one.name)
            if len(found) == limit:
                break
        return tuple(found)

    async def status(self) -> StatusReport:
        """Return what runs, and what is wrong."""
        return await self.client.run(operator_calls.status())

    async def capacity(self, by: CapacityBy | None = None) -> tuple[CapacityRow, ...]:
        """Return the amounts of all hosts by class, and if wanted by zone, aggregate, project or consumer."""
        return await self.client.run(operator_calls.capacity(by or ""))
