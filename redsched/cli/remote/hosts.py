"""Hosts over REST."""

from redsched.cli.remote.base import Part, names
from redsched.client import calls, operator_calls
from redsched.model import Amounts, AtDeadline, HostStatus, OneOf
from redsched.scheduler import HostView, Page


class RemoteHosts(Part):
    """As `Scheduler.hosts`."""

    async def get(self, name: str, cell: str = "") -> HostView:
        """Return a host."""
        return await self.client.run(calls.get_host(name, cell))

    async def list(
        self,
        zone: OneOf = None,
        status: OneOf = None,
        limit: int = 100,
        after: str = "",
        *,
        trait: OneOf = None,
        aggregate: OneOf = None,
        label: OneOf = None,
        fits: Amounts | None = None,
    ) -> Page[HostView]:
        """Return a page of the hosts that match the filters."""
        wanted = names(zone=zone, status=status, trait=trait, aggregate=aggregate, label=label)
        return await self.page(calls.list_hosts(**wanted, fits=fits, page_size=limit, after=after))

    async def set_status(
        self,
        name: str,
        status: HostStatus,
        move: bool = False,
        deadline_s: int = 0,
        then: AtDeadline | None = None,
        *,
        reason: str = "",
        ahead: bool = False,
        cell: str = "",
    ) -> None:
        """Enable, disable or drain a host."""
        match status:
            case HostStatus.ENABLED:
                await self.client.run(operator_calls.enable_host(name, cell))
            case HostStatus.DISABLED:
                await self.client.run(operator_calls.disable_host(name, reason, ahead, cell))
            case HostStatus.DRAINING:
                await self.client.run(operator_calls.drain_host(name, move, deadline_s, then, reason, cell))

    async def lost(
        self, name: str, evacuate: bool = False, force: bool = False, *, reason: str = "", cell: str = ""
    ) -> None:
        """Write a host off."""
        await self.client.run(operator_calls.write_off_host(name, evacuate, force, reason, cell))

    async def forget(self, name: str, force: bool = False, *, cell: str = "") -> None:
        """Remove a host."""
        await self.client.run(operator_calls.remove_host(name, force, cell))
