"""Hosts at work, for tests of verbs: their agents accept, confirm and end claims on demand."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from tests.support.fleets.hosts import PlainHost, fleet
from tests.support.waiting import wait_until

BY_HAND = Settings(pick_from=1, tick_s=3600)
"""Settings of schedulers that sweep only on demand."""
QUICK = Settings(pick_from=1, tick_s=0.05)


@asynccontextmanager
async def at_work(url: str, *vcpus: int, settings: Settings = BY_HAND) -> AsyncIterator["Work"]:
    """Yield a scheduler over hosts h0, h1 ... with this much VCPU each."""
    async with Scheduler.connect(url, settings) as opened:
        await opened.init()
        store = opened.cells.named("c1").store
        hosts = await fleet(store, vcpus, lease_s=3600)
        await opened.explain(Request({"VCPU": 1}))
        yield Work(opened, store, hosts)


class Work:
    """A scheduler, its cell's store and its hosts."""

    def __init__(self, scheduler: Scheduler, store: CellStore, hosts: list[PlainHost]) -> None:
        self.scheduler, self.store, self.hosts = scheduler, store, hosts

    async def active(self, request: Request, host: int = 0) -> Claim:
        """Place a claim on this host, have its work run, and return the claim."""
        found = await self.scheduler.select(request)
        claim_id = found.selections[0].claim_id or ""
        await self.hosts[host].work()
        claim = await self.scheduler.claims.get(claim_id)
        assert (claim.state, claim.host) == (ClaimStatus.ACTIVE, f"h{host}"), claim
        return claim

    async def work(self, hosts: Iterable[int] = ()) -> None:
        """Let these hosts, or all of them, do what they are asked to do."""
        for number in hosts or range(len(self.hosts)):
            await self.hosts[number].work()

    async def sweep(self) -> None:
        """Run one round of this scheduler's sweeper."""
        await self.scheduler.cells.catch_up()
        await self.scheduler.tasks["c1"].sweeper.sweep()

    async def settle(self) -> None:
        """Let the hosts work, and sweep, until no claim is left to reconcile."""

        async def done() -> bool:
            await self.work()
            await self.sweep()
            clock = await self.store.tick()
            return not await self.store.due.to_reconcile(clock.now_ms, 0, 10)

        for _ in range(3):
            await wait_until(done, what="no reconciliation is due")

    async def held(self) -> dict[str, list[str]]:
        """Return the claim ids on each host that has any."""
        names = [host.name for host in self.hosts]
        found = await self.store.hosts.claim_ids_of(names)
        return {name: sorted(ids) for name, ids in zip(names, found, strict=True) if ids}

    async def is_sound(self) -> None:
        """Check that the audit finds no problem."""
        assert (await self.scheduler.audit()).problems == ()


async def empty(work: Work, host: str) -> None:
    """Let the hosts work, and sweep, until a host holds no claim."""

    async def is_empty() -> bool:
        await work.work()
        await work.sweep()
        return not await work.store.hosts.claim_ids(host)

    await wait_until(is_empty, timeout=30, what=f"{host} is empty")
