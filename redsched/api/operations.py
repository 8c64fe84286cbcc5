"""The routes of operations: each is declared by its operation, and handled by a handler that is registered for it.

A handler gets the request and the `Call` that was read from it: the operation, and its arguments by name. Without a
handler of its own, the method of that name of this process' Scheduler is called, and its record is the response.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from redsched.api import etags, idempotency, openapi, responses
from redsched.api.request_body import read, read_if_any, read_large
from redsched.api.routes.common import KNOWN_QUERY, scheduler
from redsched.errors import InvalidRequest
from redsched.model import Aggregate, Quota, Request as Selected, ServerGroup
from redsched.model.records.pages import PageOf
from redsched.model.validation import HOST_PATTERN, NAME_PATTERN
from redsched.operations.fleet import Fleet
from redsched.operations.operation import BaseOperation
from redsched.operations.route import Route
from redsched.operations.table import BY_ROUTE

PATH_PARAMETERS: Mapping[str, Any] = {
    "host": Annotated[str, Path(pattern=HOST_PATTERN, examples=["h17"])],
    "claim_id": Annotated[str, Path(pattern=NAME_PATTERN, examples=["6f1c"])],
}
EXAMPLES = {"aggregates": "licensed", "server-groups": "web", "shared-pools": "licences", "quotas": "web"}
"""The names in the examples of paths."""
CONDITIONS = {("If-Match",): etags.IF_MATCH, ("If-Match", "If-None-Match"): etags.IF_EITHER}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation: its arguments by name. `body`, `query`: what was read, as its model; None without one."""

    operation: BaseOperation[Any, Any]
    arguments: dict[str, Any]
    path_name: str = ""
    """The first name in the path."""
    body: Any = None
    query: Any = None

    async def do(self, request: Request) -> Any:
        """Do it, by the method of this process' Scheduler, and return its result."""
        return await self.operation.on(scheduler(request))(**self.arguments)


Handler = Callable[[Request, Call], Awaitable[Response]]
RawHandler = Callable[[Request], Awaitable[Response]]
H = TypeVar("H", bound=Callable[..., Awaitable[Response]])
_HANDLERS: dict[tuple[str, str], Handler] = {}
_RAW: dict[tuple[str, str], RawHandler] = {}


def handles(*operations: BaseOperation[Any, Any]) -> Callable[[H], H]:
    """Return the decorator that registers a handler of operations."""

    def register(handler: H) -> H:
        _HANDLERS.update((one.route.key, handler) for one in operations)
        return handler

    return register


def handles_raw(operation: BaseOperation[Any, Any]) -> Callable[[H], H]:
    """Return the decorator that registers a handler which reads the request itself."""

    def register(handler: H) -> H:
        _RAW[operation.route.key] = handler
        return handler

    return register


def router(is_wanted: Callable[[Route], bool]) -> APIRouter:
    """Return the router of these operations, once their handlers are registered."""
    found = APIRouter()
    for operation in BY_ROUTE.values():
        if is_wanted(operation.route):
            _add(found, operation)
    return found


async def _default(request: Request, call: Call) -> Response:
    return responses.answered(await call.do(request))


def _add(router: APIRouter, operation: BaseOperation[Any, Any]) -> None:
    route = operation.route
    raw = _RAW.get(route.key)
    if route.policy.is_restricted and raw is None and route.key not in _HANDLERS:
        raise LookupError(f"{operation.name} shows or changes only a part to some roles: register a handler that does")
    dependencies = [] if raw else [KNOWN_QUERY]
    if route.conditions:
        dependencies.append(CONDITIONS[route.conditions])
    good = {status: one.type if isinstance(one, PageOf) else one for status, one in route.answers.items()}
    errors = openapi.BODY if route.body else (InvalidRequest,)
    router.add_api_route(
        route.path,
        raw or _endpoint(operation, _HANDLERS.get(route.key, _default)),
        methods=[route.method],
        name=route.id,
        tags=[route.tag],
        summary=route.summary,
        description="\n\n".join(filter(None, (inspect.cleandoc(operation.__doc__ or ""), route.notes))),
        status_code=route.status or next(iter(route.answers)),
        dependencies=dependencies,
        responses=openapi.answers(good, *errors, *route.errors, store=route.needs_store, etag=route.has_etag),
        openapi_extra=_described(route) or None,
    )


def _described(route: Route) -> dict[str, Any]:
    if not route.body:
        return {}
    found = openapi.body(model_of(route.body), route.examples or None, required=not route.body_is_optional)
    return {**found, "parameters": [idempotency.PARAMETER]} if route.key == Fleet.select.route.key else found


def _endpoint(operation: BaseOperation[Any, Any], handler: Handler) -> Callable[..., Awaitable[Response]]:
    route = operation.route
    body = model_of(route.body) if route.body else None
    names = [name.partition("}")[0] for name in route.path.split("{")[1:]]

    async def endpoint(request: Request, **given: Any) -> Response:
        asked, name = given.pop("query", None), given.get(names[0], "") if names else ""
        arguments = given if asked is None else {**given, **fields_of(asked)}
        if route.conditions:
            read_condition = etags.condition if "If-None-Match" in route.conditions else etags.if_match
            arguments["if_match"] = read_condition(request)
        content = None
        if body is not None:
            content = await _read(request, route, body, name)
            arguments.update({route.body_as: content} if route.body_as else fields_of(content))
        return await handler(request, Call(operation, arguments, name, content, asked))

    parameters = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(name, kind, annotation=_path_parameter(route, name)) for name in names]
    if route.query:
        parameters.append(inspect.Parameter("query", kind, annotation=Annotated[model_of(route.query), Query()]))
    described: Any = endpoint
    described.__signature__ = inspect.Signature(parameters)
    return endpoint


async def _read(request: Request, route: Route, model: type[Any], name: str) -> Any:
    if route.body_is_optional:
        return await read_if_any(request, model)
    if route.body_may_be_large:
        return await read_large(request, model, name)
    return await read(request, model)


def fields_of(asked: Any) -> dict[str, Any]:
    """Return the fields of a body or query as arguments of its operation."""
    if not isinstance(asked, BaseModel):
        return {}
    return {name: getattr(asked, name) for name in type(asked).model_fields}


def _path_parameter(route: Route, name: str) -> Any:
    if name in PATH_PARAMETERS:
        return PATH_PARAMETERS[name]
    example = EXAMPLES[route.path.split("/")[2]]
    return Annotated[str, Path(pattern=NAME_PATTERN, examples=[example])]


def model_of(name: str) -> Any:
    """Return the model that reads a body or query, by its name."""
    return _models()[name]


@cache
def _models() -> dict[str, Any]:
    models = (*openapi.request_models(), Selected, Aggregate, ServerGroup, Quota)
    return {one.__name__: one for one in models}
