"""A fast path for the hot route: POST /v1/selections bypasses middleware and router and calls its function directly.

FastAPI's middleware, routing, dependencies and exit stacks cost more than 100 us a request, about as much as the whole
claim. The route is still declared like any other (routes/selections.py), for the OpenAPI document; the fast path calls
its function.
"""

from types import SimpleNamespace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.access.redact import redact_error
from redsched.api.problems import fault, problem
from redsched.api.routes.selections import PATH, select
from redsched.errors import RedschedError

_ROUTE = SimpleNamespace(path=PATH)
"""What the router would have found."""


class FastPath:
    """ASGI middleware, outside that of FastAPI, that handles one route itself and passes on all other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        scope["route"] = _ROUTE
        request = Request(scope, receive, send)
        try:
            answer = await _answer(request)
        except Exception as error:
            await fault(request, error)(scope, receive, send)
            raise  # as Starlette does: the server logs it too
        return await answer(scope, receive, send)


async def _answer(request: Request) -> Response:
    try:
        return await select(request)
    except RedschedError as error:
        return problem(redact_error(request, error))
