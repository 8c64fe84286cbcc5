"""A scheduler whose replica is behind the store refuses no request falsely, and wastes at most one call on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
import redis

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.errors import NoValidHost
from redsched.model import (
    Aggregate,
    Candidate,
    GroupPolicy,
    HostStatus,
    Inventory,
    ReasonCount,
    Request,
    ServerGroup,
    SharedPool,
)
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.replies import ClaimCall, Member, Poll
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import raw_client
from tests.support.fleets.hosts import PlainHost, fleet
from tests.support.processes.racers import updater_of

RARELY = Settings(poll_s=60.0, tick_s=60.0)
"""The scheduler polls and sweeps so rarely that it learns only from replies and from reads that it needs."""

pytestmark = pytest.mark.usefixtures("clean_store")


@asynccontextmanager
async def behind(
    url: str, *capacities: int
) -> AsyncIterator[tuple[Scheduler, list[Effort], CellStore, list[PlainHost]]]:
    """Yield a scheduler that polls only if it must, the effort of its selections, and a cell and hosts to change."""
    efforts: list[Effort] = []
    async with Store.connect(url) as store:
        cell = store.cell("c1")
        await cell.init()
        hosts = await fleet(cell, capacities)
        async with Scheduler.connect(url, RARELY, observe=efforts.append) as scheduler:
            yield scheduler, efforts, cell, hosts


async def test_a_refusal_sees_all_hosts_at_one_instant(url: str) -> None:
    """While a request reads the feed, this process claims the last free place and another releases one on another host.

    A place is free at every instant. If the reply's state of one host were combined with the feed's older state of the
    other, both hosts would look full, and the request would be refused.
    """
    async with behind(url, 1, 1) as (scheduler, _, cell, _):
        [taken] = (await scheduler.select(Request({"VCPU": 1}, hosts=frozenset({"h1"})))).selections
        updater = updater_of(scheduler)
        poll = cell.feed.poll
        once = iter([True])

        async def overtaken(after: str, most: int) -> Poll:
            read = await poll(after, most)
            if next(once, False):
                await scheduler.select(Request({"VCPU": 1}, hosts=frozenset({"h0"})))
                await cell.claims.release("h1", str(taken.claim_id))
            return read

        updater.cell.feed.poll = overtaken  # type: ignore[method-assign]
        free = await updater.read_at_head(
            lambda: int((updater.columns.capacity["VCPU"] - updater.columns.claimed["VCPU"]).sum())
        )
        assert free == 1
        assert updater.columns.claimed["VCPU"].sum() == 2, "the reply shows right after"


async def test_what_an_own_claim_counts_shows_before_the_feed_tells(url: str) -> None:
    """The reply updates the host, the group and the shared pool in the replica; the feed then changes nothing."""
    async with behind(url, 4) as (scheduler, _, cell, _):
        await cell.declared.put_group(ServerGroup("db", GroupPolicy.ANTI_AFFINITY))
        await cell.declared.put_pool(SharedPool("lic", {"CUSTOM_SEAT": Inventory(9)}))
        updater = updater_of(scheduler)
        await updater.catch_up()
        candidate = Candidate("h0", {"VCPU": 1, "pool:lic/CUSTOM_SEAT": 2})
        clock = await cell.tick()
        call = ClaimCall((Member("a", (candidate,), "db"),), clock.epoch, clock.now_ms, clock.seq, "d", True, 60_000)
        updater.apply_reply(await cell.claims.place(call))
        columns, declared = updater.columns, updater.columns.declared
        row = columns.row("h0")
        assert row is not None
        assert (columns.claims.item(row), columns.starting.item(row)) == (1, 1)
        assert (declared.groups["db"].members, declared.groups["db"].count("host", "h0")) == (1, 1)
        assert declared.pools["lic"].slots["CUSTOM_SEAT"].claimed == 2
        assert difference(columns, (await take_snapshot(cell)).columns) == []


@pytest.mark.parametrize("word", [HostStatus.DISABLED, HostStatus.DRAINING])
async def test_a_closed_host_is_knocked_at_once(url: str, word: HostStatus) -> None:
    """A host that was closed unnoticed by the scheduler costs one call; the request is then refused with the reason."""
    async with behind(url, 4) as (scheduler, efforts, cell, _):
        await cell.hosts.set_status("h0", word)
        with pytest.raises(NoValidHost) as refused:
            await scheduler.select(Request({"VCPU": 1}))
        assert refused.value.facts.reasons == (ReasonCount(word.value, 1),)
        assert efforts[-1].calls == 1


async def test_a_host_that_went_away_is_knocked_at_once(url: str) -> None:
    """One host was removed and the other has no free amount left: one call, and the request is refused."""
    async with behind(url, 4, 1) as (scheduler, efforts, cell, hosts):
        await hosts[1].measure(external=1)
        await cell.hosts.forget("h0", force=True)
        with pytest.raises(NoValidHost):
            await scheduler.select(Request({"VCPU": 1}))
        assert efforts[-1].calls == 1


async def test_a_lapsed_host_is_knocked_at_once(url: str) -> None:
    """A host whose lease expired before any sweep marked it costs one call; then its replica shows it as down."""
    async with behind(url, 4) as (scheduler, efforts, cell, _), raw_client(url) as raw:
        await raw.hset(cell.keys.host("h0"), "alive_until_ms", 1)
        await raw.zadd(cell.keys.hosts, {"h0": 1})
        with pytest.raises(NoValidHost) as refused:
            await scheduler.select(Request({"VCPU": 1}))
        assert refused.value.facts.reasons == (ReasonCount("down", 1),)
        assert efforts[-1].calls == 1


async def test_a_host_that_was_just_reserved_is_not_given_to_others(url: str) -> None:
    """The aggregate was declared: a scheduler whose replica lacks it still places no other project on its host."""
    async with behind(url, 4, 4) as (stale, efforts, _, _), Scheduler.connect(url) as other:
        reserved = Aggregate("secure", {"filter_tenant_id": "web"}, frozenset({"h0"}))
        await other.aggregates.put(reserved)
        placed = [await stale.select(Request({"VCPU": 1}, project="evil")) for _ in range(4)]
        assert {one.host for found in placed for one in found.selections} == {"h1"}
        assert [one.calls for one in efforts] == [2, 1, 1, 1], "once it has heard of it, it goes on as ever"
        with pytest.raises(NoValidHost):
            await stale.select(Request({"VCPU": 1}, project="evil"))
        [mine] = (await stale.select(Request({"VCPU": 1}, project="web"))).selections
        assert mine.host == "h0"


@pytest.mark.parametrize("mode", ["all", "incremental"])
async def test_a_host_that_was_just_reserved_is_not_given_to_several(
    url: str, mode: Literal["all", "incremental"]
) -> None:
    """The same for several places that are claimed in one call, under ids that the caller chose."""
    async with behind(url, 4, 4) as (stale, _, cell, _):
        await cell.declared.put_aggregate(Aggregate("secure", {"filter_tenant_id": "web"}, frozenset({"h0"})))
        asked = Request({"VCPU": 1}, project="evil", count=4, mode=mode, claim_ids=tuple("abcd"))
        found = await stale.select(asked)
        assert [one.host for one in found.selections] == ["h1"] * 4


@pytest.mark.parametrize("fault", ["trimmed", "deleted", "new epoch", "went back"])
async def test_a_fault_without_a_further_change_is_seen(server: PrivateServer, fault: str) -> None:
    """The feed was trimmed or deleted, or the store began an epoch or lost writes, and no later feed entry shows it.

    A replica that catches up nevertheless equals the store in every value. If `seq` went back within an epoch, the
    store has lost writes, and a new epoch begins.
    """
    async with behind(server.url, 4, 4) as (scheduler, _, cell, hosts):
        epoch = updater_of(scheduler).epoch
        with redis.Redis(unix_socket_path=str(server.socket), decode_responses=True) as raw:
            await hosts[0].measure(external=1)
            if fault == "trimmed":
                raw.xtrim("rs:{c1}:changes", maxlen=0, approximate=False)
            elif fault == "deleted":
                raw.delete("rs:{c1}:changes")
            elif fault == "new epoch":
                await cell.raise_epoch(updater_of(scheduler).epoch)
            else:
                await updater_of(scheduler).catch_up()
                raw.hincrby("rs:{c1}:meta", "seq", -1)
                raw.xtrim("rs:{c1}:changes", maxlen=0, approximate=False)
                raw.hset("rs:{c1}:host:h0", mapping={"external.VCPU": "0", "version": "1"})
        updater = updater_of(scheduler)
        await updater.catch_up()
        assert difference(updater.columns, (await take_snapshot(cell)).columns) == []
        assert (updater.epoch != epoch) == (fault in ("new epoch", "went back"))
