"""/v1/agent: the relay of the calls that agents have without access to the store (`redsched.store.agent_calls`).

The replies have the outcomes of the store's scripts, because agents decide on them as agents do that call the scripts
themselves. So the store being in another epoch, or a claim that has ended, is no error here.
"""

import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from redsched.api import examples, responses
from redsched.api.access.agents import check_call, without_foreign
from redsched.api.access.callers import caller_of
from redsched.api.disconnect import unless_gone
from redsched.api.openapi import BODY, AgentReply, AnyCall, answers, body
from redsched.api.request_body import read_bytes
from redsched.api.routes.common import KNOWN_QUERY, refuse_query, scheduler
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown, Unauthenticated
from redsched.model.limits import MAX_REQUEST_BYTES
from redsched.model.validation import check_name
from redsched.requests.filters import CellQuery
from redsched.requests.parsing import parse, shown_text
from redsched.requests.reports import check_report_size
from redsched.store.agent_calls import CALLS, AgentApi, AgentCall, AttestCall, InboxesCall, ReportCall
from redsched.store.codec.replies import AttestReply

router = APIRouter(prefix="/v1/agent", tags=["agents"], dependencies=[KNOWN_QUERY])


@router.get("", summary="Describe the fleet to an agent", responses=answers({200: AgentApi}, InvalidRequest))
async def get_agent_api(request: Request) -> Response:
    """Return the names of the cells and calls. An agent asks this first, to learn whether its token is accepted."""
    refuse_query(request)
    return responses.answered(AgentApi(tuple(scheduler(request).agents.cells), tuple(CALLS)))


@router.post(
    "/calls/{name}",
    summary="Relay a call of an agent to the store",
    responses=answers({200: AgentReply, 204: None}, *BODY, NotFound, ClaimState, OutcomeUnknown),
    openapi_extra=body(AnyCall, examples.CALLS),
)
async def call_for_agent(
    request: Request,
    name: Annotated[str, Path(json_schema_extra={"enum": list(CALLS)}, examples=["accept"])],
    query: Annotated[CellQuery, Query()],  # noqa: ARG001 - read by `relay`, which does not have it on the fast path
) -> Response:
    """Run a call about hosts of the agent. The body of each `name` is described where it is `<Name>Call`."""
    return await relay(request, name)


async def relay(request: Request, name: str) -> Response:
    """Return the reply to the call with this name, whose JSON is the request's body.

    Raises NotFound for a name or a cell that there is not, Forbidden, and what reading and running a call raises.
    """
    if name not in CALLS:
        raise NotFound(f"agents have no call {shown_text(name)!r}: the calls are {', '.join(CALLS)}")
    kind = CALLS[name]
    return await replied(request, parse(await text_of(request, kind), kind))


async def text_of(request: Request, kind: type[AgentCall[Any]]) -> bytes:
    """Return the body of a request with a call of this kind. Raises BodyTooLarge, InvalidRequest."""
    text = await read_bytes(request, sys.maxsize if kind.is_large else MAX_REQUEST_BYTES)
    if kind is ReportCall:
        check_report_size(text)
    return text


async def replied(request: Request, call: AgentCall[Any], query: Collection[str] = ()) -> Response:
    """Run a call in the cell of the query, if the caller may send it, and return its reply.

    `query`: further parameters that the call was made from.
    """
    caller, service = caller_of(request.scope), scheduler(request).agents
    store = service.store(_cell_of(request, call, query))
    check_call(caller, store.name, call)
    if isinstance(call, AttestCall):
        held, foreign = await without_foreign(caller, store, call.host, call.held)
        found: AttestReply = await service.call(store, replace(call, held=tuple(held)))
        reply: Any = replace(found, drop=(*found.drop, *foreign))
    elif isinstance(call, InboxesCall):
        reply = await unless_gone(request, service.call(store, call))
        if call.timeout_s and not request.app.state.is_valid(caller):
            raise Unauthenticated("the token was revoked or has expired while the request waited: send a valid one")
    else:
        reply = await service.call(store, call)
    return responses.nothing() if reply is None else responses.json(call.reply_json(reply))


def _cell_of(request: Request, call: AgentCall[Any], query: Collection[str]) -> str:
    """Return the cell that a call is for; '' for the only one. Raises InvalidRequest for another query."""
    names = Counter(name for name, _ in request.query_params.multi_items())
    if others := [name for name in names if name != "cell" and name not in query]:
        raise InvalidRequest(f"unknown query parameter {shown_text(others[0])!r}: a call has only `cell`")
    if names["cell"] > 1:
        raise InvalidRequest(f"query parameter 'cell' is given {names['cell']} times: give it once")
    cell = request.query_params.get("cell", "")
    if cell:
        check_name("cell", cell)
    if not isinstance(call, ReportCall):
        return cell
    if cell not in ("", call.cell):
        raise InvalidRequest(f"the report is for cell {call.cell!r}, and the query names {cell!r}: name the same one")
    return call.cell
