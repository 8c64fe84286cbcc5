"""How selections are handled, and explanations of them."""

from fastapi import Request, Response

from redsched import model
from redsched.api import responses
from redsched.api.access import restrict
from redsched.api.access.redact import Redactor
from redsched.api.disconnect import unless_gone
from redsched.api.idempotency import with_key
from redsched.api.operations import Call, handles, handles_raw
from redsched.api.request_body import read
from redsched.api.routes.common import caller, refuse_query, scheduler
from redsched.operations.fleet import Fleet

PATH = Fleet.select.route.path


@handles_raw(Fleet.select)
async def select(request: Request) -> Response:
    """Answer with the places that were claimed: 200 for a dry run or a repetition."""
    refuse_query(request)  # here, because redsched/api/fast_path.py runs no dependencies
    known, by = scheduler(request), caller(request)
    own = await restrict.selection(by, await read(request, model.Request), known.cells)
    asked = with_key(own, request, by)
    selecting = known.select(asked, asked.owner or by.owner, by.own_only)
    waits = asked.queue_timeout_s or asked.until == "active"
    found = Redactor(request).selections(await (unless_gone(request, selecting) if waits else selecting))
    if found.fresh and (first := found.selections[0].claim_id):  # a dry run has no ids
        return responses.answered(found, 201, {"Location": responses.claim_path(first)})
    return responses.answered(found)


@handles(Fleet.explain)
async def explain(request: Request, call: Call) -> Response:
    """Answer with why hosts fit or do not."""
    known, query = scheduler(request), call.query
    asked = await restrict.explanation(caller(request), call.body, query, known.cells)
    found = await known.explain(asked, query.host, limit=query.limit, after=query.after)
    return responses.answered(Redactor(request).explanation(found))
