"""Quotas on a cluster: ledgers lie on other shards than the cells, and one that dies takes nothing from the count."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from redsched.errors import QuotaExceeded, Unavailable
from redsched.model import Quota, Request
from redsched.scheduler import Scheduler, UsageBy
from redsched.settings import Settings
from redsched.store import Store
from redsched.store.keys import LedgerKeys
from tests.support.hosts import PlainHost, speak_all
from tests.support.setups import ClusterSetup, Node
from tests.support.setups.cluster import cells_apart
from tests.support.waiting import wait_until

SHARDS = cells_apart(3)
CELLS = tuple(SHARDS[:2])
"""The third shard has no cell: what happens to it happens to ledgers alone."""
QUICK = Settings(cells=CELLS, poll_s=0.01, tick_s=0.1, reply_timeout_s=1.0, resend_for_s=30.0, select_timeout_s=60.0)
LIMIT = 8


@pytest.fixture
def setup(running: ClusterSetup) -> ClusterSetup:
    """The cluster of all tests here: whole, and empty."""
    for shard in SHARDS:
        with running.primary(shard).asked() as client:
            client.flushall()
    return running


def ledger_of(setup: ClusterSetup, project: str) -> Node:
    """The server that has a project's ledger: the tag of its keys is what the slot is made of."""
    return setup.primary(LedgerKeys(project).ledger.partition("{")[2].rstrip("}"))


def project_on(setup: ClusterSetup, shard: str) -> str:
    """A project whose ledger lies on the shard of this cell."""
    names = (f"p{number}" for number in range(200))
    return next(name for name in names if ledger_of(setup, name) is setup.primary(shard))


@asynccontextmanager
async def opened(setup: ClusterSetup) -> AsyncIterator[Scheduler]:
    async with Store.connect(setup.url, QUICK) as store:
        hosts = []
        for name in CELLS:
            await store.cell(name).init()
            hosts.append(PlainHost(store.cell(name), f"{name}-h", 100, 3600))
        await speak_all(hosts)
        async with Scheduler.connect(setup.url, QUICK) as scheduler:
            yield scheduler


async def claim(scheduler: Scheduler, project: str, cell: str, vcpu: int = 1) -> str:
    """Claim in a cell; the id."""
    asked = Request({"VCPU": vcpu}, project=project, hosts=frozenset({f"{cell}-h"}), lease_s=3600)
    return str((await scheduler.select(asked)).selections[0].claim_id)


async def assert_exact(scheduler: Scheduler, project: str, vcpu: int, claims: int) -> None:
    """What is used is what is held, and that is this; nothing is reserved any more, and no audit finds anything."""
    await asyncio.gather(*scheduler._quotas._later)
    rows = await scheduler.usage((UsageBy.CLASS, UsageBy.PROJECT))
    held = next((dict(row.used) for row in rows if row.of["project"] == project), {})
    used = {name: amount for name, amount in (await scheduler.quotas.get(project)).used.items() if amount}
    assert used == held == ({"VCPU": vcpu, "claims": claims} if claims else {})
    assert (await scheduler.audit()).problems == ()


async def test_ledgers_lie_anywhere_and_each_is_exact(setup: ClusterSetup) -> None:
    """Reserve, claim, hold and free, for a project of each shard in a cell of each of two; all are listed together."""
    projects = [project_on(setup, shard) for shard in SHARDS]
    assert len({ledger_of(setup, project).port for project in projects}) == 3
    async with opened(setup) as scheduler:
        for project in projects:
            await scheduler.quotas.put(Quota(project, {"VCPU": 4}))
            ids = [await claim(scheduler, project, cell, 2) for cell in CELLS]
            with pytest.raises(QuotaExceeded, match="4 of 4 VCPU"):
                await claim(scheduler, project, CELLS[0])
            await assert_exact(scheduler, project, 4, 2)
            await scheduler.claims.release(ids[0])
            await claim(scheduler, project, CELLS[1])
            await assert_exact(scheduler, project, 3, 2)
        listed = (await scheduler.quotas.list()).items
        assert {one.project: one.used["VCPU"] for one in listed} == dict.fromkeys(projects, 3)
        await scheduler.quotas.delete(projects[0])
        assert (await scheduler.audit()).problems == ()


async def test_a_ledger_that_lost_writes_with_its_shard_is_counted_anew(setup: ClusterSetup) -> None:
    """Its replica has not heard of half of the claims, nor of a release; the cells have lost nothing."""
    project = project_on(setup, SHARDS[2])
    async with opened(setup) as scheduler:
        await scheduler.quotas.put(Quota(project, {"VCPU": LIMIT}))
        first = [await claim(scheduler, project, cell) for cell in CELLS]
        await assert_exact(scheduler, project, 2, 2)
        before = ledger_of(setup, project)
        await wait_until(setup.well, 30.0, "the replicas have all data")
        setup.cut_replication(SHARDS[2])
        lost = [await claim(scheduler, project, cell, 2) for cell in CELLS]
        await scheduler.claims.release(first[0])
        await assert_exact(scheduler, project, 5, 3)
        before.kill()
        await wait_until(lambda: setup.has_primary(SHARDS[2]), 30.0, "the replica was promoted")
        assert ledger_of(setup, project) is not before
        with pytest.raises(QuotaExceeded, match="5 of 8 VCPU"):
            await claim(scheduler, project, CELLS[0], 4)
        await assert_exact(scheduler, project, 5, 3)
        await claim(scheduler, project, CELLS[1], 3)
        await scheduler.claims.release(lost[0])
        await assert_exact(scheduler, project, 6, 3)
        before.restart()
        await wait_until(setup.well, 60.0, "the cluster is whole again")


async def test_whoever_claims_while_the_shard_dies_never_gets_more_than_the_quota(setup: ClusterSetup) -> None:
    """Claims and releases all the while: each is answered within the quota, or refused; and then all is exact."""
    project = project_on(setup, SHARDS[2])
    stopped = asyncio.Event()
    served = 0

    async def traffic(scheduler: Scheduler, cell: str) -> None:
        nonlocal served
        mine: list[str] = []
        while not stopped.is_set():
            try:
                mine.append(await claim(scheduler, project, cell))
                served += 1
            except (QuotaExceeded, Unavailable):
                while mine:
                    try:
                        await scheduler.claims.release(mine[-1])
                    except Unavailable:
                        break
                    mine.pop()
                await asyncio.sleep(0.01)

    async with opened(setup) as scheduler:
        await scheduler.quotas.put(Quota(project, {"VCPU": LIMIT}))
        busy = [asyncio.create_task(traffic(scheduler, cell)) for cell in CELLS for _ in range(2)]
        await wait_until(lambda: served > LIMIT, 30.0, "claims are made and released")
        before = ledger_of(setup, project)
        before.kill()
        await wait_until(lambda: setup.has_primary(SHARDS[2]), 30.0, "the replica was promoted")
        seen = served
        await wait_until(lambda: served > seen + 2 * LIMIT, 60.0, "claims go on")
        rows = await scheduler.usage((UsageBy.CLASS,))
        assert not rows or rows[0].used["VCPU"] <= LIMIT
        stopped.set()
        await asyncio.gather(*busy)
        await scheduler.repair()  # leases of what nobody heard the outcome of run for a minute; nothing else is left
        await settled(scheduler, project)
        before.restart()
        await wait_until(setup.well, 60.0, "the cluster is whole again")


async def settled(scheduler: Scheduler, project: str) -> None:
    """Settle what is reserved without waiting for its lease, and see that all is exact."""
    ledgers = scheduler._store.ledgers

    async def no_chore() -> bool:
        return not [one for cell in scheduler._cells for one in await cell.store.chores()]

    await wait_until(no_chore, 30.0, "no chore is left")
    await scheduler._quotas.settler.settle(project, await ledgers.ids(project))
    rows = await scheduler.usage((UsageBy.CLASS,))
    used = rows[0].used if rows else {"VCPU": 0, "claims": 0}
    await assert_exact(scheduler, project, used["VCPU"], used["claims"])
