"""Declarations of routes' request bodies and responses, and the OpenAPI document built from them.

Bodies are read and responses written without FastAPI (request_body.py, responses.py), so this module adds the models to
the document and references them by name.
"""

import functools
import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, make_dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import Field, TypeAdapter, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypeAliasType

from redsched import requests
from redsched.api import examples
from redsched.api.access.scopes import SCOPES
from redsched.api.problems import BodyTooLarge, InternalError, TooManyRequests, all_errors
from redsched.errors import (
    Facts,
    Forbidden,
    InvalidRequest,
    NotDurable,
    OutcomeUnknown,
    PreconditionFailed,
    RedschedError,
    SchemaMismatch,
    Settling,
    StoreUnavailable,
    Unauthenticated,
    Unavailable,
)
from redsched.model import Aggregate, Quota, Request, ServerGroup
from redsched.model.record import adapter
from redsched.model.records.changes import Change
from redsched.model.records.pages import PageOf
from redsched.model.records.problems import CommonFacts
from redsched.model.records.service import Health, Ready
from redsched.operations.table import BY_ROUTE
from redsched.requests import declared, filters, plans, reports, verbs
from redsched.scheduler.results import HeartbeatResult, Inbox, ReportResult
from redsched.serve.problems import MEDIA_TYPE, BadHttp, HeadersTooLarge, RequestTimeout, UnsupportedMediaType
from redsched.store.agent_calls import CALLS, AgentApi

REF = "#/components/schemas/{model}"

TAGS = {
    "selections": "Select hosts and claim amounts on them.",
    "claims": "Claims and their lifecycle: confirm, renew, move, resize, shelve, release.",
    "hosts": "The hosts of the fleet, and operator actions on them.",
    "agents": "Reports, heartbeats, inboxes and claims of hosts, for agents without access to Redis.",
    "declared": "Objects that operators declare: aggregates, server groups and shared pools.",
    "quotas": "Limits of projects, and the usage of claims.",
    "plans": "What would happen: how much more fits, and where claims would go. Writes nothing.",
    "changes": "The feed of changes and the event log.",
    "service": "Version, health, readiness and metrics of the service.",
}
"""The groups of operations, in the order of the document."""

LOCATED = {
    201: "Path of the new object; of several claims, the first.",
    202: "Path that shows the progress; same as `watch`.",
}
"""The statuses with a `Location` header, and what it refers to."""

ETAG = {"schema": {"type": "string"}, "description": "ETag of the declared state, for `If-Match`.", "required": True}

TOKEN = "token"
"""The name of the security scheme."""
SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `redsched token new`, or of an OpenID Connect provider. Not needed where REDSCHED_AUTH "
    "is not set.",
}

REPLIES: tuple[Any, ...] = tuple(
    dict.fromkeys(one for call in CALLS.values() if (one := call.reply_type()) is not None)
)
"""The records that replies to agents are."""

# What the document calls the body and the reply of the relay of agents' calls: any of theirs.
AnyCall = TypeAliasType("AnyCall", functools.reduce(operator.or_, CALLS.values()))  # type: ignore[valid-type]
AgentReply = TypeAliasType("AgentReply", functools.reduce(operator.or_, REPLIES))  # type: ignore[valid-type]

# The enum is added once all problems are known.
ProblemType = TypeAliasType("ProblemType", Annotated[str, WithJsonSchema({"type": "string", "enum": []})])

BODY = (BodyTooLarge, UnsupportedMediaType, InvalidRequest)
"""The errors of every route that reads a body."""
CONNECTION = (BadHttp, RequestTimeout, HeadersTooLarge)
"""The errors of every operation: a connection answers with them before a route is known."""


def answers(
    good: dict[int, Any], *errors: type[RedschedError], store: bool = True, etag: bool = False
) -> dict[int | str, dict[str, Any]]:
    """Return `responses` of a route: its successful responses by status, and its errors; `store` adds 503.

    With `etag` the successful responses have an ETag header.
    """
    found: dict[int | str, dict[str, Any]] = {status: _good(status, model) for status, model in good.items()}
    for answer in found.values() if etag else ():
        answer.setdefault("headers", {})["ETag"] = ETAG
    written = (NotDurable,) if OutcomeUnknown in errors else ()
    for error in (*errors, *written, *((StoreUnavailable, Settling, SchemaMismatch) if store else ()), InternalError):
        found[error.status] = _merged(found.get(error.status), error)
    return found


def body(
    model: Any,
    named: Mapping[str, Any] | None = None,
    media_type: str = "application/json",
    required: bool = True,
) -> dict[str, Any]:
    """Return `openapi_extra` of a route that reads `model`, with the model's example or the `named` examples."""
    adapter(model)  # now, so that the first request need not wait for it
    content: dict[str, Any] = {"schema": ref(model)}
    if named:
        content["examples"] = {name: {"value": value} for name, value in named.items()}
    else:
        content["example"] = model.model_config["json_schema_extra"]["examples"][0]
    return {"requestBody": {"required": required, "content": {media_type: content}}}


def ref(model: Any) -> dict[str, str]:
    """Return the reference to a model in the document."""
    return {"$ref": REF.format(model=model.__name__)}


def _good(status: int, model: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status in LOCATED:
        said["headers"] = {"Location": {"schema": {"type": "string"}, "description": LOCATED[status], "required": True}}
    return said if model is None else {**said, "content": {"application/json": {"schema": ref(model)}}}


def _merged(known: dict[str, Any] | None, error: type[RedschedError]) -> dict[str, Any]:
    said = f"`{error.problem}`: {error.title}"
    description = said if known is None or said in known["description"] else f"{known['description']}; {said}"
    found: dict[str, Any] = {"description": description, "content": {MEDIA_TYPE: {"schema": _schema(known, error)}}}
    if issubclass(error, Unavailable):
        wait = {"schema": {"type": "integer"}, "description": "Seconds to wait before retrying the request."}
        found["headers"] = {"Retry-After": wait}
    if issubclass(error, Unauthenticated):
        found["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "`Bearer`."}}
    if issubclass(error, PreconditionFailed):
        found["headers"] = {
            "ETag": {"schema": ETAG["schema"], "description": "The current ETag. Absent if the object does not exist."}
        }
    return found


def _schema(known: dict[str, Any] | None, error: type[RedschedError]) -> dict[str, Any]:
    """Return the schema of the problems of a status, to which those of an error are added."""
    before = known["content"][MEDIA_TYPE]["schema"] if known else {}
    found = [*before.get("anyOf", [before] if before else []), ref(problem_type(error.facts_type))]
    different = [one for place, one in enumerate(found) if one != ref(Problem) and one not in found[:place]]
    return {"anyOf": different} if len(different) > 1 else (different or found)[0]


@dataclass(frozen=True, kw_only=True)
class Problem(CommonFacts):
    """An RFC 9457 problem. Further members are details for programs."""

    type: ProblemType
    title: str
    status: int
    detail: Annotated[str, Field(description="The value seen, the rule it broke, and the next step.")]


def _problem_type(facts: type[Facts]) -> type[Problem]:
    if facts is CommonFacts:
        return Problem
    name = f"{facts.__name__.removesuffix('Facts')}Problem"
    return make_dataclass(name, (), bases=(facts, Problem), namespace={"__doc__": facts.__doc__}, frozen=True)


problem_type: Callable[[Any], type[Problem]] = functools.cache(_problem_type)
"""Return the type that describes the problems with these facts."""


def request_models() -> list[type[Any]]:
    """Return what bodies and queries are read as, but for the dataclasses of `redsched.model`."""
    found = [one for module in (declared, filters, plans, reports, verbs) for one in vars(module).values()]
    own = [one for one in found if isinstance(one, type) and one.__module__.startswith(f"{requests.__name__}.")]
    return list(dict.fromkeys(own))


def models() -> list[tuple[Any, JsonSchemaMode]]:
    """Return what the document describes: what requests are read as, and what responses are written from."""
    answers = {one for operation in BY_ROUTE.values() for one in operation.route.answers.values() if one is not None}
    records = [one.type if isinstance(one, PageOf) else one for one in answers]
    others = (Change, ReportResult, HeartbeatResult, Inbox, Health, Ready, AgentApi, AgentReply)
    shown = [*dict.fromkeys(problem_type(one.facts_type) for one in all_errors()), *records, *others, *REPLIES]
    bodies = (Request, Aggregate, ServerGroup, Quota, AnyCall, *CALLS.values(), *request_models())
    return [*((one, "validation") for one in bodies), *((one, "serialization") for one in shown)]


class _Schema(GenerateJsonSchema):
    """Describes records as responses have them: with all their fields, but for those that are left out when empty."""

    def field_is_required(self, field: Any, *more: Any, **named: Any) -> bool:
        return self._is_always_there(field) or super().field_is_required(field, *more, **named)

    def dataclass_field_schema(self, schema: Any) -> dict[str, Any]:
        inner = schema["schema"]
        if self._is_always_there(schema) and inner["type"] == "default":
            return self.generate_inner({**inner["schema"], **_serialization(inner)})
        return super().dataclass_field_schema(schema)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        found = super().dataclass_schema(schema)
        is_open = issubclass(schema["cls"], Problem)
        return found | {"additionalProperties": is_open} if self.mode == "serialization" else found

    def _is_always_there(self, field: Any) -> bool:
        is_of_record = self.mode == "serialization" and field["type"] == "dataclass-field"
        return is_of_record and "serialization_exclude_if" not in field


def _serialization(schema: Any) -> dict[str, Any]:
    return {"serialization": schema["serialization"]} if "serialization" in schema else {}


def install(app: FastAPI) -> None:
    """Add all models to the OpenAPI document of `app`, and serve it from memory.

    Writing it takes 15 ms, and everybody may ask for it.
    """
    app.openapi = _with_models(app.openapi)  # type: ignore[method-assign]
    for place, route in enumerate(app.router.routes):
        if isinstance(route, Route) and route.path == app.openapi_url:
            app.router.routes[place] = Route(route.path, _endpoint(app.openapi), include_in_schema=False)


def _endpoint(openapi: Callable[[], dict[str, Any]]) -> Callable[[HttpRequest], Awaitable[Response]]:
    written = functools.cache(lambda: JSONResponse(openapi()).body)

    async def get_openapi(_: HttpRequest) -> Response:
        return Response(written(), media_type="application/json")

    return get_openapi


def _with_models(plain: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    @functools.cache
    def openapi() -> dict[str, Any]:
        document = plain()
        adapters = [(model.__name__, mode, adapter(model)) for model, mode in models()]
        _, schema = TypeAdapter.json_schemas(adapters, ref_template=REF, schema_generator=_Schema)
        schema["$defs"]["ProblemType"]["enum"] = sorted({f"/problems/{one.problem}" for one in all_errors()})
        document.setdefault("components", {}).setdefault("schemas", {}).update(schema["$defs"])
        document["components"]["securitySchemes"] = {TOKEN: SCHEME}
        _add_common_errors(document)
        _add_examples(document)
        return document

    return openapi


def _add_common_errors(document: dict[str, Any]) -> None:
    """Add to each operation whether it needs a token, and the errors that do not depend on its route."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            policy = SCOPES[method.upper(), path]
            operation["security"] = [] if policy.is_open else [{TOKEN: []}]
            for error in CONNECTION if policy.is_open else (*CONNECTION, Unauthenticated, Forbidden, TooManyRequests):
                _add_error(operation["responses"], error)


def _add_error(responses: dict[str, Any], error: type[RedschedError]) -> None:
    known = responses.get(str(error.status))
    added = _merged(known, error)
    told = {name: added[name] for name in ("description", "content")}
    responses[str(error.status)] = added if known is None else {**known, **told}


def _add_examples(document: dict[str, Any]) -> None:
    """Add examples to the successful responses. Not in the routes, because FastAPI drops nulls from declarations."""
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    for answer in [one for operation in operations for one in operation["responses"].values()]:
        content = answer.get("content", {}).get("application/json")
        if content:
            content["example"] = examples.ANSWERS[content["schema"]["$ref"].rpartition("/")[2]]
