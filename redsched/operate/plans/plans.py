"""Plans on the running cells. Each is made in a fork of the process, on columns at the head of the feed."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from redsched.errors import ClaimState, InvalidRequest
from redsched.model import MAX_COUNT, HostReport, Request
from redsched.model.limits import check_range
from redsched.model.records.plans import (
    AddingPlan,
    Aim,
    Applied,
    CapacityPlan,
    LeavingPlan,
    Move,
    RebalancePlan,
    planned,
)
from redsched.model.validation import MAX_AMOUNT, check_name, check_topology
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.live import MAX_CLAIMS, MAX_LEAVING, Known, read_known
from redsched.operate.plans.merging import merged_adding, merged_capacity, merged_leaving, merged_rebalancing
from redsched.operate.plans.questions import (
    AddingQuestion,
    CapacityQuestion,
    LeavingQuestion,
    answer,
    is_cut,
    is_late,
    times_within,
)
from redsched.operate.plans.rebalancing import RebalanceQuestion, VerifyQuestion, check_aim
from redsched.operate.plans.running import carried_out
from redsched.scheduler.cells import Cell, Cells, no_such_host
from redsched.scheduler.claims.claims import ClaimService
from redsched.scheduler.decide_apart.limits import TOTAL_S, DecisionLimits
from redsched.scheduler.decide_apart.planner import Planner
from redsched.scheduler.quotas.shares import QuotaShares
from redsched.scheduler.references import with_hints
from redsched.settings import Settings

T = TypeVar("T")

WITH_ALL_CLAIMS = 2
"""How many plans may have read all claims of a cell at once: those of 100,000 claims take a few hundred MB."""
TRIES = 3
"""How often moves are planned at most, if the fleet changes before they are verified."""


class PlanService:
    """Answers what would happen, over all cells of a scheduler. Only `apply` writes.

    Every plan raises Unavailable, and TooHard if it takes longer than `plan_limit_s`.
    """

    def __init__(
        self,
        cells: Cells,
        claims: ClaimService,
        shares: QuotaShares,
        limits: DecisionLimits,
        settings: Settings,
        waiting: Callable[[], list[Request]],
    ) -> None:
        """Take the parts of a scheduler. `waiting` returns the requests that wait in it for room."""
        self._cells = cells
        self._claims = claims
        self._shares = shares
        self._settings = settings
        self._waiting = waiting
        self._with_all_claims = asyncio.Semaphore(WITH_ALL_CLAIMS)
        self._planner = limits.planner or Planner(settings.plan_limit_s or TOTAL_S)

    async def capacity(self, request: Request, n_plus_one: str = "") -> CapacityPlan:
        """Return how many more of a request fit, in all zones.

        With `n_plus_one` (`host`, `zone`, `label:<key>`), also whether all claims would have a place without any one of
        these. A plan that takes too long returns what was found until then, marked as incomplete. Raises NotFound,
        InvalidRequest.
        """
        if n_plus_one:
            check_topology(n_plus_one)
        request = await self._with_hints(request)
        question = CapacityQuestion(request, n_plus_one)
        found = [await self._ask(cell, question, all_claims=bool(n_plus_one)) for cell in self._cells]
        return replace(merged_capacity(found), quota=await self._quota(request))

    async def drain(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these were drained with moves. Raises NotFound."""
        return await self._leave(hosts, gone=False)

    async def without(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these died, and were evacuated. Raises NotFound."""
        return await self._leave(hosts, gone=True)

    async def with_hosts(self, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
        """Return what further hosts would change: the room of classes, what waits, and how many of a request fit.

        Raises NotFound (a cell, or what the request names), InvalidRequest (a host exists already).
        """
        if not reports:
            raise InvalidRequest("no hosts are given: describe at least one")
        if len({one.name for one in reports}) < len(reports):
            raise InvalidRequest("hosts: a name is there twice: names must be unique")
        request = await self._with_hints(request) if request is not None else None
        by_cell: dict[str, list[HostReport]] = {}
        for one in reports:
            by_cell.setdefault(self._cells.named(one.cell).name, []).append(one)
        found = [
            await self._ask(self._cells.named(name), AddingQuestion(some, request), waiting=True)
            for name, some in by_cell.items()
        ]
        return merged_adding(found)

    async def rebalance(
        self,
        aim: Aim,
        max_moves: int = 10,
        request: Request | None = None,
        hosts: Collection[str] = (),
        policy: str = "",
    ) -> RebalancePlan:
        """Return at most so many moves that reach an aim, verified on a copy of the fleet as it is then.

        `request` and its count, `hosts` and `policy` (default: that of the settings) belong to the aims of these names.
        With several cells, a request whose `mode` is all gets its room in one of them, and only claims that wait are
        made room for, as only they have a cell. Raises NotFound, InvalidRequest, ClaimState (the fleet changes too
        fast).
        """
        check_aim(aim, request, hosts, policy)
        check_range("max_moves", max_moves, 1, MAX_AMOUNT)
        if aim is Aim.REQUEST:
            assert request is not None
            return await self._for_request(max_moves, await self._with_hints(request))
        if aim is Aim.DRAIN:
            cells = await self._cells_of(hosts)
            asked = [(cell, RebalanceQuestion(aim, max_moves, hosts=some)) for cell, some in cells.items()]
        else:
            waiting = self._waiting() if aim is Aim.WAITING and len(self._cells) == 1 else []
            question = RebalanceQuestion(aim, max_moves, policy=policy or self._settings.policy, waiting=waiting)
            asked = [(cell, question) for cell in self._cells]
        return await self._in_turn(asked, max_moves)

    async def apply(self, moves: Sequence[Move], timeout_s: float = 60) -> Applied:
        """Make moves one after the other: each until its claim runs on the target and has left the source.

        A move that fails says why, and ends the rest, which may rely on it. Each may take `timeout_s`; what has begun
        by then goes on. A move that was made or begun before is not made twice. Raises Unavailable about the first
        move; about a later one, that is why it failed, so that the caller learns which were made.
        """
        return await carried_out(self._claims, moves, timeout_s)

    async def _for_request(self, max_moves: int, request: Request) -> RebalancePlan:
        """Make room for a request in one cell after the other, if it does not fit in all of them together."""
        fitting = [await self._ask(cell, RebalanceQuestion(Aim.REQUEST, 0, request)) for cell in self._cells]
        if request.mode == "all":
            return await self._in_one_cell(max_moves, request, fitting)
        missing, plans = request.count - int(sum(one.after for one in fitting)), list[RebalancePlan]()
        for cell, now in zip(self._cells, fitting, strict=True):
            left = max_moves - sum(len(one.moves) for one in plans)
            if missing <= 0 or not left:
                plans.append(now)
                continue
            wanted = replace(request, count=min(MAX_COUNT, int(now.after) + missing))
            found = await self._verified(cell, RebalanceQuestion(Aim.REQUEST, left, wanted))
            missing -= int(found.after - found.before)
            plans.append(found)
        total = merged_rebalancing(plans)
        return replace(
            total, before=min(total.before, request.count), after=min(total.after, request.count), goal=request.count
        )

    async def _in_one_cell(self, max_moves: int, request: Request, fitting: Sequence[RebalancePlan]) -> RebalancePlan:
        """Make room for all places of a request in the cell that takes most of them, with the fewest moves."""
        now = max(fitting, key=lambda one: one.after)
        if now.after >= request.count:
            return now
        question = RebalanceQuestion(Aim.REQUEST, max_moves, request)
        plans = [await self._verified(cell, question) for cell in self._cells]
        best = max(plans, key=lambda one: (one.after, -len(one.moves)))
        return replace(best, before=min(now.after, best.after), is_cut=any(one.is_cut for one in plans))

    async def _in_turn(self, asked: Sequence[tuple[Cell, RebalanceQuestion]], max_moves: int) -> RebalancePlan:
        plans = list[RebalancePlan]()
        for cell, question in asked:
            left = max_moves - sum(len(one.moves) for one in plans)
            plans.append(await self._verified(cell, replace(question, max_moves=left)))
        return merged_rebalancing(plans)

    async def _verified(self, cell: Cell, question: RebalanceQuestion) -> RebalancePlan:
        """Return a plan whose moves were played on a second copy; plan again if the fleet changed in between."""
        for number in range(TRIES):
            plan = await self._ask(cell, question, all_claims=True, waiting=question.aim is Aim.WAITING)
            try:
                check = VerifyQuestion(question, plan)
                return await self._ask(cell, check, all_claims=True, waiting=question.aim is Aim.WAITING)
            except ClaimState:
                if number == TRIES - 1:
                    raise
        raise AssertionError

    async def _with_hints(self, request: Request) -> Request:
        return await with_hints(planned(request), self._cells)

    async def _leave(self, hosts: Collection[str], gone: bool) -> LeavingPlan:
        if not hosts:
            raise InvalidRequest("no hosts are given: name at least one")
        found = [
            await self._ask(cell, LeavingQuestion(some, gone), hosts=some)
            for cell, some in (await self._cells_of(hosts)).items()
        ]
        return merged_leaving(found)

    async def _ask(
        self,
        cell: Cell,
        question: Callable[[CellCopy], T],
        hosts: Collection[str] = (),
        all_claims: bool = False,
        waiting: bool = False,
    ) -> T:
        """Answer a question about one cell in a fork, after reading the claims that it needs. Raises PlannerBusy."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._planner.admitted(""))
            if all_claims or waiting:
                await stack.enter_async_context(self._with_all_claims)
            if all_claims:
                hosts = await cell.read_at_head(lambda: cell.updater.columns.names())
            most = sys.maxsize if self._planner.is_alone else MAX_CLAIMS if all_claims else MAX_LEAVING
            known = await read_known(cell, hosts, waiting, most) if hosts or waiting else Known()
            job = partial(_answer, cell, known, self._settings, question)
            again = is_late if isinstance(question, VerifyQuestion) else is_cut
            return cast(T, await self._planner.run_admitted(job, cell.read_at_head, again))

    async def _cells_of(self, hosts: Iterable[str]) -> dict[Cell, list[str]]:
        """Return the hosts by their cell, sorted. Raises NotFound."""
        await self._cells.catch_up()
        found: dict[Cell, list[str]] = {}
        for host in sorted(set(hosts)):
            check_name("host", host)
            found.setdefault(self._cell_of(host), []).append(host)
        return found

    def _cell_of(self, host: str) -> Cell:
        for cell in self._cells:
            if host in cell.updater.columns:
                return cell
        raise no_such_host(host)

    async def _quota(self, request: Request) -> int | None:
        """Return how often the quota of the request's project allows it; None without one."""
        states = list((await self._shares.read(request.project)).values()) if request.project else []
        if not states:
            return None
        used = Counter[str]()
        for one in states:
            used.update(one.used)
        return times_within(states[0].limits, used, request)


def _answer(cell: Cell, known: Known, settings: Settings, question: Callable[[CellCopy], Any], limit_s: float) -> Any:
    """Answer a question in a fork, whose columns nobody else reads."""
    return answer(lambda: known.copy(cell, settings, cell.plugins()), question, limit_s)
