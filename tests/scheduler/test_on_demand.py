"""A scheduler without background tasks, which reads a replica only for calls that need one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from redsched.cache import snapshot
from redsched.cache.replica import CellReplica
from redsched.cache.snapshot import take_snapshot
from redsched.errors import InvalidRequest, NotFound, QuotaExceeded, Settling, StoreUnavailable
from redsched.model import (
    Aggregate,
    ClaimStatus,
    GroupPolicy,
    HostStatus,
    Inventory,
    Quota,
    Request,
    ServerGroup,
    SharedPool,
)
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from tests.scheduler.conftest import ONE_AT_A_TIME, report_all, report_of
from tests.support.builders.cells import make_due, raw_client
from tests.support.waiting import wait_until


@pytest.fixture
async def brief(scheduler: Scheduler, clean_store: str) -> AsyncIterator[Scheduler]:
    """A second scheduler, opened on demand, on the store of `scheduler`."""
    async with Scheduler.connect(clean_store, ONE_AT_A_TIME, on_demand=True) as opened:
        yield opened


def snapshots(scheduler: Scheduler) -> int:
    return scheduler.stats().snapshots


async def test_single_things_need_no_replica(scheduler: Scheduler, brief: Scheduler) -> None:
    """Hosts, claims, server groups, shared pools, quotas and events are read from the store and changed there."""
    claim_id = str((await scheduler.select(Request({"VCPU": 1}))).selections[0].claim_id)
    host = (await brief.claims.get(claim_id)).host
    shown = await brief.hosts.get(host)
    assert (shown.attested, shown.claims) == (True, 1)
    await brief.hosts.disable(host)
    assert (await scheduler.hosts.get(host)).status is HostStatus.DISABLED
    assert await brief.claims.release(claim_id)
    await brief.server_groups.put(ServerGroup("web", GroupPolicy.AFFINITY))
    await brief.shared_pools.put(SharedPool("nfs", {"DISK_GB": Inventory(100)}))
    await brief.quotas.put(Quota("p1", {"VCPU": 4}))
    assert (await brief.server_groups.get("web")).members == 0
    assert [one.name for one in (await brief.shared_pools.list()).items] == ["nfs"]
    assert (await brief.quotas.get("p1")).limits == {"VCPU": 4}
    await brief.quotas.delete("p1")
    with pytest.raises(NotFound):
        await brief.quotas.get("p1")
    await brief.events.newest(10)
    assert snapshots(brief) == 0


@pytest.mark.usefixtures("two_cells")
async def test_a_quota_of_several_cells_needs_no_replica(clean_store: str) -> None:
    """The store of the first cell tells that the quota is shared: otherwise the last cell would admit any amount."""
    settings = Settings(cells=("a", "b"), pick_from=1, policy="pack")
    async with (
        Scheduler.connect(clean_store, settings) as scheduler,
        Scheduler.connect(clean_store, settings, on_demand=True) as brief,
    ):
        await scheduler.quotas.put(Quota("p1", {"VCPU": 3}))
        in_b = Request({"VCPU": 1}, claim_ids=("mine",), project="p1", hosts=frozenset({"b1"}))
        token = (await scheduler.select(in_b)).selections[0].token
        await scheduler.cells.named("b").store.declared.delete_quota("p1")
        with pytest.raises(QuotaExceeded):
            await brief.claims.resize("mine", str(token), {}, {"VCPU": 4})
        assert (await brief.claims.resize("mine", str(token), {}, {"VCPU": 3})).slots == {"VCPU": 3}
        assert snapshots(brief) == 0


async def test_what_needs_all_hosts_reads_them_once(scheduler: Scheduler, brief: Scheduler) -> None:
    """After that, the replica follows the feed."""
    await brief.aggregates.put(Aggregate("ssd", hosts=frozenset({"h1"})))
    assert [one.name for one in (await brief.hosts.list()).items] == ["h1", "h2", "h3"]
    await scheduler.aggregates.put(Aggregate("ssd", hosts=frozenset({"h2"})))
    assert (await brief.aggregates.get("ssd")).hosts == ("h2",)
    assert (await brief.select(Request({"VCPU": 1}))).selections[0].host == "h1"
    assert snapshots(brief) == 1


async def test_nothing_runs_by_itself(scheduler: Scheduler, brief: Scheduler) -> None:
    await brief.hosts.get("h1")
    started = {task.get_name() for task in asyncio.all_tasks()}
    assert sum(name.startswith("redsched-sweeper") for name in started) == 1  # the first scheduler's
    assert sum(name.startswith("redsched-updater") for name in started) == 1


async def test_a_new_cell_gets_its_epoch(clean_store: str) -> None:
    """Without one, nothing could be said of its hosts."""
    async with Scheduler.connect(clean_store, Settings(), on_demand=True) as brief:
        with pytest.raises(Settling, match="new epoch"):
            await brief.server_groups.get("web")


async def test_it_is_of_no_use_once_closed(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings(), on_demand=True) as brief:
        await brief.init()
    with pytest.raises(StoreUnavailable, match="closed"):
        await brief.hosts.list()


async def test_a_snapshot_that_failed_is_taken_again(
    scheduler: Scheduler, brief: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then no call may find the fleet empty."""
    calls = list[CellStore]()

    async def fails_once(cell: CellStore) -> CellReplica:
        calls.append(cell)
        if len(calls) == 1:
            raise StoreUnavailable("no reply")
        return await take_snapshot(cell)

    monkeypatch.setattr(snapshot, "take_snapshot", fails_once)
    with pytest.raises(StoreUnavailable, match="no reply"):
        await brief.hosts.list()
    assert [one.name for one in (await brief.hosts.list()).items] == ["h1", "h2", "h3"]
    assert len(calls) == 2


async def test_claims_that_are_over_do_not_count(clean_store: str) -> None:
    """No scheduler with background tasks runs that would end them."""
    async with Scheduler.connect(clean_store, ONE_AT_A_TIME, on_demand=True) as brief:
        await brief.init()
        await report_all(brief, [report_of("h1", VCPU=8)])
        await brief.server_groups.put(ServerGroup("web", GroupPolicy.AFFINITY))
        await brief.quotas.put(Quota("p1", {"VCPU": 4}))
        await brief.select(Request({"VCPU": 4}, project="p1", server_group="web", claim_ids=("over",)))
        async with raw_client(clean_store) as raw:
            await make_due(raw, brief.cells.named("c1").store, "over")
        assert ((await brief.server_groups.get("web")).members, (await brief.quotas.get("p1")).used) == (0, {"VCPU": 0})
        await brief.server_groups.delete("web")


async def test_what_follows_the_feed_is_refused(brief: Scheduler) -> None:
    with pytest.raises(InvalidRequest, match="on demand"):
        brief.changes()
    assert not (await brief.readiness()).ready


async def test_claims_of_a_caller_that_is_gone_are_undone_before_it_closes(
    clean_store: str, scheduler: Scheduler
) -> None:
    async with Scheduler.connect(clean_store, ONE_AT_A_TIME, on_demand=True) as brief:
        waiting = asyncio.create_task(brief.select(Request({"VCPU": 1}, until="active", confirm_timeout_s=600)))
        await wait_until(lambda: scheduler_sees(scheduler, 1), what="the claim")
        waiting.cancel()
        await asyncio.wait([waiting])
    assert await scheduler_sees(scheduler, 0)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "redsched-undo"]


async def scheduler_sees(scheduler: Scheduler, claims: int) -> bool:
    """Return whether there are so many claims that have not ended."""
    return len((await scheduler.claims.list(state=(ClaimStatus.CLAIMED,))).items) == claims
