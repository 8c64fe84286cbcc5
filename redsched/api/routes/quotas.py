"""How the routes of usage and capacity are handled: tenants see those of their projects."""

from fastapi import Request, Response

from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.operations import Call, handles
from redsched.api.routes.common import caller, scheduler
from redsched.model.records.capacity import Capacity
from redsched.model.records.declared import Usage
from redsched.operations.fleet import Fleet


@handles(Fleet.usage)
async def get_usage(request: Request, call: Call) -> Response:
    """Answer with the usage of the claims that the caller may know."""
    return responses.answered(
        Usage(await scheduler(request).usage(call.query.by, restrict.visible_projects(caller(request))))
    )


@handles(Fleet.capacity)
async def get_capacity(request: Request, call: Call) -> Response:
    """Answer with the amounts of the fleet, or what is free to the caller's projects."""
    who, by = caller(request), call.query.by
    rows = await scheduler(request).capacity(restrict.capacity_by(who, by), restrict.visible_projects(who))
    return responses.answered(Capacity(by, rows))
