"""A host's name in two cells: audits find it, and close one of the hosts to claims. What runs on it goes on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from redsched.model import ClaimStatus, HostReport, HostStatus, Inventory, Request
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit import homes
from redsched.operate.audit.homes import audit_homes
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell, Cells
from redsched.settings import Settings
from redsched.store.cell import CellStore
from tests.support.builders.cells import lapse, new_epoch, nothing_written, raw_client
from tests.support.builders.homes import open_twin
from tests.support.builders.placements import held_claim
from tests.support.fleets.hosts import PlainHost
from tests.support.waiting import wait_until

QUIET = Settings(cells=("c1", "c2"), pick_from=1, tick_s=3600, check_s=0, events_keep_s=0)
ENABLED, DISABLED = HostStatus.ENABLED, HostStatus.DISABLED


@dataclass(frozen=True, slots=True)
class Twins:
    """Settled cells c1, to which the name of host h1 is bound, and c2, which has such a host too. Each has 8 VCPU."""

    scheduler: Scheduler
    raw: Any

    def store(self, cell: str) -> CellStore:
        return self.scheduler.cells.named(cell).store

    async def audited(self) -> list[Problem]:
        return list((await self.scheduler.audit()).problems)

    async def repaired(self) -> dict[str, bool]:
        return {one.thing: one.repaired for one in (await self.scheduler.repair()).problems}

    async def statuses(self) -> Mapping[str, tuple[HostStatus, str]]:
        """Return the status of h1 in each cell, and why."""
        found = [await self.scheduler.hosts.get("h1", cell) for cell in ("c1", "c2")]
        return {one.cell: (one.status, one.status_reason) for one in found}


@pytest.fixture
async def twins(clean_store: str) -> AsyncIterator[Twins]:
    async with Scheduler.connect(clean_store, QUIET) as scheduler, raw_client(clean_store) as raw:
        await scheduler.init()
        twins = Twins(scheduler, raw)
        await PlainHost(twins.store("c1"), "h1", 8, lease_s=3600).speak()
        report = HostReport("h1", {"VCPU": Inventory(8)}, cell="c2", lease_s=3600)
        await open_twin(twins.store("c1"), twins.store("c2"), report)
        yield twins


async def test_it_is_reported_and_the_second_is_given_out_no_more(twins: Twins) -> None:
    """The machine has 8 VCPU, whatever number of cells know it."""
    [problem] = await twins.audited()
    assert (problem.invariant, problem.thing, problem.cell) == (1, "h1", "c1")
    assert problem.repair is RepairKind.TWO_HOMES
    assert problem.detail == "host: live in c1 with 0 claims, live in c2 with 0 claims, and should be in c1 alone"
    assert await twins.repaired() == {"h1": False}
    assert await twins.statuses() == {"c1": (ENABLED, ""), "c2": (DISABLED, "also in cell c1")}
    eight = Request({"VCPU": 1}, count=8)
    assert {one.cell for one in (await twins.scheduler.select(eight)).selections} == {"c1"}
    refused = await twins.scheduler.explain(Request({"VCPU": 1}))
    assert refused.fits == 0
    async with nothing_written(twins.raw):
        [problem] = await twins.audited()
    assert problem.repair is None
    assert problem.advice == (
        "the one in c2 takes no new claims: if its claims run there, `redsched host drain h1 --move --cell c2` moves "
        "them; once it holds none and its agent is stopped, `redsched host remove h1 --cell c2`"
    )


async def test_all_is_well_once_one_is_removed(twins: Twins) -> None:
    await twins.scheduler.repair()
    await lapse(twins.raw, twins.store("c2"), "h1")
    await twins.scheduler.hosts.remove("h1", cell="c2")
    assert await twins.audited() == []
    assert (await twins.scheduler.hosts.get("h1")).cell == "c1"


@pytest.mark.parametrize("bound_to", ["c1", "c2", ""])
async def test_the_live_one_stays_whatever_the_name_is_bound_to(twins: Twins, bound_to: str) -> None:
    """Its agent was moved from c1 to c2 while nothing refused that."""
    await lapse(twins.raw, twins.store("c1"), "h1")
    home = twins.store("c1").keys.home("h1")
    await (twins.raw.set(home, bound_to) if bound_to else twins.raw.delete(home))
    await twins.scheduler.repair()
    assert await twins.statuses() == {"c1": (DISABLED, "also in cell c2"), "c2": (ENABLED, "")}
    assert await twins.store("c1").homes.cell_of("h1") == "c2"
    await twins.store("c2").hosts.report(HostReport("h1", {"VCPU": Inventory(8)}, cell="c2", lease_s=3600))


async def test_work_on_the_closed_one_goes_on(twins: Twins) -> None:
    host = PlainHost(twins.store("c2"), "h1", 8, lease_s=3600)
    host.held["web"] = held_claim("web", "1-a.1")
    await twins.store("c1").homes.bind("h1", "c2", "c1")
    await new_epoch(twins.store("c2"))
    await host.speak()
    await twins.store("c2").homes.bind("h1", "c1", "c2")
    await twins.scheduler.repair()
    assert await twins.statuses() == {"c1": (ENABLED, ""), "c2": (DISABLED, "also in cell c1")}
    assert (await twins.scheduler.claims.get("web")).state is ClaimStatus.ACTIVE


@pytest.mark.parametrize("cell", ["c1", "c2"])
async def test_nothing_is_written_while_a_cell_of_the_two_is_not_settled(twins: Twins, cell: str) -> None:
    """Its hosts are not live before they attest."""
    await new_epoch(twins.store(cell))
    before = await twins.statuses()
    found = [one for one in (await twins.scheduler.repair()).problems if one.thing == "h1" and one.invariant == 1]
    assert [one.advice for one in found] == [f"a host in two cells is left alone until cell {cell} has settled"]
    assert await twins.statuses() == before


async def test_one_that_a_person_closed_or_drains_is_left_so(twins: Twins) -> None:
    await twins.scheduler.hosts.drain("h1", reason="moving", cell="c2")
    assert [one.repair for one in await twins.audited()] == [None]
    await twins.scheduler.repair()
    assert (await twins.statuses())["c2"] == (HostStatus.DRAINING, "moving")


async def drained(twins: Twins) -> None:
    await twins.scheduler.hosts.drain("h1", reason="moving", cell="c2")


async def unsettled(twins: Twins) -> None:
    await new_epoch(twins.store("c1"))


@pytest.mark.parametrize("change", [drained, unsettled])
async def test_what_changes_between_the_audit_and_the_repair_is_noticed(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, change: Callable[[Twins], Awaitable[None]]
) -> None:
    expected = dict[str, tuple[HostStatus, str]]()

    async def overtaken(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
        found = await audit_homes(cell, cells)
        await change(twins)
        expected.update(await twins.statuses())
        return found

    monkeypatch.setattr(homes, "audit_homes", overtaken)
    every = twins.scheduler.cells
    await homes.repair_homes(every.named("c1"), every)
    assert await twins.statuses() == expected


async def test_the_periodic_check_does_it_and_the_status_names_it(clean_store: str, twins: Twins) -> None:
    async with Scheduler.connect(clean_store, QUIET.model_copy(update={"check_s": 0.05})) as checking:

        async def closed() -> bool:
            return (await twins.statuses())["c2"][0] is DISABLED

        await wait_until(closed, what="h1 in c2 is disabled")

        async def named() -> bool:
            problems = (await checking.status()).problems
            return any(one.kind == "audit" and "h1: host: live in c1" in one.detail for one in problems)

        await wait_until(named, what="the status names h1")
