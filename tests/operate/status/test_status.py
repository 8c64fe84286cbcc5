"""The status: healthy while all is well, and each problem is named with what to do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Request
from redsched.model.records.status import StatusReport
from redsched.operate.maintenance import Maintenance
from redsched.operate.status import cell_problems, facts
from redsched.operate.status.servers import problems_of, server_of
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.cell import CellStore
from redsched.store.commands.status import HostHead, has_own_data
from redsched.store.embedded.server import PrivateServer
from redsched.wording import duration, named
from tests.support.builders.cells import (
    accepted_claim,
    active,
    claim_on,
    ending,
    new_epoch,
    open_host,
    raw_client,
    report_of,
    stamp,
)
from tests.support.store_users import url_as
from tests.support.waiting import wait_until

QUIET = Settings(events_keep_s=0, check_s=0, tick_s=3600)
INFO = {
    "valkey_version": "8.1.4",
    "role": "master",
    "connected_slaves": 1,
    "used_memory": 1000,
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
    "rdb_last_bgsave_status": "ok",
    "aof_last_write_status": "ok",
}


class Watched:
    """A running scheduler with hosts h1 and h2, and a user of the store who may only read, whose status is asked."""

    def __init__(self, url: str, scheduler: Scheduler, raw: Any) -> None:
        self.url, self.scheduler, self.raw = url, scheduler, raw
        self.store: CellStore = scheduler.cells.named("c1").store

    async def status(self) -> StatusReport:
        """Return the status as a reader sees it."""
        async with Scheduler.connect(url_as(self.url, StoreRole.READER), QUIET, read_only=True) as reader:
            return await reader.status()

    async def kinds(self) -> list[str]:
        """Return the kinds of the problems."""
        return [one.kind for one in (await self.status()).problems]

    async def lapse(self, host: str) -> None:
        """End the lease of a host."""
        await self.raw.hset(self.store.keys.host(host), "alive_until_ms", "1")
        await self.raw.zadd(self.store.keys.hosts, {host: 1})


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Watched]:
    async with Scheduler.connect(url, QUIET) as scheduler, raw_client(url) as raw:
        await scheduler.init()
        watched = Watched(url, scheduler, raw)
        for name in ("h1", "h2"):
            await open_host(watched.store, name, VCPU=8)

        async def announced() -> bool:
            return bool(await raw.exists(watched.store.keys.schedulers))

        await wait_until(announced, what="the scheduler has announced itself")
        yield watched


@pytest.fixture
async def watched(clean_store: str) -> AsyncIterator[Watched]:
    async with opened(clean_store) as found:
        yield found


async def test_all_is_well(watched: Watched) -> None:
    await claim_on(watched.store, "claimed")
    await accepted_claim(watched.store, "starting")
    await active(watched.store, "active", "h2")
    await ending(watched.store, "ending", "h2")
    selected = await watched.scheduler.select(Request({"VCPU": 1}))
    (one,) = selected.selections
    await watched.scheduler.claims.shelve(one.claim_id or "", one.token or "")
    report = await watched.status()
    assert (report.healthy, list(report.problems)) == (True, [])
    (cell,) = report.cells
    assert (cell.settled, cell.settle_at_ms, cell.hosts.total, cell.hosts.up) == (True, None, 2, 2)
    assert cell.claims == {"active": 1, "starting": 2, "ending": 1, "pending": 0, "shelved": 1}
    assert [one.version for one in cell.schedulers] == ["0.1.0"]
    assert [one.role for one in report.servers] == ["primary"]


async def test_a_scheduler_that_stops_is_missed_at_once(clean_store: str) -> None:
    async with opened(clean_store) as watched:
        assert await watched.kinds() == []
    async with Scheduler.connect(clean_store, QUIET, read_only=True) as reader:
        (problem,) = (await reader.status()).problems
    assert (problem.kind, problem.commands) == ("no-scheduler", ("redsched api",))


async def test_an_announcement_that_is_not_repeated_is_forgotten(watched: Watched) -> None:
    keys = watched.store.keys
    await watched.raw.hset(keys.schedulers, mapping={"at_ms.dead": "1", "version.dead": "0", "pid.dead": "1"})
    assert len((await watched.status()).cells[0].schedulers) == 1
    await watched.store.status.withdraw("another")
    assert not [name for name in await watched.raw.hkeys(keys.schedulers) if name.endswith(".dead")]


async def test_a_replica_that_is_behind(watched: Watched) -> None:
    (scheduler,) = (
        await watched.raw.hkeys(watched.store.keys.schedulers) and (await watched.status()).cells[0].schedulers
    )
    await watched.raw.hset(watched.store.keys.schedulers, f"lag_ms.{scheduler.id}", "9000")
    assert await watched.kinds() == ["scheduler-behind"]


async def test_an_unsettled_cell_names_the_hosts_that_it_waits_for(watched: Watched) -> None:
    epoch = await new_epoch(watched.store)
    await watched.store.hosts.attest("h2", epoch)
    report = await watched.status()
    (problem,) = [one for one in report.problems if one.kind == "unsettled"]
    assert (problem.about, problem.count) == (("h1",), 1)
    assert problem.commands == ("redsched host write-off h1",)
    (cell,) = report.cells
    assert (cell.epoch, cell.settled, cell.unattested) == (epoch, False, 1)
    assert 0 < (cell.settle_at_ms or 0) - cell.now_ms <= 60_000
    await watched.store.hosts.write_off("h1", force=True)
    assert await watched.kinds() == []


async def test_a_wiped_cell_waits_for_hosts_that_nobody_knows(clean_store: str) -> None:
    """No scheduler runs that would remember the hosts from before the wipe."""
    async with opened(clean_store):
        pass
    async with Scheduler.connect(clean_store, QUIET, on_demand=True) as scheduler, raw_client(clean_store) as raw:
        store = scheduler.cells.named("c1").store
        await raw.delete(store.keys.meta, store.keys.hosts)
        await store.tick()
        (problem,) = [one for one in (await scheduler.status()).problems if one.kind == "unsettled"]
    assert "not known after a wipe" in problem.detail
    assert problem.commands == ()


async def test_another_server_shows_before_anybody_writes(watched: Watched) -> None:
    await watched.raw.hset(watched.store.keys.meta, mapping={"replid": "0" * 40, "run_id": "another"})
    assert "store-replaced" in await watched.kinds()


async def test_a_host_that_is_down_with_its_claims(watched: Watched) -> None:
    await active(watched.store, "web", "h1")
    await watched.lapse("h1")
    report = await watched.status()
    (problem,) = report.problems
    assert (problem.kind, problem.about) == ("host-down", ("h1",))
    assert "with 1 claim (web):" in problem.detail
    assert problem.commands == ("redsched host write-off h1 --evacuate",)
    assert (report.cells[0].hosts.up, report.cells[0].hosts.down) == (1, 1)


@pytest.mark.parametrize(
    ("evacuate", "command"), [(False, "redsched host write-off h1 --evacuate"), (True, "redsched host show h1")]
)
async def test_a_host_that_was_written_off_and_still_has_claims(watched: Watched, evacuate: bool, command: str) -> None:
    """Nothing is healthy while work that is lost counts as active."""
    for number in range(5):
        await active(watched.store, f"web-{number}", "h1")
    await watched.scheduler.hosts.write_off("h1", evacuate=evacuate, force=True)
    report = await watched.status()
    (problem,) = report.problems
    assert (problem.kind, problem.about, problem.commands[0]) == ("host-lost", ("h1",), command)
    assert "1 host is written off, and still has 5 claims (web-0, web-1, web-2 and 2 more)" in problem.detail


async def test_agents_are_counted_by_release(watched: Watched) -> None:
    """An agent that goes back to a release without the field is of an unknown release again."""
    for number, version in ((1, "1.2.3"), (2, "")):
        sent = replace(stamp(number), version=version)
        await watched.store.hosts.report(report_of("h1", VCPU=8), sent)
        (cell,) = (await watched.status()).cells
        assert (cell.hosts.with_agent, cell.hosts.agent_versions) == (1, {version: 1})


async def test_a_host_that_is_up_without_having_attested(watched: Watched) -> None:
    await watched.raw.hset(watched.store.keys.host("h1"), "epoch", "1-former")
    (problem,) = (await watched.status()).problems
    assert (problem.kind, problem.about) == ("host-unattested", ("h1",))


async def test_what_hosts_that_are_down_cannot_stop_does_not_hide_why_another_one_fails(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_problems, "WAITS_MS", 0)
    await ending(watched.store, "older", "h2")
    await ending(watched.store, "web", "h1")
    await watched.lapse("h2")
    for claim in (await watched.store.claims.read(["older", "web"])).values():
        await watched.store.claims.stop_failed(claim.host, claim.claim_id, claim.token, f"{claim.claim_id} is busy")
    (problem,) = (one for one in (await watched.status()).problems if one.kind == "ending")
    assert problem.detail.endswith(": it could not be stopped: web is busy")


async def test_a_claim_that_stays_in_ending(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    await ending(watched.store, "web", "h1")
    assert await watched.kinds() == []
    monkeypatch.setattr(cell_problems, "WAITS_MS", 0)
    (problem,) = (await watched.status()).problems
    assert (problem.kind, problem.about) == ("ending", ("web",))
    unknown = "its stop hook hangs, or its agent is gone or of an earlier release; the log of the agent tells"
    assert problem.detail.endswith(f"on h1, although the host is up: {unknown}")
    assert problem.commands == ("redsched claim show web", "redsched claim release web --force")
    (claim,) = (await watched.store.claims.read(["web"])).values()
    await watched.store.claims.stop_failed("h1", "web", claim.token, "exit code 1: target is busy\n")
    (problem,) = (await watched.status()).problems
    assert problem.detail.endswith(": it could not be stopped: exit code 1: target is busy")
    await watched.lapse("h1")
    down, problem = (await watched.status()).problems
    assert (down.kind, problem.kind) == ("host-down", "ending-host-down")
    assert problem.commands == ("redsched host write-off h1",)


async def test_an_agent_that_does_not_answer(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    await claim_on(watched.store, "web", "h1")
    monkeypatch.setattr(cell_problems, "WAITS_MS", 0)
    assert await watched.kinds() == []  # h1 has no agent: people confirm its claims
    await watched.raw.hset(watched.store.keys.host("h1"), "agent.journal", stamp(1).journal)
    (problem,) = (await watched.status()).problems
    assert (problem.kind, problem.about) == ("notifications", ("h1",))


async def test_a_claim_that_finds_no_other_place(watched: Watched) -> None:
    placed = await active(watched.store, "web", "h1")
    key = watched.store.keys.claim("web")
    retry = {"retry_root": placed.token, "retry_from": placed.token, "retry_reason": "failed", "searches": "3"}
    await watched.raw.hset(key, mapping={**retry, "state": "pending", "closed": placed.token})
    await watched.raw.zadd(watched.store.keys.reconcile, {"web": 2**45})
    report = await watched.status()
    assert [(one.kind, one.about) for one in report.problems] == [("pending", ("web",))]
    assert report.cells[0].claims["pending"] == 1
    reason = {"at_ms": "1", "host": "h1", "token": placed.token, "text": "there is no place for it now: all is full"}
    await watched.raw.hset(watched.store.keys.reason("web"), mapping=reason)
    (problem,) = (await watched.status()).problems
    assert problem.detail.endswith(": web. web: there is no place for it now: all is full")


async def test_a_claim_whose_work_ends_again_and_again(watched: Watched) -> None:
    placed = await active(watched.store, "web", "h1")
    key = watched.store.keys.claim("web")
    retry = {"retry_root": placed.token, "retry_from": placed.token, "retry_reason": "failed"}
    await watched.raw.hset(key, mapping={**retry, "state": "pending", "closed": placed.token, "restarts": "2"})
    await watched.raw.zadd(watched.store.keys.reconcile, {"web": 2**45})
    assert await watched.kinds() == []
    reason = {"at_ms": "1", "host": "h1", "token": placed.token, "text": "work-ended: exit status 1"}
    await watched.raw.hset(watched.store.keys.reason("web"), mapping=reason)
    await watched.raw.hset(key, "restarts", "3")
    (problem,) = (await watched.status()).problems
    assert (problem.kind, problem.about) == ("restarting", ("web",))
    assert problem.detail == (
        "1 claim is started again and again, because the work soon ends by itself: web (3 restarts). "
        "web: work-ended: exit status 1"
    )


async def test_deadlines_that_nobody_acts_upon(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    await claim_on(watched.store, "web", "h1")
    await watched.raw.zadd(watched.store.keys.deadlines, {"web": 1})
    (problem,) = (await watched.status()).problems
    assert (problem.kind, problem.about) == ("overdue", ("web",))
    monkeypatch.setattr(facts, "OVERDUE_MS", 2**53)
    assert await watched.kinds() == []


async def test_what_the_last_check_could_not_repair(watched: Watched) -> None:
    await claim_on(watched.store, "web", "h1", VCPU=4)
    await watched.raw.hset(watched.store.keys.host("h1"), "capacity.VCPU", "1")
    cells = watched.scheduler.cells
    await Maintenance(cells.named("c1"), cells, Settings()).check()
    report = await watched.status()
    (problem,) = [one for one in report.problems if one.kind == "audit"]
    assert "h1" in problem.detail
    audit = report.cells[0].audit
    assert audit is not None
    assert (audit.hosts, audit.claims, audit.broken) == (2, 1, problem.count)
    await watched.raw.hset(watched.store.keys.host("h1"), "capacity.VCPU", "8")
    await watched.raw.delete(watched.store.keys.duty("check"))
    await Maintenance(cells.named("c1"), cells, Settings()).check()
    audit = (await watched.status()).cells[0].audit
    assert audit is not None
    assert (audit.broken, audit.problems) == (0, ())


async def test_the_url_of_a_replica(fresh_server: PrivateServer) -> None:
    async with opened(fresh_server.url) as watched:
        await watched.raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        report = await watched.status()
        await watched.raw.execute_command("REPLICAOF", "NO", "ONE")
    (problem,) = [one for one in report.problems if one.kind == "store-replica"]
    assert "replica of 127.0.0.1:1, and the link to it is down" in problem.detail
    assert (report.servers[0].role, report.servers[0].is_linked) == ("replica", False)


def test_a_server_that_took_over_has_the_id_of_the_former_one() -> None:
    assert has_own_data({"master_replid2": "0" * 40})
    assert not has_own_data({"master_replid2": "0" * 39 + "f"})


def test_a_cell_waits_for_hosts_that_are_older_than_the_epoch() -> None:
    """New hosts are not waited for, nor are those that have attested or were written off in the epoch."""
    fields: dict[str, Any] = {"status": "enabled", "until_ms": 0, "lease_ms": 0, "claims": 0, "starting": 0}
    fields |= {"draining": "", "has_agent": False, "agent_version": "", "notified": False}
    waits = {"": ("1", "0", ""), "attested": ("2", "0", ""), "new": ("", "2", ""), "written off": ("lost", "0", "2")}
    heads = [
        HostHead(name, epoch=epoch, since=since, written_off=off, **fields)
        for name, (epoch, since, off) in waits.items()
    ]
    assert [one.name for one in heads if one.delays("2")] == [""]


async def test_two_cells_are_told_apart(clean_store: str) -> None:
    settings = QUIET.model_copy(update={"cells": ("a", "b")})
    async with Scheduler.connect(clean_store, settings) as scheduler:
        await scheduler.cells.named("a").store.init()
        await open_host(scheduler.cells.named("a").store, "h1")
        report = await scheduler.status()
    assert [one.name for one in report.cells] == ["a", "b"]
    assert [one.hosts.total for one in report.cells] == [1, 0]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, None),
        ({"maxmemory_policy": "allkeys-lru"}, "store-evicts"),
        ({"maxmemory": 1100}, "store-full"),
        ({"maxmemory": 1200}, None),
        ({"maxmemory": 500}, "store-full"),
        ({"aof_last_write_status": "err"}, "store-not-saved"),
        ({"rdb_last_bgsave_status": "err"}, "store-not-saved"),
        ({"connected_slaves": 0}, "store-replicas"),
        ({"role": "slave", "master_host": "p", "master_port": 1, "master_link_status": "up"}, "store-replica"),
    ],
)
def test_what_is_wrong_with_a_server(changed: dict[str, object], kind: str | None) -> None:
    settings = Settings(durability="replicas=1")
    found = [one.kind for one in problems_of(server_of("it", INFO | changed), settings)]
    assert found == ([] if kind is None else [kind])


def test_a_server_that_is_out_of_memory_is_told_from_one_that_will_be() -> None:
    """What it has yet to send to replicas and to write to its AOF does not count."""
    full = server_of("it", INFO | {"used_memory": 3 << 20, "maxmemory": 2 << 20})
    (problem,) = problems_of(full, Settings())
    assert problem.detail.startswith("the store is out of memory (it uses 3.0 MiB, and its maxmemory is 2.0 MiB) and ")
    assert problem.commands[1] == "redis-cli CONFIG SET maxmemory 5mb"
    to_send = {"used_memory": 3 << 20, "maxmemory": 2 << 20, "mem_not_counted_for_evict": 2 << 20}
    assert not server_of("it", INFO | to_send).is_full


def test_durations_and_names_are_short() -> None:
    assert [duration(ms) for ms in (-5, 999, 119_000, 120_000, 7_200_000, 172_800_000)] == [
        *("0 s", "0 s", "119 s", "2 min", "2 h", "2 days")
    ]
    assert named(["a", "b"], 2) == "a, b"
    assert named(["a", "b", "c"], 2) == "a, b and 1 more"
