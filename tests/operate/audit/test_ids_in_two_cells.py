"""An id with claims in two cells, after a wipe and the late return of a host: audits find and repair it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from redsched.errors import StaleToken
from redsched.model import ClaimStatus, EndReason, HostReport, Inventory, Request
from redsched.model.claims import LOCAL
from redsched.model.filters import EventFilter
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit import ids
from redsched.operate.audit.ids import audit_ids, repair_ids
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.by_id import new_claim_id
from redsched.settings import Settings
from redsched.store.commands.bindings import BindingCommands
from redsched.store.commands.claims import ClaimCommands
from tests.support.builders.cells import lapse, new_epoch, nothing_written, raw_client
from tests.support.builders.placements import held_claim, let_settle
from tests.support.fleets.hosts import PlainHost
from tests.support.interleaving import before_next
from tests.support.waiting import wait_until

QUIET = Settings(cells=("c1", "c2"), pick_from=1, tick_s=3600, check_s=0, events_keep_s=0)
MINE = Request({"VCPU": 2}, claim_ids=("mine",))
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Cells:
    """Settled cells c1 with host h1 and c2 with h2; the claim `mine` runs on both hosts, and is bound to c2.

    It was placed in c1 and accepted by h1; the store was wiped, and both cells settled by time; the id was placed again
    in c2 and accepted by h2; then h1 returned, and attested to the claim in its journal.
    """

    scheduler: Scheduler
    hosts: Mapping[str, PlainHost]
    raw: Any

    def cell(self, name: str) -> Cell:
        return self.scheduler.cells.named(name)

    async def audited(self) -> list[Problem]:
        """Return the problems of ids; there must be no others."""
        problems = (await self.scheduler.audit()).problems
        assert {one.invariant for one in problems} <= {3}, problems
        return list(problems)

    async def states(self) -> dict[str, ClaimStatus]:
        """Return the state of `mine` in each cell that has it."""
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
        stores = [cell.store for cell in scheduler.cells]
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
    """Place `mine` on this host, the only one in the store, and have its work run."""
    await scheduler.explain(MINE)
    selection = (await scheduler.select(MINE)).selections[0]
    assert selection.host == host.name
    await host.work()


ACTIVE, ENDING, ENDED = ClaimStatus.ACTIVE, ClaimStatus.ENDING, ClaimStatus.ENDED


async def test_it_is_found_and_released_in_the_cell_that_it_is_not_bound_to(cells: Cells) -> None:
    """Host h1 stops the work; from then on the id stands for the claim in c2 alone."""
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


async def test_an_id_that_was_generated_for_a_cell_stays_there_whatever_a_host_of_another_one_says(
    clean_store: str,
) -> None:
    """Nothing binds a generated id, and a time is in the journal of a host."""
    async with Scheduler.connect(clean_store, QUIET) as scheduler, raw_client(clean_store) as raw:
        await scheduler.init()
        c1, c2 = (cell.store for cell in scheduler.cells)
        await PlainHost(c1, "h1", 4, lease_s=3600).speak()
        made = (await scheduler.select(Request({"VCPU": 2}, project="web"))).selections[0]
        await scheduler.hosts.report(HostReport("h2", {"VCPU": Inventory(4)}, cell="c2", lease_s=3600))
        at_ms = (await c2.tick()).now_ms + HOUR_MS
        forged = held_claim(made.claim_id or "", "1-a.1", project="web", claimed_at_ms=str(at_ms))
        await c2.hosts.attest("h2", await new_epoch(c2), held=[forged])
        await let_settle(c2, raw)
        assert (await scheduler.claims.get(forged.id)).cell == "c1"
        assert [one.repaired for one in (await scheduler.repair()).problems if one.invariant == 3] == [True]
        assert (await c1.claims.read([forged.id]))[forged.id].token == made.token
        assert (await c2.claims.read([forged.id]))[forged.id].state is ENDING


async def test_the_binding_decides_and_not_the_time(cells: Cells) -> None:
    store = cells.cell("c1").store
    at_ms = (await store.tick()).now_ms + HOUR_MS
    await cells.raw.hset(store.keys.claim("mine"), "claimed_at_ms", at_ms)
    await cells.scheduler.repair()
    assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}


async def down(cells: Cells) -> None:
    """Host h2, to whose cell the id is bound, is heard of no more: a machine whose cell was changed, for instance."""
    await lapse(cells.raw, cells.cell("c2").store, "h2")


async def returned(cells: Cells) -> None:
    """It has been written off, and has not attested since."""
    await cells.raw.hset(cells.cell("c2").store.keys.host("h2"), "epoch", "lost")


@pytest.mark.parametrize("away", [down, returned])
@pytest.mark.parametrize("is_bound", [True, False])
async def test_the_claim_on_a_live_host_is_kept_for_one_that_may_not_run(
    cells: Cells, away: Callable[[Cells], Awaitable[None]], is_bound: bool
) -> None:
    """Nothing ends the copy that certainly runs. The id is bound to its cell from then on."""
    await away(cells)
    if not is_bound:
        await cells.unbind()
    store = cells.cell("c2").store
    at_ms = (await store.tick()).now_ms + HOUR_MS
    await cells.raw.hset(store.keys.claim("mine"), "claimed_at_ms", at_ms)
    assert (await cells.scheduler.claims.get("mine")).cell == "c1"
    report = await cells.scheduler.repair()
    assert [(one.should, one.repaired) for one in report.problems if one.invariant == 3] == [("in c1 alone", True)]
    states = await cells.states()
    assert (states["c1"], states["c2"] in (ENDING, ENDED)) == (ACTIVE, True)
    assert await cells.bound_to() == "c1"
    await cells.hosts["h1"].work()
    assert len(cells.hosts["h1"].held) == 1
    assert (await cells.scheduler.claims.get("mine")).cell == "c1"


async def test_of_two_that_may_not_run_the_bound_one_is_kept(cells: Cells) -> None:
    for cell, host in (("c1", "h1"), ("c2", "h2")):
        await lapse(cells.raw, cells.cell(cell).store, host)
    await cells.scheduler.repair()
    assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}


async def test_a_host_that_dies_after_the_audit_is_noticed(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    async def overtaken(cell: Cell, every: Any) -> tuple[Problem, ...]:
        found = await audit_ids(cell, every)
        await down(cells)
        return found

    monkeypatch.setattr(ids, "audit_ids", overtaken)
    await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert await cells.states() == {"c1": ACTIVE, "c2": ENDING}


async def test_a_cell_that_starts_an_epoch_after_the_audit_is_noticed(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overtaken(cell: Cell, every: Any) -> tuple[Problem, ...]:
        found = await audit_ids(cell, every)
        await new_epoch(cells.cell("c2").store)
        return found

    monkeypatch.setattr(ids, "audit_ids", overtaken)
    await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}


@pytest.mark.parametrize("name", ["c1", "c2"])
async def test_nothing_is_written_while_a_cell_of_the_two_is_not_settled(cells: Cells, name: str) -> None:
    """Hosts of that cell have yet to attest: the claim may have ended there."""
    await new_epoch(cells.cell(name).store)
    async with nothing_written(cells.raw):
        [problem] = await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert (problem.repair, problem.repaired) == (None, False)
    assert problem.advice == f"an id with claims in two cells is left alone until cell {name} has settled"


async def test_nothing_is_written_while_the_id_is_bound_to_a_third_cell(cells: Cells) -> None:
    """A call that found no claim may be about to claim the id in that cell."""
    await cells.raw.set(cells.cell("c1").store.keys.binding("mine"), "c3")
    async with nothing_written(cells.raw):
        [problem] = await repair_ids(cells.cell("c1"), cells.scheduler.cells)
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
    """After the audit a new epoch may begin in one of the cells, or the claim that was to stay may end."""

    async def overtaken(cell: Cell, every: Any) -> tuple[Problem, ...]:
        found = await audit_ids(cell, every)
        await happens(cells)
        return found

    monkeypatch.setattr(ids, "audit_ids", overtaken)
    await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert (await cells.states())["c1"] is ACTIVE


async def test_a_claim_that_has_changed_since_it_was_read_is_left_alone(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was resized after it was read, so its token changed; the next check finds it again."""
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


async def test_a_claim_that_no_host_has_accepted_ends_at_once(cells: Cells) -> None:
    await cells.raw.hset(cells.cell("c1").store.keys.claim("mine"), "state", "claimed")
    repaired = await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert [one.repaired for one in repaired] == [True]
    assert await cells.states() == {"c1": ENDED, "c2": ACTIVE}


@pytest.mark.parametrize("state", [ACTIVE, ENDING, ENDED])
async def test_a_claim_that_was_released_needs_no_repair(cells: Cells, state: ClaimStatus) -> None:
    """This includes a claim that its host has restored and that no scheduler has ended again yet."""
    store = cells.cell("c1").store
    token = (await store.claims.read(["mine"]))["mine"].token
    if state is ACTIVE:
        await cells.raw.hset(store.keys.claim("mine"), mapping={"closed": token, "closed_reason": "released"})
    else:
        await store.claims.release("h1", "mine", token)
    if state is ENDED:
        await cells.hosts["h1"].work()
    assert await audit_ids(cells.cell("c1"), cells.scheduler.cells) == ()
    assert await cells.states() == {"c1": state, "c2": ACTIVE}


async def test_a_pending_claim_continues(cells: Cells) -> None:
    """It has no host, but the audit finds it in the list of claims to reconcile."""
    store = cells.cell("c1").store
    await cells.raw.hset(store.keys.claim("mine"), mapping={"max_attempts": "3", "on_exit": "replace"})
    token = (await store.claims.read(["mine"]))["mine"].token
    answer = await store.claims.fail("h1", "mine", token, by_host=True)
    assert answer.facts == ("pending",)
    assert [one.found for one in await audit_ids(cells.cell("c1"), cells.scheduler.cells)] == [
        "pending in c1, active in c2"
    ]
    await repair_ids(cells.cell("c1"), cells.scheduler.cells)
    assert await cells.states() == {"c1": ENDED, "c2": ACTIVE}


async def test_local_work_is_no_claim_of_the_id(cells: Cells) -> None:
    """A host runs its local work whatever the store holds under that id."""
    await cells.raw.hset(cells.cell("c1").store.keys.claim("mine"), "digest", LOCAL)
    assert await cells.audited() == []


async def test_the_id_stands_for_the_claim_that_it_is_bound_to(cells: Cells) -> None:
    """This does not depend on the order of the cells, and follows a changed binding."""
    assert (await cells.scheduler.claims.get("mine")).cell == "c2"
    await cells.raw.set(cells.cell("c1").store.keys.binding("mine"), "c1")
    assert (await cells.scheduler.claims.get("mine")).cell == "c1"


async def test_the_id_does_not_stand_for_a_claim_that_was_released(cells: Cells) -> None:
    """Its host has restored it and no scheduler has ended it again yet: it is active and bound, but closed."""
    store = cells.cell("c1").store
    token = (await store.claims.read(["mine"]))["mine"].token
    await cells.raw.hset(store.keys.claim("mine"), mapping={"closed": token, "closed_reason": "released"})
    await cells.raw.set(store.keys.binding("mine"), "c1")
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}
    assert (await cells.scheduler.claims.get("mine")).cell == "c2"


@pytest.mark.parametrize("with_token", [True, False])
async def test_a_release_of_the_id_releases_both(cells: Cells, with_token: bool) -> None:
    """The owner knows the token of the claim in c2, and not the claim that was restored in c1."""
    token = (await cells.scheduler.claims.get("mine")).token if with_token else ""
    assert not await cells.scheduler.claims.release("mine", token)
    assert await cells.states() == {"c1": ENDING, "c2": ENDING}
    for host in cells.hosts.values():
        await host.work()
    assert await cells.states() == {"c1": ENDED, "c2": ENDED}
    assert await cells.audited() == []


async def test_a_release_with_the_token_of_the_other_claim_is_refused(cells: Cells) -> None:
    other = (await cells.cell("c1").store.claims.read(["mine"]))["mine"]
    with pytest.raises(StaleToken):
        await cells.scheduler.claims.release("mine", other.token)
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}


async def test_a_release_ends_what_is_shelved_in_another_cell_too(cells: Cells) -> None:
    """Otherwise the released id could be unshelved there."""
    shelved = cells.cell("c2").store
    claim = (await shelved.claims.read(["mine"]))["mine"]
    await shelved.claims.shelve(claim.host, "mine", claim.token, {})
    await cells.hosts["h2"].work()
    assert list(await shelved.claims.shelved_ids()) == ["mine"]
    await cells.scheduler.claims.release("mine")
    assert not list(await shelved.claims.shelved_ids())
    await cells.hosts["h1"].work()
    assert (await cells.scheduler.claims.get("mine")).end_reason is EndReason.RELEASED


async def test_a_forced_release_forces_only_the_claim_that_the_id_stands_for(cells: Cells) -> None:
    """The host of the other one still runs its work, and keeps its amounts until it has stopped it."""
    await cells.scheduler.claims.release("mine", force=True)
    assert await cells.states() == {"c1": ENDING, "c2": ENDED}
    assert len(cells.hosts["h1"].held) == 1


async def test_a_cell_that_is_wiped_before_its_claim_is_released_does_not_get_it_back(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release finds nothing there; a host that restores the claim then is to stop it."""
    store = cells.cell("c1").store

    async def wipe() -> None:
        await cells.raw.delete(store.keys.claim("mine"))
        await new_epoch(store)

    before_next(monkeypatch, store.claims, "release", wipe)
    await cells.scheduler.claims.release("mine")
    await cells.hosts["h1"].speak()
    await cells.hosts["h1"].work()
    assert cells.hosts["h1"].held == {}


async def test_what_is_shelved_in_one_cell_is_released_in_the_other(cells: Cells) -> None:
    token = (await cells.scheduler.claims.get("mine")).token
    for _ in range(2):  # the second call is a retry
        assert (await cells.scheduler.claims.shelve("mine", token)).cell == "c2"
    for host in cells.hosts.values():
        await host.work()
    assert await cells.states() == {"c1": ENDED, "c2": ENDED}
    ended = [(await cells.cell(name).store.claims.read(["mine"]))["mine"].end_reason for name in ("c1", "c2")]
    assert ended == [EndReason.RELEASED, EndReason.SHELVED]
    assert (await cells.scheduler.claims.unshelve("mine")).cell == "c2"


async def test_a_release_leaves_local_work_of_the_same_id_alone(cells: Cells) -> None:
    await cells.raw.hset(cells.cell("c1").store.keys.claim("mine"), "digest", LOCAL)
    await cells.scheduler.claims.release("mine")
    assert await cells.states() == {"c1": ACTIVE, "c2": ENDING}


async def test_a_failure_ends_the_id_in_both_and_is_answered_from_its_own_cell(cells: Cells) -> None:
    token = (await cells.scheduler.claims.get("mine")).token
    now = await cells.scheduler.claims.fail("mine", token, ())
    assert (now.cell, now.state) == ("c2", ENDING)
    assert await cells.states() == {"c1": ENDING, "c2": ENDING}


async def test_without_a_binding_the_id_stands_for_the_claim_that_an_audit_keeps(cells: Cells) -> None:
    await cells.unbind()
    before = await cells.scheduler.claims.get("mine")
    await cells.scheduler.repair()
    assert (await cells.scheduler.claims.get("mine")).token == before.token


async def test_what_a_release_ends_in_other_cells_is_ended_again_in_a_new_epoch(cells: Cells) -> None:
    """The store may lose these releases like any other."""
    await cells.scheduler.claims.release("mine")
    assert len(cells.cell("c1").released) == 1
    store = cells.cell("c1").store
    for key in await cells.raw.keys(store.keys.meta.removesuffix("meta") + "*"):
        await cells.raw.delete(key)
    epoch = (await store.tick()).epoch
    assert await cells.cell("c1").released.replay_releases(epoch) == 1
    await cells.hosts["h1"].speak()
    await cells.hosts["h1"].work()
    assert cells.hosts["h1"].held == {}


async def test_a_release_holds_against_a_host_that_comes_back_later(cells: Cells) -> None:
    """c1 has lost the claim and h1, which still runs the work; only c2 knows the id when it is released."""
    store = cells.cell("c1").store
    for key in await cells.raw.keys(store.keys.meta.removesuffix("meta") + "*"):
        await cells.raw.delete(key)
    assert not (await store.tick()).settled
    assert await cells.states() == {"c2": ACTIVE}
    await cells.scheduler.claims.release("mine")
    await cells.hosts["h1"].speak()
    await cells.hosts["h1"].work()
    assert cells.hosts["h1"].held == {}


async def test_a_move_that_is_called_off_leaves_the_other_claim(cells: Cells) -> None:
    """Cancelling a move is no release of the id: an audit decides which claim stays."""
    store = cells.cell("c2").store
    third = PlainHost(store, "h3", 4, lease_s=3600)
    await third.speak()
    await cells.scheduler.explain(MINE)
    token = (await cells.scheduler.claims.get("mine")).token
    target = await cells.scheduler.claims.move("mine", token)
    assert target.host == "h3"
    await cells.scheduler.claims.release("mine", target.token)
    assert await cells.states() == {"c1": ACTIVE, "c2": ACTIVE}


async def test_an_id_made_by_a_scheduler_is_audited_too(cells: Cells) -> None:
    """The caller got no reply and retried, and the retry was placed in another cell."""
    made = new_claim_id("c1")
    for name in ("c1", "c2"):
        store, host = cells.cell(name).store, cells.hosts[{"c1": "h1", "c2": "h2"}[name]]
        host.held[made] = held_claim(made, (await store.claims.read(["mine"]))["mine"].token)
        await new_epoch(store)
        await host.speak()
    assert sorted(one.thing for one in await cells.audited()) == sorted([made, "mine"])
    await cells.scheduler.claims.release(made)
    states = [(await cells.cell(name).store.claims.read([made]))[made].state for name in ("c1", "c2")]
    assert states == [ENDING, ENDING], "although the id does not say that it has a claim in c2"


async def test_an_id_of_three_cells_is_one_problem(clean_store: str, cells: Cells) -> None:
    """Only the claim in the cell that the id is bound to stays."""
    settings = QUIET.model_copy(update={"cells": ("c3", "c2", "c1")})
    async with Scheduler.connect(clean_store, settings) as scheduler:
        store = scheduler.cells.named("c3").store
        await store.init()
        third = PlainHost(store, "h3", 4, lease_s=3600)
        third.held["mine"] = held_claim("mine", "1-a.1")
        await third.speak()
        assert [one.found for one in (await scheduler.audit()).problems] == ["active in c1, active in c2, active in c3"]
        assert [one.repaired for one in (await scheduler.repair()).problems] == [True]
        assert await cells.states() == {"c1": ENDING, "c2": ACTIVE}
        assert (await store.claims.read(["mine"]))["mine"].state is ENDING
