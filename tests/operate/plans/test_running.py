"""Planned moves are carried out by the ordinary move, one after the other, and the first that fails ends the rest."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from redsched import aio
from redsched.errors import ClaimState, InvalidRequest, NoValidHost, Unavailable
from redsched.model import Claim, ClaimStatus, Request
from redsched.model.records.plans import Aim, AppliedMove, Move
from redsched.operate.plans import plans as plan_service, running as moves_running
from redsched.operate.plans.rebalancing import VerifyQuestion
from redsched.scheduler import Scheduler
from redsched.scheduler.claims.claims import ClaimService
from tests.scheduler.working import QUICK, Work, at_work
from tests.support.waiting import patience_s, wait_until

LARGE = Request({"VCPU": 8})


@asynccontextmanager
async def working(work: Work) -> AsyncIterator[None]:
    """Let all hosts work inside the context."""

    async def on_and_on() -> None:
        while True:
            await work.work()
            await asyncio.sleep(0.02)

    task = asyncio.create_task(on_and_on())
    try:
        yield
    finally:
        await aio.end(task)


async def applied(work: Work, moves: Sequence[Move], timeout_s: float = 30) -> Sequence[AppliedMove]:
    return (await work.scheduler.plans.apply(moves, timeout_s)).moves


async def moving(work: Work, claim_id: str) -> Claim:
    """Wait until the claim has a second placement, and return it."""

    async def has_two() -> bool:
        return len((await work.scheduler.claims.get(claim_id)).placements) == 2

    await wait_until(has_two, what=f"{claim_id} is being moved")
    return await work.scheduler.claims.get(claim_id)


async def test_room_is_made_for_a_request(clean_store: str) -> None:
    """The request does not fit before, and does afterwards; each claim runs where the plan said."""
    async with at_work(clean_store, 8, 8, 8, settings=QUICK) as work, working(work):
        for number in range(3):
            await work.scheduler.select(Request({"VCPU": 2}, claim_ids=(f"id{number}",), until="active"))
        plan = await work.scheduler.plans.rebalance(Aim.REQUEST, 5, LARGE)
        assert (len(plan.moves), plan.before, plan.after) == (1, 0, 1)
        [done] = await applied(work, plan.moves)
        assert done.problem == ""
        now = await work.scheduler.claims.get(done.claim_id)
        assert (now.hosts, now.state) == ((plan.moves[0].target,), ClaimStatus.ACTIVE)
        assert (await work.scheduler.select(LARGE)).selections[0].host == plan.moves[0].source
        await work.is_sound()


async def test_the_first_move_that_fails_ends_the_rest(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8, settings=QUICK) as work, working(work):
        claims = []
        for name in ("one", "two", "three"):
            await work.scheduler.select(Request({"VCPU": 2}, claim_ids=(name,), until="active", policy="pack"))
            claims.append(await work.scheduler.claims.get(name))
        source = claims[0].host
        target = "h1" if source == "h0" else "h0"
        moves = [Move(one.claim_id, "", one.token, source, target, "") for one in claims]
        stale = Move("two", "", claims[0].token, source, target, "")
        done = await applied(work, [moves[0], stale, moves[2]])
        assert [one.claim_id for one in done] == ["one", "two"]
        assert done[0].problem == ""
        assert "has changed since the plan" in done[1].problem
        assert (await work.scheduler.claims.get("three")).host == source
        [gone] = await applied(work, [Move("nobody", "", claims[0].token, source, target, "")])
        assert "no claim 'nobody'" in gone.problem
        [full] = await applied(work, [Move("two", "", claims[1].token, source, "h9", "")])
        assert "none of 2 hosts can take" in full.problem


async def test_a_move_that_takes_too_long_is_reported_and_goes_on(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 2}, claim_ids=("slow",)))
        [late] = await applied(work, [Move("slow", "", claim.token, "h0", "h1", "")], 0.0)
        assert "not active on h1 alone within 0 s; the move goes on" in late.problem
        await work.work([1])
        await work.settle()
        assert (await work.scheduler.claims.get("slow")).hosts == ("h1",)


async def test_a_target_that_fails_is_reported(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 2}, claim_ids=("bad",)))
        running = asyncio.create_task(applied(work, [Move("bad", "", claim.token, "h0", "h1", "")]))
        now = await moving(work, "bad")
        await work.scheduler.claims.fail("bad", now.placements[1].token)
        [failed] = await running
        assert "could not be started on h1, and it stays on h0" in failed.problem


async def test_requests_that_wait_here_get_room(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8, settings=QUICK) as work, working(work):
        for name in ("one", "two"):
            await work.scheduler.select(Request({"VCPU": 2}, claim_ids=(name,), until="active"))
        waits = asyncio.create_task(
            work.scheduler.select(Request({"VCPU": 8}, claim_ids=("waits",), queue_timeout_s=60))
        )
        await wait_until(lambda: bool(work.scheduler._waiting()), what="the request waits")
        plan = await work.scheduler.plans.rebalance(Aim.WAITING, 5)
        assert (plan.before, plan.after, plan.goal, len(plan.moves)) == (0, 1, 1, 1)
        assert [one.problem for one in await applied(work, plan.moves)] == [""]
        assert (await waits).selections[0].host == plan.moves[0].source
        assert work.scheduler._waiting() == []


async def test_several_cells_are_rebalanced_in_turn(two_cells: Scheduler) -> None:
    """Room in another cell counts, so no claim is moved for a request that fits there; but all places need one cell."""
    plans = two_cells.plans
    fits = await plans.rebalance(Aim.REQUEST, 5, Request({"VCPU": 4}, count=3, mode="incremental"))
    assert (fits.moves, fits.before, fits.after, fits.goal) == ((), 3, 3, 3)
    whole = await plans.rebalance(Aim.REQUEST, 5, Request({"VCPU": 4}, count=3))
    assert (whole.moves, whole.before, whole.after, whole.goal) == ((), 2, 2, 3)
    with pytest.raises(NoValidHost):
        await two_cells.select(Request({"VCPU": 4}, count=3))
    tight = await plans.rebalance(Aim.REQUEST, 5, Request({"VCPU": 8}, count=2))
    assert (tight.moves, tight.before, tight.after, tight.goal) == ((), 1, 1, 2)
    empty = await plans.rebalance(Aim.DRAIN, 5, hosts=["a1", "b1"])
    assert (empty.moves, empty.after) == ((), 0)
    assert (await plans.rebalance(Aim.POLICY, 5)).moves == ()
    with pytest.raises(InvalidRequest):
        await plans.rebalance(Aim.DRAIN, 5)


async def test_moves_are_planned_again_if_the_fleet_changed(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to three times; then the caller has to."""
    async with at_work(clean_store, 8, 8, 8) as work:
        for number in range(3):
            await work.active(Request({"VCPU": 2}, claim_ids=(f"id{number}",)), host=number)
        asked = list[object]()
        ask = work.scheduler.plans._ask

        async def counted(cell: object, question: object, **more: object) -> object:
            asked.append(question)
            if isinstance(question, VerifyQuestion) and len(asked) < 8:
                raise ClaimState("it has changed")
            return await ask(cell, question, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(work.scheduler.plans, "_ask", counted)
        with pytest.raises(ClaimState):
            await work.scheduler.plans.rebalance(Aim.REQUEST, 5, LARGE)
        assert len(asked) == 1 + 2 * plan_service.TRIES
        assert (await work.scheduler.plans.rebalance(Aim.REQUEST, 5, LARGE)).after == 1


async def test_a_claim_that_ends_while_it_is_moved_ends_the_wait(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 2}, claim_ids=("short",)))
        running = asyncio.create_task(applied(work, [Move("short", "", claim.token, "h0", "h1", "")]))
        await moving(work, "short")
        await work.scheduler.claims.release("short", force=True)
        async with asyncio.timeout(patience_s(10)):
            [ended] = await running
        assert "its move has ended" in ended.problem


async def test_moves_that_were_made_are_reported_when_the_store_fails(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_work(clean_store, 8, 8) as work:
        moves = [Move(name, "", "1-a.1", "h0", "h1", "") for name in ("one", "two", "three")]

        async def failing(_claims: ClaimService, move: Move, _timeout_s: float) -> str:
            if move.claim_id != "one":
                raise Unavailable("the store cannot be reached")
            return ""

        monkeypatch.setattr(moves_running, "_problem", failing)
        done = await applied(work, moves)
        assert [(one.claim_id, one.problem) for one in done] == [("one", ""), ("two", "the store cannot be reached")]
        with pytest.raises(Unavailable):
            await applied(work, moves[1:])


async def test_a_claim_that_is_not_active_is_not_moved(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h0"}), claim_ids=("new",)))
        claim = await work.scheduler.claims.get("new")
        [refused] = await applied(work, [Move("new", "", claim.token, "h0", "h1", "")])
        assert "claim new is claimed on h0 and has changed since the plan" in refused.problem
