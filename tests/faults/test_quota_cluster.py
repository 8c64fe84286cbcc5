"""Quotas on a cluster with a cell on each shard: a shard that loses transfers never exceeds the limit."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from redsched.errors import QuotaExceeded, Settling, Unavailable
from redsched.model import Quota, Request
from redsched.model.filters import UsageBy
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.store import Store
from tests.support.fleets.hosts import PlainHost, speak_all
from tests.support.processes.quota_traffic import QuotaTraffic
from tests.support.setups import ClusterSetup
from tests.support.setups.cluster import cells_apart
from tests.support.waiting import wait_until

CELLS = tuple(cells_apart(3))
QUICK = Settings(cells=CELLS, poll_s=0.01, tick_s=0.1, reply_timeout_s=30.0, resend_for_s=60.0, select_timeout_s=60.0)
LIMIT = 9


@pytest.fixture
def setup(running: ClusterSetup) -> ClusterSetup:
    """The cluster that all tests of this module share, with empty shards."""
    for shard in CELLS:
        with running.primary(shard).asked() as client:
            client.flushall()
    return running


@dataclass(slots=True)
class Fleet:
    """A scheduler over three cells, and a host in each, which accepts its claims."""

    scheduler: Scheduler
    hosts: dict[str, PlainHost]

    async def claim(self, cell: str, vcpu: int = 1) -> str:
        """Claim in a cell; return the id."""
        asked = Request({"VCPU": vcpu}, project="web", hosts=frozenset({f"{cell}-h"}), lease_s=3600)
        return str((await self.scheduler.select(asked)).selections[0].claim_id)

    async def assert_exact(self, vcpu: int) -> None:
        """Check that the usage and the claims both amount to this number, and that an audit finds no problem."""
        rows = await self.scheduler.usage((UsageBy.CLASS,))
        found = await self.scheduler.quotas.get("web")
        held = dict(rows[0].used).get("VCPU", 0) if rows else 0
        assert (held, found.used.get("VCPU", 0)) == (vcpu, vcpu)
        states = (await self.scheduler._enforcement.shares.read("web")).values()
        assert sum(one.share.get("VCPU", 0) for one in states) <= LIMIT
        assert (await self.scheduler.audit()).problems == ()

    async def living_in(self, cell: str) -> set[str]:
        """Return the ids of the claims of a cell; retry while the cell is unavailable."""
        while True:
            try:
                return {one.claim_id for one in (await self.scheduler.claims.list(cell=cell, limit=1000)).items}
            except Unavailable:
                await asyncio.sleep(0.01)

    async def assert_at_rest(self, traffic: QuotaTraffic) -> None:
        """Once lost releases have been repeated, check that the usage equals the callers' claims, within the limit."""

        async def holds_as_known() -> bool:
            for host in self.hosts.values():
                await host.work()
            return set().union(*[await self.living_in(cell) for cell in CELLS]) == traffic.held()

        try:
            await wait_until(holds_as_known, 30.0, "each cell has what its callers hold")
            assert len(traffic.held()) <= LIMIT
            await self.assert_exact(len(traffic.held()))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self._table(traffic)}") from error

    async def _table(self, traffic: QuotaTraffic) -> str:
        """Return the quota state and claims of each cell, with what each caller knows, as text."""
        lines = []
        for cell, state in (await self.scheduler._enforcement.shares.read("web")).items():
            lines.append(f"{cell}: {state}")
            claims = (await self.scheduler.claims.list(cell=cell, limit=1000)).items
            lines += [f"  {one.claim_id} {one.state}, its caller: {traffic.known.get(one.claim_id)}" for one in claims]
        return "\n".join([*lines, f"callers hold {sorted(traffic.held())}"])


@asynccontextmanager
async def opened(setup: ClusterSetup) -> AsyncIterator[Fleet]:
    async with Store.connect(setup.url, QUICK) as store:
        hosts = {name: PlainHost(store.cell(name), f"{name}-h", 100, 3600) for name in CELLS}
        for name in CELLS:
            await store.cell(name).init()
        await speak_all(list(hosts.values()))
        async with Scheduler.connect(setup.url, QUICK) as scheduler:
            await scheduler.quotas.put(Quota("web", {"VCPU": LIMIT}))
            yield Fleet(scheduler, hosts)


async def test_shares_change_hands_between_shards(setup: ClusterSetup) -> None:
    async with opened(setup) as fleet:
        for cell in CELLS:
            ids = [await fleet.claim(cell, 3) for _ in range(3)]
            for other in CELLS:
                with pytest.raises(QuotaExceeded, match="9 of 9 VCPU"):
                    await fleet.claim(other)
            await fleet.assert_exact(LIMIT)
            for one in ids:
                await fleet.scheduler.claims.release(one)
        await fleet.assert_exact(0)


@pytest.mark.parametrize("loses", ["what it gave", "what it took"])
async def test_a_shard_that_forgets_a_transfer_never_lets_more_in_than_the_limit(
    setup: ClusterSetup, loses: str
) -> None:
    """The promoted replica lacks the transfer and all later claims; the shard's host restores its running claims."""
    giver, taker, _ = CELLS
    shard = giver if loses == "what it gave" else taker
    async with opened(setup) as fleet:
        await wait_until(setup.well, 30.0, "the replicas have all data")
        setup.cut_replication(shard)
        await fleet.claim(taker, 6)
        await fleet.hosts[taker].work()
        before = setup.primary(shard)
        before.kill()
        await wait_until(lambda: setup.has_primary(shard), 30.0, "the replica was promoted")
        with pytest.raises(Settling):
            await fleet.claim(shard)
        await fleet.hosts[shard].speak()
        with pytest.raises(QuotaExceeded, match="6 of 9 VCPU are used, 4 more"):
            await fleet.claim(giver, 4)
        await fleet.claim(giver, 3)
        await fleet.assert_exact(LIMIT)
        before.restart()
        await wait_until(setup.well, 60.0, "the cluster is whole again")


@pytest.mark.parametrize("loses", ["nothing", "its last writes"])
async def test_whoever_claims_while_a_shard_dies_never_gets_more_than_the_quota(
    setup: ClusterSetup, loses: str
) -> None:
    """Callers claim and release in all cells meanwhile: their claims are within the quota at every moment.

    Claims whose release a shard has lost exist again, and count until they are released again. Once there are no more
    requests, every cell has exactly its callers' claims, and the usage equals them.
    """
    shard = CELLS[1]
    async with opened(setup) as fleet:
        traffic = QuotaTraffic(fleet.scheduler, fleet.claim)
        busy = [asyncio.create_task(traffic.run(cell)) for cell in CELLS for _ in range(2)]
        await wait_until(lambda: len(traffic.known) > LIMIT, 30.0, "claims are made and released")
        if loses == "its last writes":
            setup.cut_replication(shard)
            await traffic.goes_on()
        before = setup.primary(shard)
        before.kill()
        died_s = time.monotonic()
        await wait_until(lambda: setup.has_primary(shard), 30.0, "the replica was promoted")
        traffic.lose(shard, died_s, await fleet.living_in(shard))
        await fleet.hosts[shard].speak()
        await traffic.goes_on()
        traffic.stopped = True
        await asyncio.gather(*busy)
        await fleet.assert_at_rest(traffic)
        assert traffic.most_held() <= LIMIT
        before.restart()
        await wait_until(setup.well, 60.0, "the cluster is whole again")
