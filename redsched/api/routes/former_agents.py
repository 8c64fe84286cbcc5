"""/v1/agent as agents of the release before the relay call it: each route is a call of the relay. Deprecated."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from redsched.api import examples
from redsched.api.former_agent_calls import FORMER, Former
from redsched.api.openapi import BODY, REF, answers
from redsched.api.request_body import object_in
from redsched.api.routes.agents import replied, text_of
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown
from redsched.model.record import adapter
from redsched.model.validation import HOST_PATTERN, NAME_PATTERN
from redsched.requests.parsing import parse
from redsched.store.agent_calls import NAMES, AgentCall, TextsCall

router = APIRouter(tags=["agents"])  # without the check of queries, which the relay has

_PATTERNS = {"host": HOST_PATTERN, "claim_id": NAME_PATTERN}


async def _relay(request: Request, former: Former) -> Response:
    given = {field: request.path_params[name] for name, field in former.in_path.items()}
    others, query = await _others(request, former)
    if twice := given.keys() & others.keys():
        raise InvalidRequest(f"{min(twice)}: is not a known field: remove it, because the path has it")
    call: AgentCall[Any] = parse(to_json({**others, **given}), former.call)
    return await replied(request, call, query)


async def _others(request: Request, former: Former) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields that the path does not have, and the names of query parameters that they are from."""
    if former.method != "GET":
        return object_in(await text_of(request, former.call)), ()
    if former.call is TextsCall:
        return {"names": request.query_params.getlist("name")}, ("name",)
    return {}, ()


def _add(former: Former) -> None:
    async def former_call(request: Request) -> Response:
        return await _relay(request, former)

    name, reply = NAMES[former.call], former.call.reply_type()
    good: dict[int, Any] = {204: None} if reply is None else {200: reply}
    errors = (InvalidRequest,) if former.method == "GET" else BODY
    router.add_api_route(
        former.path,
        former_call,
        methods=[former.method],
        name=f"former_{name.replace('-', '_')}",
        summary=f"Call {name}, as agents of the release before the relay do",
        description=f"Send it to `/v1/agent/calls/{name}` instead, with the names in this path in the body.",
        deprecated=True,
        status_code=next(iter(good)),
        responses=answers(good, *errors, NotFound, ClaimState, OutcomeUnknown),
        openapi_extra=_described(former),
    )


def _described(former: Former) -> dict[str, Any]:
    """Return the parameters and the body of a route, for the OpenAPI document."""
    schema = adapter(former.call).json_schema(ref_template=REF)
    fields, taken = schema["properties"], former.in_path
    texts = {name: {"schema": {"type": "string", "pattern": _PATTERNS[name]}} for name in taken}
    found: dict[str, Any] = {
        "parameters": [{"name": name, "in": "path", "required": True, **one} for name, one in texts.items()]
    }
    found["parameters"].append({"name": "cell", "in": "query", "schema": {"type": "string", "default": ""}})
    if former.call is TextsCall:
        found["parameters"].append({"name": "name", "in": "query", "schema": fields["names"]})
    if former.method != "GET":
        own = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: one for name, one in fields.items() if name not in taken.values()},
            "required": [name for name in schema["required"] if name not in taken.values()],
        }
        example = {name: one for name, one in examples.CALLS[NAMES[former.call]].items() if name not in taken.values()}
        content = {"application/json": {"schema": own, "example": example}}
        found["requestBody"] = {"required": True, "content": content}
    return found


for one in FORMER:
    _add(one)
