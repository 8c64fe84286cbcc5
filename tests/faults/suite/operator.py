"""The operator: declares anew what a store forgot, gives back what killed callers left, drains and writes off hosts."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from redsched.errors import RedschedError, Unavailable
from redsched.model import HostStatus
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.faults.suite import traffic
from tests.faults.suite.ledger import Ledger
from tests.faults.suite.view import View

PAUSE_S = 0.3
SAID_WITHIN_S = 45.0

Word = Callable[[Scheduler], Awaitable[object]]


@dataclass(slots=True)
class Operator:
    """Whoever looks after the cell. `seen` is the store as it was last looked at."""

    url: str
    settings: Settings
    ledger: Ledger
    seen: Callable[[], View]
    statuses: dict[str, HostStatus] = field(default_factory=dict)
    """How hosts that were worked on are to be: said again where a failover has lost it."""

    async def work(self) -> None:
        """See to it that all stays as it is meant to be."""
        while True:
            await asyncio.sleep(PAUSE_S)
            view = self.seen()
            if not view.epoch:
                continue
            with suppress(RedschedError):
                if not _has_declared(view):
                    await self._say(declare)
                for claim_id in self._orphans(view):
                    await self._say(lambda scheduler, it=claim_id: scheduler.claims.release(it))  # type: ignore[misc]
                for host in self._others(view):
                    await self._say(lambda scheduler, it=host: self._set(scheduler, it))  # type: ignore[misc]

    async def says(self, word: Word) -> None:
        """Say something as often as it takes. Raises TimeoutError, and what else redsched raises."""
        async with asyncio.timeout(SAID_WITHIN_S):
            while True:
                with suppress(Unavailable):
                    await self._say(word)
                    return
                await asyncio.sleep(PAUSE_S)

    async def have(self, host: str, status: HostStatus, move: bool = False) -> None:
        """Have a host in that status from now on; with `move`, have it emptied."""
        self.statuses[host] = status
        await self.says(lambda scheduler: scheduler.hosts.set_status(host, status, move))

    async def _say(self, word: Word) -> None:
        async with Scheduler.connect(self.url, self.settings) as scheduler:
            await word(scheduler)

    async def _set(self, scheduler: Scheduler, host: str) -> None:
        await scheduler.hosts.set_status(host, self.statuses[host])

    def _orphans(self, view: View) -> list[str]:
        left = {one for one, claim in view.by_owner().items() if claim.get("consumer") in self.ledger.orphans}
        return sorted(left - self.ledger.owned.keys())

    def _others(self, view: View) -> list[str]:
        """Hosts that are to be enabled again, and are not: what they are while worked on is left to who does it."""
        return [
            host
            for host, status in self.statuses.items()
            if status is HostStatus.ENABLED and view.hosts.get(host, {}).get("status", status) != status
        ]


def _has_declared(view: View) -> bool:
    group, pool = view.groups.get(traffic.APART.name, {}), view.pools.get(traffic.LICENCES.name, {})
    return "policy" in group and "capacity.CUSTOM_SEAT" in pool and f"quota:{traffic.QUOTA.project}" in view.others


async def declare(scheduler: Scheduler) -> None:
    """Declare the server group, the shared pool and the quota. Raises what redsched raises."""
    await scheduler.server_groups.put(traffic.APART)
    await scheduler.pools.put(traffic.LICENCES)
    await scheduler.quotas.put(traffic.QUOTA)
