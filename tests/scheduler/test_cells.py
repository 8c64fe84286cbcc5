"""Several cells: the best host of all is chosen, a full cell is skipped, and an id has one outcome in all cells."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import structlog

from redsched.errors import ClaimState, InvalidRequest, NotFound, NoValidHost, Settling
from redsched.model import ClaimStatus, ReasonCount, Request
from redsched.model.records.selections import Selections
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.scheduler.selection.routing import ClaimIds
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.commands.bindings import BindingCommands
from redsched.store.commands.claims import ClaimCommands
from tests.scheduler.conftest import report_all, report_of
from tests.support.builders.cells import new_epoch, raw_client
from tests.support.builders.placements import held_claim


async def test_the_best_host_of_all_cells_wins(two_cells: Scheduler) -> None:
    """The `pack` policy prefers the fullest host: b2, then b1."""
    found = [(await two_cells.select(Request({"VCPU": 2}))).selections[0] for _ in range(3)]
    assert [(one.cell, one.host) for one in found] == [("b", "b2"), ("b", "b1"), ("b", "b1")]
    assert [(one.claim_id or "").partition(".")[0] for one in found] == ["b", "b", "b"]


async def test_the_next_cell_is_tried_when_one_is_exhausted(two_cells: Scheduler) -> None:
    """Both cells together take 14 claims of 1 VCPU; the refusal of the 15th counts the hosts of both."""
    for _ in range(14):
        await two_cells.select(Request({"VCPU": 1}))
    with pytest.raises(NoValidHost) as refused:
        await two_cells.select(Request({"VCPU": 1}))
    assert refused.value.facts.reasons == (ReasonCount("VCPU", 3),)


async def test_two_schedulers_share_the_last_room_of_all_cells(two_cells: Scheduler, clean_store: str) -> None:
    """14 VCPU in both cells: of 20 requests at two schedulers 14 are claimed, and 6 refused."""
    settings = Settings(cells=("a", "b"), pick_from=1, policy="pack")
    async with Scheduler.connect(clean_store, settings) as other:
        asked = [one.select(Request({"VCPU": 1})) for one in (two_cells, other) for _ in range(10)]
        found = await asyncio.gather(*asked, return_exceptions=True)
    hosts = [one.selections[0].host for one in found if isinstance(one, Selections)]
    assert sorted(hosts) == sorted(["a1"] * 8 + ["b1"] * 4 + ["b2"] * 2)
    assert all(isinstance(one, Selections | NoValidHost) for one in found)
    assert (await two_cells.audit()).problems == ()


async def test_places_of_one_request_stay_in_one_cell(two_cells: Scheduler) -> None:
    """One script claims all places or none, in one cell: seven of 2 VCPU fit in both together, but only four in one."""
    with pytest.raises(NoValidHost):
        await two_cells.select(Request({"VCPU": 2}, count=7))
    found = await two_cells.select(Request({"VCPU": 2}, count=4))
    assert {one.cell for one in found.selections} == {"a"}


async def test_own_ids_have_one_outcome_over_all_cells(two_cells: Scheduler, clean_store: str) -> None:
    """Two schedulers get concurrent copies of each request: every id is claimed once, in one cell."""
    settings = Settings(cells=("b", "a"), policy="spread")
    async with Scheduler.connect(clean_store, settings) as other:
        for number in range(6):
            request = Request({"VCPU": 2}, claim_ids=(f"mine-{number}",))
            copies = await asyncio.gather(*(one.select(request) for one in (two_cells, other, two_cells, other)))
            assert len({(one.selections[0].cell, one.selections[0].token) for one in copies}) == 1
            assert [one.fresh for one in copies].count(True) == 1
    assert len((await two_cells.claims.list()).items) == 6


async def test_an_own_id_moves_on_from_a_full_cell(two_cells: Scheduler) -> None:
    """An id that every cell refused can be tried again once there is capacity."""
    await two_cells.select(Request({"VCPU": 4}, hosts=frozenset({"b1"})))
    await two_cells.select(Request({"VCPU": 8}, claim_ids=("first",)))
    with pytest.raises(NoValidHost):
        await two_cells.select(Request({"VCPU": 4}, claim_ids=("mine",)))
    assert await two_cells.claims.release("first")
    found = await two_cells.select(Request({"VCPU": 4}, claim_ids=("mine",)))
    assert (found.selections[0].cell, found.fresh) == ("a", True)
    assert not (await two_cells.select(Request({"VCPU": 4}, claim_ids=("mine",)))).fresh


async def test_an_id_bound_to_a_full_cell_is_voided_there(two_cells: Scheduler) -> None:
    """The cell that another process bound the id to is tried first; then the id moves to a cell with capacity."""
    request = Request({"VCPU": 4}, claim_ids=("mine",))
    await two_cells.select(Request({"VCPU": 4}, hosts=frozenset({"b1"})))
    b = two_cells.cells.named("b")
    assert await b.store.bindings.bind("mine", "", 60_000) == "b"
    found = await two_cells.select(request)
    assert (found.selections[0].cell, found.fresh) == ("a", True)
    assert (await b.store.claims.read(["mine"]))["mine"].end_reason == "void"
    assert (await two_cells.claims.get("mine")).cell == "a"
    assert await two_cells.claims.release("mine")


async def test_ids_that_another_copy_has_placed_are_answered_where_nothing_else_fits(
    two_cells: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other copy filled the cell the ids are bound to; they must not move to the other cell, which has capacity."""
    request = Request({"VCPU": 4}, claim_ids=("mine",))
    home, other = ClaimIds.home, list[Selections]()

    async def overtaken(self: ClaimIds, asked: Request) -> Cell | None:
        if other:
            return await home(self, asked)
        other.append(Selections(()))
        other[0] = await two_cells.select(request)
        return two_cells.cells.named(other[0].selections[0].cell)

    monkeypatch.setattr(ClaimIds, "home", overtaken)
    found = await two_cells.select(request)
    assert (found.fresh, found.selections[0].token) == (False, other[0].selections[0].token)


async def test_an_id_waits_for_the_cell_that_may_have_lost_its_claim(two_cells: Scheduler, clean_store: str) -> None:
    """Otherwise the id is claimed in the other cell, and then its host restores the claim in the first."""
    request = Request({"VCPU": 2}, claim_ids=("mine",))
    placed = (await two_cells.select(request)).selections[0]
    lost, other = (two_cells.cells.named(name).store for name in (placed.cell, "a" if placed.cell == "b" else "b"))
    async with raw_client(clean_store) as raw:
        for key in (lost.keys.claim("mine"), lost.keys.meta, lost.keys.binding("mine")):
            await raw.delete(key)
    with pytest.raises(Settling, match=f"claim mine is not known yet: cell {placed.cell} is in a new epoch"):
        await two_cells.select(request)
    held = held_claim("mine", placed.token or "", ClaimStatus.ACTIVE, {"VCPU": 2}, digest=request.digest())
    await lost.hosts.attest(placed.host, (await lost.tick()).epoch, held=[held])
    found = await two_cells.select(request)
    assert (found.selections[0].cell, found.fresh) == (placed.cell, False)
    assert await other.claims.read(["mine"]) == {}


async def test_a_claim_that_continues_is_found_before_one_that_has_ended_in_another_cell(two_cells: Scheduler) -> None:
    """The id was claimed and released in a; then a host of b attested to an older claim of that id."""
    request = Request({"VCPU": 2}, claim_ids=("mine",), hosts=frozenset({"a1"}))
    await two_cells.select(request)
    assert await two_cells.claims.release("mine")
    b = two_cells.cells.named("b").store
    await b.hosts.attest("b1", await new_epoch(b), held=[held_claim("mine", "1-a.1")])
    await b.hosts.attest("b2", (await b.tick()).epoch)
    found = await two_cells.claims.get("mine")
    assert (found.cell, found.state) == ("b", ClaimStatus.ACTIVE)
    assert not await two_cells.claims.release("mine")
    assert (await two_cells.claims.get("mine")).state is ClaimStatus.ENDING


@pytest.mark.parametrize(("project", "ends"), [("web", True), ("db", False)])
async def test_a_release_ends_claims_with_its_id_in_other_cells_of_its_project_only(
    two_cells: Scheduler, project: str, ends: bool
) -> None:
    await two_cells.select(Request({"VCPU": 2}, claim_ids=("mine",), hosts=frozenset({"a1"}), project="web"))
    b = two_cells.cells.named("b").store
    await b.hosts.attest("b1", await new_epoch(b), held=[held_claim("mine", "1-a.1", project=project)])
    await b.hosts.attest("b2", (await b.tick()).epoch)
    assert await two_cells.claims.release("mine")
    other = (await b.claims.read(["mine"]))["mine"]
    assert other.state is (ClaimStatus.ENDING if ends else ClaimStatus.ACTIVE)


async def test_a_host_that_attests_while_other_cells_are_examined_is_no_refusal(
    two_cells: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell a is examined before its host attests, and has settled by the time cell b is examined."""
    a, b = (two_cells.cells.named(name) for name in "ab")
    at_head, seen = {cell: cell.read_at_head for cell in (a, b)}, asyncio.Event()

    async def first(look: Callable[[], Any]) -> Any:
        found = await at_head[a](look)
        seen.set()
        return found

    async def last(look: Callable[[], Any]) -> Any:
        await seen.wait()
        await a.store.hosts.attest("a1", (await a.store.tick()).epoch)
        await a.updater.catch_up()
        assert a.updater.settled
        return await at_head[b](look)

    await new_epoch(a.store)
    monkeypatch.setattr(a, "read_at_head", first)
    monkeypatch.setattr(b, "read_at_head", last)
    with pytest.raises(Settling, match="1 of 3 hosts have not attested to its epoch"):
        await two_cells.select(Request({"VCPU": 8}))


async def test_an_id_does_not_wait_for_a_cell_that_never_had_hosts(clean_store: str) -> None:
    """Such a cell has no hosts to wait for, in this epoch or in later ones."""
    async with Scheduler.connect(clean_store, Settings(cells=("a", "empty"))) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("a1", cell="a", VCPU=8)])
        await new_epoch(scheduler.cells.named("empty").store)
        found = await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        assert (found.selections[0].cell, found.fresh) == ("a", True)


async def test_an_id_waits_for_a_wiped_cell_though_it_has_no_hosts(two_cells: Scheduler, clean_store: str) -> None:
    """Its hosts have not reported again, and one of them may hold a claim with this id."""
    async with raw_client(clean_store) as raw:
        await raw.delete(*[key async for key in raw.scan_iter(match="rs:{b}:*")])
    with pytest.raises(Settling, match="claim mine is not known yet: cell b is in a new epoch"):
        await two_cells.select(Request({"VCPU": 1}, claim_ids=("mine",)))


async def test_a_new_id_costs_two_calls_a_cell_and_one_for_its_binding(
    two_cells: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell's clock is read before the id: a claim restored before the cell settled is then seen."""
    calls: list[str] = []

    def counted(room: type, name: str) -> None:
        really = getattr(room, name)

        async def call(self: Any, *arguments: Any) -> Any:
            calls.append(name)
            return await really(self, *arguments)

        monkeypatch.setattr(room, name, call)

    for room, name in ((CellStore, "tick"), (ClaimCommands, "read"), (BindingCommands, "cell_of")):
        counted(room, name)
    assert await ClaimIds(two_cells.cells).home(Request({"VCPU": 1}, claim_ids=("mine",))) is None
    assert calls[:2] == ["tick", "tick"]
    assert sorted(calls[2:]) == ["cell_of", "read", "read"]


@pytest.mark.parametrize("first", ["a", "b"])
async def test_ids_that_are_bound_to_two_cells_follow_the_first(two_cells: Scheduler, first: str) -> None:
    """A scheduler died while moving the bindings to another cell, or a failover lost the last of its writes."""
    stores = {cell.name: cell.store for cell in two_cells.cells}
    second = "b" if first == "a" else "a"
    for claim_id, cell in (("mine-0", first), ("mine-1", second), ("mine-2", second)):
        await stores[cell].bindings.bind(claim_id, "", 60_000)
    request = Request({"VCPU": 1}, count=3, claim_ids=("mine-0", "mine-1", "mine-2"))
    found = await two_cells.select(request)
    assert {one.cell for one in found.selections} == {first}
    assert not (await two_cells.select(request)).fresh


async def test_a_name_is_unique_over_all_cells(two_cells: Scheduler) -> None:
    """A host cannot join a second cell, and an unknown cell is reported as such."""
    with pytest.raises(ClaimState):
        await two_cells.hosts.report(report_of("a1", cell="b", VCPU=1))
    with pytest.raises(NotFound):
        await two_cells.hosts.report(report_of("z1", cell="z", VCPU=1))


async def test_moving_work_prefers_the_cell_that_it_comes_from(two_cells: Scheduler) -> None:
    """The work leaves a host of a: `cross_cell` prefers another host of a, although one of b packs better."""
    await report_all(two_cells, [report_of("a2", cell="a", VCPU=16)])
    moving = Request({"VCPU": 1}, exclude_hosts=frozenset({"a1"}), claim=False)
    assert (await two_cells.select(moving)).selections[0].host == "b2"
    preferring = replace(moving, weights={"cross_cell": 1_000_000.0})
    assert (await two_cells.select(preferring)).selections[0].host == "a2"


async def test_a_scheduler_mirrors_and_maintains_all_its_cells(two_cells: Scheduler) -> None:
    assert [cell.name for cell in two_cells.cells if cell.updater.is_loaded] == ["a", "b"]
    running = {task.get_name() for task in asyncio.all_tasks()}
    assert {"redsched-sweeper-a", "redsched-sweeper-b", "redsched-record-a", "redsched-record-b"} <= running


async def test_an_explanation_covers_all_cells(two_cells: Scheduler) -> None:
    found = await two_cells.explain(Request({"VCPU": 5}), "b1")
    assert (found.hosts, found.fits, found.checks[0].reason) == (3, 1, "VCPU")


async def test_keys_of_versions_with_summaries_disturb_nothing(two_cells: Scheduler, clean_store: str) -> None:
    """They mirrored some cells, wrote what was free in each, and took a lease for that."""
    async with raw_client(clean_store) as raw:
        await raw.hset("rs:{b}:summary", mapping={"epoch": "1-a", "seq": 1, "hosts": 0, "largest.default/VCPU": 0})
        await raw.set("rs:{b}:duty:summary", "another", px=3_600_000)
        assert (await two_cells.select(Request({"VCPU": 2}))).selections[0].host == "b2"
        assert (await two_cells.repair()).problems == ()
        assert {(await two_cells.export(name)).head.cell for name in ("a", "b")} == {"a", "b"}
        assert await raw.hget("rs:{b}:summary", "hosts") == "0"


async def test_a_scheduler_names_settings_that_have_no_effect_any_longer(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It mirrors all cells nevertheless. Commands, which are opened on demand, say nothing of it."""
    monkeypatch.setenv("REDSCHED_MIRROR_CELLS", "1")
    monkeypatch.setenv("REDSCHED_LOADED_CELLS", "")
    with structlog.testing.capture_logs() as logged:
        async with Scheduler.connect(clean_store, Settings(), on_demand=True):
            assert logged == []
        async with Scheduler.connect(clean_store, Settings(cells=("a", "b"))) as scheduler:
            assert all(cell.updater.is_loaded for cell in scheduler.cells)
    (entry,) = (one for one in logged if one["event"] == "setting_has_no_effect")
    assert (entry["log_level"], entry["setting"]) == ("warning", "REDSCHED_MIRROR_CELLS")
    assert "all cells of REDSCHED_CELLS" in entry["instead"]


async def test_a_scheduler_does_not_start_with_a_policy_that_does_not_exist(clean_store: str) -> None:
    with pytest.raises(InvalidRequest, match="unknown REDSCHED_POLICY 'best'"):
        async with Scheduler.connect(clean_store, Settings(policy="best")):
            pass
