"""An id with a claim in two cells, as a wipe and a host that came back late leave it: audits find and repair it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import EventFilter, Problem, Scheduler
from redsched.scheduler.audit import ids
from redsched.scheduler.audit.ids import audit_ids, repair_ids
from redsched.scheduler.background.recorder import Recorder
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import RepairKind
from redsched.scheduler.selection.claim_ids import claim_id_in, is_made_in
from redsched.settings import Settings
from redsched.store.commands.bindings import BindingCommands
from redsched.store.commands.claims import LOCAL, ClaimCommands
from tests.support.cells import new_epoch, nothing_written, raw_client
from tests.support.hosts import PlainHost
from tests.support.placements import held_claim, let_settle
from tests.support.waiting import wait_until

QUIET = Settings(cells=("c1", "c2"), pick_from=1, tick_s=3600, check_s=0, events_keep_s=0)
MINE = Request({"VCPU": 2}, claim_ids=("mine",))
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells c1 with host h1 and c2 with h2, each settled; the claim `mine` runs on both hosts, and c2 has its binding.

    It was placed in c1 and taken up; the store was wiped, and both cells settled by time; the id was placed again, in
    c2, and taken up there; then h1 came back, and attested to what its journal holds.
    """

    scheduler: Scheduler
    hosts: Mapping[str, PlainHost]
    raw: Any

    def cell(self, name: str) -> Cell:
        return self.scheduler._cells.named(name)

    async def audited(self) -> list[Problem]:
        """The problems of ids, and that there are no others."""
        problems = (await self.scheduler.audit()).problems
        assert {one.invariant for one in problems} <= {3}, problems
        return list(problems)

    async def states(self) -> dict[str, ClaimStatus]:
        """Of `mine`, by cell."""
        found = [(name, await self.cell(name).store.claims.read(["mine"])) for name in ("c1", "c2")]
        return {name: claims["mine"].state for name, claims in found if claims}

    async def bound_to(self) -> str:
        return await self.cell("c1").store.bindings.cell_of("mine")

    async def unbind(self) -> None:
        await self.raw.delete(self.cell("c1").store.keys.binding("mine"))


@pytest.fixture
async def cells(clean_store: str) -> AsyncIterator[Cells]:
    async with Scheduler.connect(clean_store, QUIET) as scheduler, raw_client(clean_store) as raw:
        await scheduler.init()
        stores = [cell.store for cell in scheduler._cells]
        h1, h2 = (PlainHost(store, name, 4, lease_s=3600) for store, name in zip(stores, ("h1", "h2"), strict=True))
        await h1.speak()
        await place(scheduler, h1)
        await raw.flushall()
        await h2.speak()
        for store in stores:
            assert not (await store.tick()).settled
            await let_settle(store, raw)
        await place(scheduler, h2)
        await h1.speak()
        yield Cells(scheduler, {"h1": h1, "h2": h2}, raw)


async def place(scheduler: Scheduler, host: PlainHost) -> None:
    """Place `mine` on this host, the only one there is, and have it run."""
    await scheduler.explain(MINE)
    selection = (await scheduler.select(MINE)).selections[0]
    assert selection.host == host.name
    await host.work()


ACTIVE, ENDING, ENDED = ClaimStatus.ACTIVE, ClaimStatus.ENDING, ClaimStatus.ENDED


async def test_it_is_found_and_released_in_the_cell_that_it_is_not_bound_to(cells: Cells) -> None:
    """The first host stops the work, and its owner sees why; the id is that of the other claim from then on."""
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}
    [problem] = await cells.audited()
    assert (problem.thing, problem.cell, problem.repair) == ("mine", "c1", RepairKind.TWO_CELLS)
    assert problem.detail == "claim: active in c1, active in c2, and should be in c2 alone"
    report = await cells.scheduler.repair()
    assert [(one.thing, one.repaired) for one in report.problems] == [("mine", True)]
    assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}
    assert await cells.audited() == []
    assert (await cells.scheduler.claims.get("mine")).cell == "c2"
    await cells.hosts["h1"].work()
    assert cells.hosts["h1"].held == {}
    assert await cells.states() == {"c1": ENDED, "c2": ACTIVE}
    assert await cells.audited() == []
    again = await cells.scheduler.select(MINE)
    assert (again.fresh, again.selections[0].cell) == (False, "c2")
    assert not await cells.scheduler.claims.release("mine")
    assert await cells.states() == {"c1": ENDED, "c2": ENDING}


async def test_its_event_and_its_reason_name_the_other_cell(cells: Cells) -> None:
    await cells.scheduler.repair()
    store = cells.cell("c1").store
    assert (await store.claims.reasons(["mine"]))["mine"].text == "also claimed in cell c2"
    await Recorder(store, Settings()).record()
    await cells.hosts["h1"].work()
    await Recorder(store, Settings()).record()
    events = (await cells.scheduler.events.list(100, "", EventFilter(claim="mine"))).items
    told = [(one.kind, one.facts.get("reason")) for one in events]
    assert told[-2:] == [("ending", "also claimed in cell c2"), ("released", "also claimed in cell c2")]
    assert (await store.claims.read(["mine"]))["mine"].end_reason is EndReason.RELEASED


async def test_the_periodic_check_repairs_it(clean_store: str, cells: Cells) -> None:
    async with Scheduler.connect(clean_store, QUIET.model_copy(update={"check_s": 0.05})):

        async def ends() -> bool:
            return await cells.states() == {"c1": ENDING, "c2": ACTIVE}

        await wait_until(ends, what="the claim in c1 ends")


@pytest.mark.parametrize("last", ["c1", "c2"])
async def test_without_a_binding_the_last_claim_stays_and_is_bound(cells: Cells, last: str) -> None:
    await cells.unbind()
    store = cells.cell(last).store
    at_ms = (await store.tick()).now_ms + HOUR_MS
    await cells.raw.hset(store.keys.claim("mine"), "claimed_at_ms", at_ms)
    assert [one.should for one in await cells.audited()] == [f"in {last} alone"]
    assert await cells.bound_to() == ""
    assert [one.repaired for one in (await cells.scheduler.repair()).problems] == [True]
    assert await cells.states() == {"c1": ENDING, "c2": ENDING} | {last: ACTIVE}
    assert await cells.bound_to() == last


async def test_the_binding_decides_and_not_the_time(cells: Cells) -> None:
    store = cells.cell("c1").store
    at_ms = (await store.tick()).now_ms + HOUR_MS
    await cells.raw.hset(store.keys.claim("mine"), "claimed_at_ms", at_ms)
    await cells.scheduler.repair()
    assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}


@pytest.mark.parametrize("name", ["c1", "c2"])
async def test_nothing_is_written_while_a_cell_of_the_two_is_not_settled(cells: Cells, name: str) -> None:
    """Hosts of that cell are still to say what they hold: the claim may have ended there."""
    await new_epoch(cells.cell(name).store)
    async with nothing_written(cells.raw):
        [problem] = await repair_ids(cells.cell("c1"), cells.scheduler._cells)
    assert (problem.repair, problem.repaired) == (None, False)
    assert problem.advice == f"an id with claims in two cells is left alone until cell {name} has settled"


async def test_nothing_is_written_while_the_id_is_bound_to_a_third_cell(cells: Cells) -> None:
    """A call that has found no claim may be about to claim it there."""
    await cells.raw.set(cells.cell("c1").store.keys.binding("mine"), "c3")
    async with nothing_written(cells.raw):
        [problem] = await repair_ids(cells.cell("c1"), cells.scheduler._cells)
    assert (problem.repair, problem.repaired) == (None, False)
    assert "bound to cell c3" in problem.advice


async def an_epoch_begins(cells: Cells) -> None:
    await new_epoch(cells.cell("c2").store)


async def the_other_is_released(cells: Cells) -> None:
    await cells.cell("c2").store.claims.release("h2", "mine")


@pytest.mark.parametrize("happens", [an_epoch_begins, the_other_is_released])
async def test_it_is_read_once_more_before_it_is_released(
    cells: Cells, happens: Callable[[Cells], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the audit, one of the two cells may have to wait for its hosts, or the claim that was to stay may end."""

    async def overtaken(cell: Cell, every: Any) -> tuple[Problem, ...]:
        found = await audit_ids(cell, every)
        await happens(cells)
        return found

    monkeypatch.setattr(ids, "audit_ids", overtaken)
    await repair_ids(cells.cell("c1"), cells.scheduler._cells)
    assert (await cells.states())["c1"] is ACTIVE


async def test_a_claim_that_has_changed_since_it_was_read_is_left_alone(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was resized in between, so that its token is another; the next check finds it again."""
    release = ClaimCommands.release

    async def overtaken(self: ClaimCommands, host: str, claim_id: str, token: str = "", **rest: Any) -> Any:
        await self.resize(host, claim_id, token, {"VCPU": 1}, ("reason:mine",))
        return await release(self, host, claim_id, token, **rest)

    monkeypatch.setattr(ClaimCommands, "release", overtaken)
    report = await cells.scheduler.repair()
    assert [one.thing for one in report.broken if one.invariant == 3] == ["mine"]
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}


async def test_an_id_that_is_bound_meanwhile_is_left_alone(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    await cells.unbind()
    bind = BindingCommands.bind

    async def overtaken(self: BindingCommands, claim_id: str, former: str, kept_ms: int) -> str:
        await cells.raw.set(self._cell.keys.binding(claim_id), "c1")
        return await bind(self, claim_id, former, kept_ms)

    monkeypatch.setattr(BindingCommands, "bind", overtaken)
    await cells.scheduler.repair()
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}
    assert [one.should for one in await cells.audited()] == ["in c1 alone"]


async def test_a_claim_that_no_host_has_taken_up_ends_at_once(cells: Cells) -> None:
    await cells.raw.hset(cells.cell("c1").store.keys.claim("mine"), "state", "claimed")
    repaired = await repair_ids(cells.cell("c1"), cells.scheduler._cells)
    assert [one.repaired for one in repaired] == [True]
    assert await cells.states() == {"c1": ENDED, "c2": ACTIVE}


@pytest.mark.parametrize("state", [ACTIVE, ENDING, ENDED])
async def test_a_claim_that_was_released_needs_no_repair(cells: Cells, state: ClaimStatus) -> None:
    """Also where a host has brought it back since, and no scheduler has ended it again yet."""
    store = cells.cell("c1").store
    token = (await store.claims.read(["mine"]))["mine"].token
    if state is ACTIVE:
        await cells.raw.hset(store.keys.claim("mine"), mapping={"closed": token, "closed_reason": "released"})
    else:
        await store.claims.release("h1", "mine", token)
    if state is ENDED:
        await cells.hosts["h1"].work()
    assert await audit_ids(cells.cell("c1"), cells.scheduler._cells) == ()
    assert await cells.states() == {"c1": state, "c2": ACTIVE}


async def test_a_pending_claim_goes_on(cells: Cells) -> None:
    """It has no host, and is listed among those to be reconciled."""
    store = cells.cell("c1").store
    await cells.raw.hset(store.keys.claim("mine"), mapping={"max_attempts": "3", "on_exit": "replace"})
    token = (await store.claims.read(["mine"]))["mine"].token
    answer = await store.claims.fail("h1", "mine", token, by_host=True)
    assert answer.facts == ("pending",)
    assert [one.found for one in await audit_ids(cells.cell("c1"), cells.scheduler._cells)] == [
        "pending in c1, active in c2"
    ]
    await repair_ids(cells.cell("c1"), cells.scheduler._cells)
    assert await cells.states() == {"c1": ENDED, "c2": ACTIVE}


async def test_local_work_is_no_claim_of_the_id(cells: Cells) -> None:
    """Its host runs it whatever the store says."""
    await cells.raw.hset(cells.cell("c1").store.keys.claim("mine"), "digest", LOCAL)
    assert await cells.audited() == []


async def test_ids_of_schedulers_are_not_looked_up(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin with the name of their cell. A caller's id may look similar."""
    cell, looked_up = cells.cell("c1"), list[str]()
    made, similar = claim_id_in(cell), ("c1.web", "c2.0123456789abcdef01234567", "c1")
    assert is_made_in(made, cell)
    assert not any(is_made_in(one, cell) for one in similar)
    host = cells.hosts["h1"]
    for claim_id in (made, *similar):
        held = held_claim(claim_id, (await cell.store.claims.read(["mine"]))["mine"].token)
        host.held[claim_id] = held
    await new_epoch(cell.store)
    await host.speak()

    async def noted(page: list[str]) -> bool:
        looked_up.extend(page)
        return False

    monkeypatch.setattr(cells.cell("c2").store.audit, "has_any", noted)
    await audit_ids(cell, cells.scheduler._cells)
    assert sorted(looked_up) == sorted({"mine", *similar})


async def test_an_id_of_three_cells_is_one_problem(clean_store: str, cells: Cells) -> None:
    """Only the claim of the cell that it is bound to stays."""
    settings = QUIET.model_copy(update={"cells": ("c3", "c2", "c1")})
    async with Scheduler.connect(clean_store, settings) as scheduler:
        store = scheduler._cells.named("c3").store
        await store.init()
        third = PlainHost(store, "h3", 4, lease_s=3600)
        third.held["mine"] = held_claim("mine", "1-a.1")
        await third.speak()
        assert [one.found for one in (await scheduler.audit()).problems] == ["active in c1, active in c2, active in c3"]
        assert [one.repaired for one in (await scheduler.repair()).problems] == [True]
        assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}
        assert (await store.claims.read(["mine"]))["mine"].state is ENDING
