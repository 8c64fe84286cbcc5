"""The operator: repeats lost declarations, releases the claims of killed callers, drains and writes off hosts."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from redsched.errors import ClaimState, NotFound, RedschedError, Unavailable
from redsched.model import ENDING_OR_ENDED, EndReason, HostReport, HostStatus, Inventory
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.store import Store
from tests.faults.suite.callers import traffic
from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.checks.view import Look, together

PAUSE_S = 0.3
SAID_WITHIN_S = 45.0
LEASE_S = 2
"""The lease of hosts that the operator reports."""

Word = Callable[[Scheduler], Awaitable[object]]


@dataclass(slots=True)
class Operator:
    """The operator of the cells. `seen` is the latest view of the store."""

    url: str
    settings: Settings
    ledger: Ledger
    seen: Callable[[], Look]
    statuses: dict[str, HostStatus] = field(default_factory=dict)
    """The intended status of hosts that faults changed, set again if a failover has lost it."""
    came_back: set[str] = field(default_factory=set)
    """Claims that existed after their owners were informed of their end, and whose scheduler was killed."""

    async def work(self) -> None:
        """Keep everything in its intended state."""
        while True:
            await asyncio.sleep(PAUSE_S)
            look = self.seen()
            if not all(view.epoch for view in look.values()):
                continue
            with suppress(RedschedError):
                if not _has_declared(look):
                    await self._say(declare)
                for claim_id in self._orphans(look):
                    await self._say(lambda scheduler, it=claim_id: scheduler.claims.release(it))  # type: ignore[misc]
                for claim_id in self._silenced(look):
                    await self._say(lambda scheduler, it=claim_id: self._give_back_again(scheduler, it))  # type: ignore[misc]
                if others := self._others(look):
                    await self._say(lambda scheduler, it=others: _set(scheduler, it, HostStatus.ENABLED))  # type: ignore[misc]

    async def says(self, word: Word) -> None:
        """Repeat a command until it succeeds: a wiped store knows a host only after its next report.

        Raises TimeoutError, and what else redsched raises.
        """
        until = time.monotonic() + SAID_WITHIN_S
        while True:
            try:
                await self._say(word)
                return
            except (Unavailable, NotFound) as error:
                if time.monotonic() > until:
                    raise TimeoutError(f"an operator was not heard within {SAID_WITHIN_S:g} s: {error}") from error
            await asyncio.sleep(PAUSE_S)

    async def have(self, hosts: Sequence[str], status: HostStatus, move: bool = False) -> None:
        """Set the status of hosts from now on; with `move`, empty them. Raises as `says`."""
        self.statuses |= dict.fromkeys(hosts, status)
        await self.says(lambda scheduler: _set(scheduler, hosts, status, move))

    async def write_off(self, hosts: Sequence[str]) -> None:
        """Write off and evacuate hosts. Raises as `says`."""
        await self.says(lambda scheduler: _write_off(scheduler, hosts))

    async def report(self, hosts: Sequence[str], cell: str) -> list[str]:
        """Report hosts to a cell, as an agent without a journal; return those that it accepted.

        It does not go on to attest: after a wipe it may be first, and would get claims that it cannot run.
        """
        accepted = list[str]()
        with suppress(Unavailable):
            async with Store.connect(self.url, self.settings) as store:
                accepted += [host for host in hosts if await _reported(store.cell(cell), host)]
        return accepted

    async def remove(self, hosts: Sequence[str], cell: str) -> None:
        """Remove those of the hosts that a cell has. Raises as `says`."""
        await self.says(lambda scheduler: _remove(scheduler, hosts, cell))

    async def _say(self, word: Word) -> None:
        async with Scheduler.connect(self.url, self.settings) as scheduler:
            await word(scheduler)

    def _orphans(self, look: Look) -> list[str]:
        known = together(look).claims
        left = {one for one, claim in known.items() if claim.get("consumer") in self.ledger.orphans}
        return sorted(left - self.ledger.owned.keys())

    def _silenced(self, look: Look) -> list[str]:
        claims = together(look)
        held = {one for one, claim in claims.claims.items() if claim.get("state") not in ENDING_OR_ENDED}
        return sorted((held | claims.shelved) & self.ledger.silenced)

    async def _give_back_again(self, scheduler: Scheduler, claim_id: str) -> None:
        claim = await scheduler.claims.get(claim_id)
        if claim.state not in ENDING_OR_ENDED or claim.end_reason is EndReason.SHELVED:
            self.came_back.add(claim_id)
            await scheduler.claims.release(claim_id)

    def _others(self, look: Look) -> list[str]:
        """Return hosts that should be enabled and are not, except those that a fault is changing."""
        hosts = {host: fields for view in look.values() for host, fields in view.hosts.items()}
        return [
            host
            for host, status in self.statuses.items()
            if status is HostStatus.ENABLED and hosts.get(host, {}).get("status", status) != status
        ]


async def _set(scheduler: Scheduler, hosts: Sequence[str], status: HostStatus, move: bool = False) -> None:
    for host in hosts:
        match status:
            case HostStatus.ENABLED:
                await scheduler.hosts.enable(host)
            case HostStatus.DISABLED:
                await scheduler.hosts.disable(host)
            case HostStatus.DRAINING:
                await scheduler.hosts.drain(host, move)


async def _reported(cell: CellStore, host: str) -> bool:
    try:
        await cell.hosts.report(HostReport(host, {"VCPU": Inventory(1)}, cell=cell.name, lease_s=LEASE_S))
    except ClaimState:
        return False
    return True


async def _remove(scheduler: Scheduler, hosts: Sequence[str], cell: str) -> None:
    names = [one.name for one in (await scheduler.hosts.list(limit=1000)).items if one.cell == cell]
    for host in sorted({*names}.intersection(hosts)):
        await scheduler.hosts.remove(host, force=True, cell=cell)


async def _write_off(scheduler: Scheduler, hosts: Sequence[str]) -> None:
    for host in hosts:
        await scheduler.hosts.write_off(host, evacuate=True, force=True)


def _has_declared(look: Look) -> bool:
    """Declare groups and quotas in every cell, and a shared pool in the first."""
    pool = next(iter(look.values())).pools.get(traffic.LICENCES.name, {})
    return "capacity.CUSTOM_SEAT" in pool and all(
        "policy" in view.groups.get(traffic.APART.name, {}) and f"quota:{traffic.QUOTA.project}" in view.others
        for view in look.values()
    )


async def declare(scheduler: Scheduler) -> None:
    """Declare the server group, the shared pool and the quota. Raises what redsched raises."""
    await scheduler.server_groups.put(traffic.APART)
    await scheduler.shared_pools.put(traffic.LICENCES)
    await scheduler.quotas.put(traffic.QUOTA)
