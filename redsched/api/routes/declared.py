"""How the routes of declared objects are handled: aggregates, server groups, shared pools and quotas."""

from collections.abc import Collection
from typing import Any

from fastapi import Request, Response

from redsched.api import etags, responses
from redsched.api.access import restrict
from redsched.api.operations import Call, handles
from redsched.api.routes.common import caller, scheduler
from redsched.operations.declared import Aggregates, Quotas, ServerGroups, SharedPools
from redsched.requests.declared import SharedPoolBody
from redsched.scheduler.declared.declarations import DeclaredService


def _service(request: Request, call: Call) -> DeclaredService[Any]:
    found: DeclaredService[Any] = getattr(scheduler(request), call.operation.name.partition(".")[0])
    return found


def _visible(request: Request, call: Call) -> Collection[str] | None:
    """Return the names of the objects that the caller may know; None for all."""
    return restrict.visible_projects(caller(request)) if call.operation in (Quotas.list, Quotas.get) else None


@handles(Aggregates.list, ServerGroups.list, SharedPools.list, Quotas.list)
async def list_objects(request: Request, call: Call) -> Response:
    """Answer with a page of the objects that the caller may know."""
    page = await _service(request, call).list(**call.arguments, only=_visible(request, call))
    return responses.listed(call.operation.route.answers[200], page)


@handles(Aggregates.get, ServerGroups.get, SharedPools.get, Quotas.get)
async def get_object(request: Request, call: Call) -> Response:
    """Answer with an object and its ETag."""
    (name,), only, service = call.arguments.values(), _visible(request, call), _service(request, call)
    if only is not None and name not in only:
        await service.refuse_unknown(name)
    return await _shown(service, name)


@handles(Aggregates.put, ServerGroups.put, SharedPools.put, Quotas.put)
async def put_object(request: Request, call: Call) -> Response:
    """Answer with an object as it was declared: 201 if it is new."""
    name, thing, service = call.path_name, call.body, _service(request, call)
    where = (thing.cell,) if isinstance(thing, SharedPoolBody) else ()
    _, is_new = await call.operation.on(scheduler(request))(thing, *where, if_match=call.arguments["if_match"])
    return await _shown(service, name, request.url.path if is_new else "")


@handles(Aggregates.delete, ServerGroups.delete, SharedPools.delete, Quotas.delete)
async def delete_object(request: Request, call: Call) -> Response:
    """Answer with nothing once an object is deleted."""
    given = call.arguments
    # Nothing uses a quota in a way that keeps it from being deleted.
    await _service(request, call).delete(call.path_name, given.get("force", True), given["if_match"])
    return responses.nothing()


async def _shown(service: DeclaredService[Any], name: str, created_at: str = "") -> Response:
    headers = await etags.etag_of(service, name)
    found = await service.get(name)
    return responses.created(found, created_at, headers) if created_at else responses.answered(found, headers=headers)
