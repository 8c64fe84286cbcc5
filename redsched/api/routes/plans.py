"""POST /v1/plans/...: what would happen, which writes nothing; and carrying out planned moves."""

from fastapi import APIRouter, Request, Response

from redsched.api import responses
from redsched.api.disconnect import unless_gone
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read, read_large
from redsched.api.routes.common import KNOWN_QUERY, scheduler
from redsched.errors import ClaimState, NotFound, NoValidHost, OutcomeUnknown, PlannerBusy, TooHard
from redsched.model.records.plans import AddingPlan, Applied, CapacityPlan, LeavingPlan, Move, RebalancePlan
from redsched.schema.requests.plans import AddingBody, ApplyBody, CapacityBody, LeavingBody, RebalanceBody

router = APIRouter(prefix="/v1/plans", tags=["plans"], dependencies=[KNOWN_QUERY])
APPLYING_GONE = "the move that has begun goes on, and no further one begins"
PLAN_GONE = "the plan is given up, and nothing was written"


@router.post(
    "/capacity",
    summary="Plan capacity",
    responses=answers({200: CapacityPlan}, *BODY, NotFound, NoValidHost, TooHard, PlannerBusy),
    openapi_extra=body(CapacityBody),
)
async def plan_capacity(request: Request) -> Response:
    """Return how many more of a request fit, by zone, and what runs out.

    With `n_plus_one`, also whether all claims would have a place without any one host, zone or label value.
    """
    asked = await read(request, CapacityBody)
    found = await unless_gone(request, scheduler(request).plans.capacity(asked.request, asked.n_plus_one), PLAN_GONE)
    return responses.answered(found)


@router.post(
    "/drain",
    summary="Plan a drain",
    responses=answers({200: LeavingPlan}, *BODY, NotFound, TooHard, PlannerBusy),
    openapi_extra=body(LeavingBody),
)
async def plan_drain(request: Request) -> Response:
    """Return where the claims of hosts would go if these were drained with moves, and which could not leave."""
    asked = await read(request, LeavingBody)
    found = await unless_gone(request, scheduler(request).plans.drain(asked.hosts), PLAN_GONE)
    return responses.answered(found)


@router.post(
    "/without",
    summary="Plan a failure",
    responses=answers({200: LeavingPlan}, *BODY, NotFound, TooHard, PlannerBusy),
    openapi_extra=body(LeavingBody),
)
async def plan_without(request: Request) -> Response:
    """Return where the claims of hosts would go if these died and were evacuated, and which would have no place."""
    asked = await read(request, LeavingBody)
    found = await unless_gone(request, scheduler(request).plans.without(asked.hosts), PLAN_GONE)
    return responses.answered(found)


@router.post(
    "/with",
    summary="Plan further hosts",
    responses=answers({200: AddingPlan}, *BODY, NotFound, NoValidHost, TooHard, PlannerBusy),
    openapi_extra=body(AddingBody),
)
async def plan_with(request: Request) -> Response:
    """Return what further hosts would change: the room of each class, what waits, and how many of a request fit."""
    asked = await read_large(request, AddingBody)
    reports = await asked.reports()
    found = await unless_gone(request, scheduler(request).plans.with_hosts(reports, asked.request), PLAN_GONE)
    return responses.answered(found)


@router.post(
    "/rebalance",
    summary="Plan moves",
    responses=answers({200: RebalancePlan}, *BODY, NotFound, NoValidHost, ClaimState, TooHard, PlannerBusy),
    openapi_extra=body(RebalanceBody),
)
async def plan_rebalance(request: Request) -> Response:
    """Return an ordered list of moves that make room, empty hosts, or follow a policy, each with what it gains.

    The moves were verified on a copy of the fleet. 409: the fleet changes too fast for that.
    """
    asked = await read(request, RebalanceBody)
    planning = scheduler(request).plans.rebalance(asked.aim, asked.max_moves, asked.request, asked.hosts, asked.policy)
    return responses.answered(await unless_gone(request, planning, PLAN_GONE))


@router.post(
    "/rebalance/apply",
    summary="Carry out planned moves",
    responses=answers({200: Applied}, *BODY, OutcomeUnknown),
    openapi_extra=body(ApplyBody),
)
async def apply_rebalance(request: Request) -> Response:
    """Carry out the moves of a plan, one after the other, and stop at the first that fails.

    Each claim must still have the token of the plan. If the client disconnects, the move that has begun goes on, and
    no further one begins.
    """
    asked = await read_large(request, ApplyBody)
    moves = [Move(**one.model_dump()) for one in asked.moves]

    async def run() -> Applied:
        return Applied(tuple([one async for one in scheduler(request).move_runner.run(moves, asked.timeout_s)]))

    return responses.answered(await unless_gone(request, run(), APPLYING_GONE))
