"""A host's name is in one cell: another one refuses it, however it comes, until it is removed from the first."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.errors import ClaimState, NotFound, StoreUnavailable
from redsched.model import AgentStamp, HostReport, HostStatus, Inventory, SharedPool
from redsched.operate.backup.import_ import import_cell, import_declared
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.agent_calls import ReportCall
from redsched.store.cell import CellStore
from redsched.store.codec.keys import CELLS, Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands import known_cells
from redsched.store.store import Store
from tests.support.builders.cells import lapse, nothing_written, raw_client
from tests.support.builders.homes import open_twin
from tests.support.interleaving import before_next

SETTINGS = Settings(cells=("c1", "c2"), pick_from=1, tick_s=3600, check_s=0, events_keep_s=0)
IN_C1 = (
    "host h1 is in cell c1, and a name is in one cell at a time: to have it in c2, stop its agent, and `redsched host "
    "remove h1 --cell c1` once it holds no claims there; if it is another machine, give it another name"
)


def report_in(cell: str, name: str = "h1") -> HostReport:
    return HostReport(name, {"VCPU": Inventory(8)}, cell=cell, lease_s=3600)


@pytest.fixture
async def scheduler(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over the cells c1, with host h1, and c2."""
    async with Scheduler.connect(clean_store, SETTINGS) as opened:
        await opened.init()
        await opened.hosts.report(report_in("c1"))
        yield opened


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    async with raw_client(clean_store) as found:
        yield found


def store_of(scheduler: Scheduler, cell: str) -> CellStore:
    return scheduler.cells.named(cell).store


async def names_in(scheduler: Scheduler, cell: str) -> list[str]:
    return await store_of(scheduler, cell).hosts.names()


async def test_a_report_to_another_cell_is_refused(scheduler: Scheduler, raw: Any) -> None:
    async with nothing_written(raw):
        with pytest.raises(ClaimState) as refused:
            await scheduler.hosts.report(report_in("c2"))
    assert str(refused.value) == IN_C1
    assert await names_in(scheduler, "c2") == []
    await scheduler.hosts.report(report_in("c1"))


@pytest.mark.parametrize("cells", [("c1", "c2"), ("c2",)])
async def test_so_is_the_report_of_an_agent_on_the_store(scheduler: Scheduler, cells: tuple[str, ...]) -> None:
    """It may know of its own cell only."""
    async with Store.connect(scheduler._store.url, Settings(cells=cells)) as store:
        with pytest.raises(ClaimState, match="host h1 is in cell c1"):
            await store.cell("c2").hosts.report(report_in("c2"))


async def test_a_process_learns_that_the_store_has_got_a_second_cell(
    clean_store: str, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hosts are bound by their next report, so that the second cell refuses them."""
    async with Store.connect(clean_store, Settings(cells=("c1",))) as first:
        c1 = first.cell("c1")
        await c1.hosts.report(report_in("c1"))
        async with Store.connect(clean_store, Settings(cells=("c2",))) as second:
            monkeypatch.setattr(known_cells, "READ_EVERY_S", -1.0)
            await c1.hosts.report(report_in("c1"))
            assert await raw.get(c1.keys.home("h1")) == "c1"
            with pytest.raises(ClaimState, match="host h1 is in cell c1"):
                await second.cell("c2").hosts.report(report_in("c2"))


async def test_of_two_that_report_at_the_same_time_one_is_accepted(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is bound before its first report arrives."""
    c1, c2 = store_of(scheduler, "c1"), store_of(scheduler, "c2")

    async def overtaken() -> None:
        with pytest.raises(ClaimState, match="host h2 is in cell c1"):
            await c2.hosts.report(report_in("c2", "h2"))

    before_next(monkeypatch, c1._cell, "run", overtaken)
    assert (await c1.hosts.report(report_in("c1", "h2"))).outcome is Outcome.OK


async def test_a_name_that_nothing_binds_is_found_in_its_cell(scheduler: Scheduler, raw: Any) -> None:
    """The host has not reported since the store got its second cell, or the shard of the binding has lost it."""
    await raw.delete(store_of(scheduler, "c1").keys.home("h1"))
    with pytest.raises(ClaimState, match="host h1 is in cell c1"):
        await scheduler.hosts.report(report_in("c2"))
    assert await store_of(scheduler, "c2").homes.cell_of("h1") == "c1"


async def test_a_wiped_cell_keeps_the_names_of_its_hosts(scheduler: Scheduler, raw: Any) -> None:
    """Its shard has lost them, and they have yet to report."""
    for key in await raw.keys(store_of(scheduler, "c1").keys.meta.removesuffix("meta") + "*"):
        await raw.delete(key)
    with pytest.raises(ClaimState, match="host h1 is in cell c1"):
        await scheduler.hosts.report(report_in("c2"))


async def test_a_host_that_was_removed_may_join_another_cell(scheduler: Scheduler, raw: Any) -> None:
    await lapse(raw, store_of(scheduler, "c1"), "h1")
    await scheduler.hosts.remove("h1", cell="c1")
    await scheduler.hosts.report(report_in("c2"))
    assert (await scheduler.hosts.get("h1")).cell == "c2"
    with pytest.raises(ClaimState, match="host h1 is in cell c2"):
        await scheduler.hosts.report(report_in("c1"))


@pytest.mark.parametrize("cell", ["", "c1"])
async def test_a_name_whose_host_is_lost_is_freed_by_removing_it(scheduler: Scheduler, raw: Any, cell: str) -> None:
    """The process that removed the host has died before it freed the name."""
    c1 = store_of(scheduler, "c1")
    await lapse(raw, c1, "h1")
    await scheduler.hosts.remove("h1")
    await c1.homes.bind("h1")
    with pytest.raises(NotFound, match="no host 'h1' in cell c2"):
        await scheduler.hosts.remove("h1", cell="c2")
    await scheduler.hosts.remove("h1", cell=cell)
    await scheduler.hosts.report(report_in("c2"))


async def test_an_attestation_in_another_cell_is_refused(scheduler: Scheduler) -> None:
    """Both cells have the host since an earlier release."""
    c1, c2 = store_of(scheduler, "c1"), store_of(scheduler, "c2")
    await twin(scheduler)
    with pytest.raises(ClaimState, match="host h1 is in cell c1"):
        await c2.hosts.attest("h1", "")
    with pytest.raises(ClaimState, match="host h1 is in cell c1"):
        await scheduler.agents.call(c2, ReportCall.of(report_in("c2"), AgentStamp("j", "n", 1)))
    assert (await c1.hosts.attest("h1", "")).outcome is Outcome.ALREADY_DONE


async def twin(scheduler: Scheduler) -> None:
    """Make a host h1 in c2 too, which c1 has and the name is bound to."""
    await open_twin(store_of(scheduler, "c1"), store_of(scheduler, "c2"), report_in("c2"))


async def test_verbs_name_both_cells_and_want_one(scheduler: Scheduler, raw: Any) -> None:
    await twin(scheduler)
    hosts = scheduler.hosts
    unclear = r"host h1 is in cell c1 and cell c2: name one of them as `cell`"
    for call in (hosts.get, hosts.tag, hosts.enable, hosts.disable, hosts.drain, hosts.write_off, hosts.remove):
        with pytest.raises(ClaimState, match=unclear):
            await call("h1")
    await hosts.disable("h1", cell="c2")
    found = [(cell, (await hosts.get("h1", cell)).status) for cell in ("c1", "c2")]
    assert found == [("c1", HostStatus.ENABLED), ("c2", HostStatus.DISABLED)]
    assert await hosts.tag("h1", "c1") != await hosts.tag("h1", "c2")
    await lapse(raw, store_of(scheduler, "c2"), "h1")
    await hosts.write_off("h1", cell="c2")
    await hosts.remove("h1", cell="c2")
    assert (await hosts.get("h1")).cell == "c1"
    assert await store_of(scheduler, "c1").homes.cell_of("h1") == "c1"


async def test_heartbeats_are_those_of_the_host_that_has_the_name(scheduler: Scheduler, raw: Any) -> None:
    await twin(scheduler)
    await raw.hset(store_of(scheduler, "c2").keys.host("h1"), "epoch", "")
    assert await scheduler.hosts.heartbeat("h1", 3600) == Outcome.OK
    await raw.set(store_of(scheduler, "c1").keys.home("h1"), "c2")
    assert await scheduler.hosts.heartbeat("h1", 3600) == Outcome.NOT_ATTESTED


async def test_a_server_that_is_away_concerns_no_host_of_another_cell(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of another cell nor that of the key of its name: its lease must not run out, and verbs work."""

    async def is_away(*_: object) -> Any:
        raise StoreUnavailable("this server is away")

    monkeypatch.setattr(store_of(scheduler, "c2").hosts, "read", is_away)
    monkeypatch.setattr(store_of(scheduler, "c1").homes, "cell_of", is_away)
    assert await scheduler.hosts.heartbeat("h1", 3600) == Outcome.OK
    await scheduler.hosts.disable("h1")
    assert (await scheduler.hosts.get("h1")).status is HostStatus.DISABLED
    with pytest.raises(StoreUnavailable, match="away"):
        await scheduler.hosts.get("h2")


async def test_a_list_has_both_and_does_not_split_them(scheduler: Scheduler) -> None:
    await twin(scheduler)
    await scheduler.hosts.report(report_in("c1", "h2"))
    first = await scheduler.hosts.list(limit=1)
    assert [(one.name, one.cell) for one in first.items] == [("h1", "c1"), ("h1", "c2")]
    second = await scheduler.hosts.list(limit=1, after=first.next or "")
    assert [(one.name, one.cell, second.next) for one in second.items] == [("h2", "c1", None)]


async def test_an_import_of_a_host_that_another_cell_has_writes_nothing(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.hosts.report(report_in("c1", "h0"))
    archive = await scheduler.export("c1")
    moved = replace(archive, hosts=tuple(replace(one, cell="c2") for one in archive.hosts))
    async with nothing_written(raw):
        with pytest.raises(ClaimState, match=r"hosts of the file are in other cells: h0 \(c1\), h1 \(c1\)"):
            await import_cell(store_of(scheduler, "c2"), moved)


async def test_a_status_is_not_declared_for_a_host_that_another_cell_has(scheduler: Scheduler) -> None:
    await scheduler.hosts.disable("h1")
    c2 = store_of(scheduler, "c2")
    done = await import_declared(c2, await scheduler.export("c1"))
    assert done.notes == ("hosts in other cells, and so left alone: h1 (c1)",)
    assert (done.counts["statuses"], await c2.hosts.expected()) == (0, {})


async def test_an_import_leaves_a_shared_pool_in_its_cell(scheduler: Scheduler, raw: Any) -> None:
    """It would be given out in both cells."""
    await scheduler.shared_pools.put(SharedPool("seats", {"CUSTOM_SEAT": Inventory(4)}), cell="c1")
    c2 = store_of(scheduler, "c2")
    archive = replace(await scheduler.export("c1"), hosts=())
    done = await import_declared(c2, archive)
    assert done.notes == ("shared pools in other cells, and so left alone: seats (c1)",)
    async with nothing_written(raw):
        with pytest.raises(ClaimState, match=r"shared pools of the file are in other cells: seats \(c1\)"):
            await import_cell(c2, archive)
    assert await c2.declared.names(Kind.POOL) == []


async def test_of_two_that_declare_a_pool_in_two_cells_at_the_same_time_one_is_refused(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither had found it before."""
    seats = SharedPool("seats", {"CUSTOM_SEAT": Inventory(4)})
    c1, c2 = store_of(scheduler, "c1"), store_of(scheduler, "c2")

    async def overtaken() -> None:
        await c2.declared.put_pool(seats)

    before_next(monkeypatch, c1.declared, "put_pool", overtaken)
    with pytest.raises(ClaimState, match="pool seats is in cell c2: delete it there first"):
        await scheduler.shared_pools.put(seats, cell="c1")
    assert [await one.declared.names(Kind.POOL) for one in (c1, c2)] == [[], ["seats"]]


async def test_a_store_of_one_cell_binds_no_names(clean_store: str, raw: Any) -> None:
    async with Scheduler.connect(clean_store, Settings(tick_s=3600)) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(report_in("c1"))
        await scheduler.hosts.remove("h1", force=True)
        assert await raw.keys("rs:{host:*") == []
        assert await raw.smembers(CELLS) == {"c1"}
