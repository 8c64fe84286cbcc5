"""How the routes of plans are handled: a plan ends with the connection of its caller."""

from fastapi import Request, Response

from redsched.api import responses
from redsched.api.disconnect import unless_gone
from redsched.api.operations import Call, handles
from redsched.api.routes.common import scheduler
from redsched.model.records.plans import Move
from redsched.operations.plans import Plans

APPLYING_GONE = "the move that has begun goes on, and no further one begins"
PLAN_GONE = "the plan is given up, and nothing was written"


@handles(Plans.capacity, Plans.drain, Plans.without, Plans.rebalance)
async def plan(request: Request, call: Call) -> Response:
    """Answer with a plan."""
    return responses.answered(await unless_gone(request, call.do(request), PLAN_GONE))


@handles(Plans.with_hosts)
async def plan_with(request: Request, call: Call) -> Response:
    """Answer with what further hosts would change."""
    reports = await call.body.reports()
    planning = scheduler(request).plans.with_hosts(reports, call.body.request)
    return responses.answered(await unless_gone(request, planning, PLAN_GONE))


@handles(Plans.apply)
async def apply_rebalance(request: Request, call: Call) -> Response:
    """Answer with the moves that were carried out."""
    moves = [Move(**one.model_dump()) for one in call.body.moves]
    applying = scheduler(request).plans.apply(moves, call.body.timeout_s)
    return responses.answered(await unless_gone(request, applying, APPLYING_GONE))
