"""A fast path for the hot routes, selections and calls of agents: it bypasses middleware and router.

FastAPI's middleware, routing, dependencies and exit stacks cost more than 100 us a request, about as much as the whole
claim. The routes are still declared like any other (routes/selections.py, routes/agents.py), for the OpenAPI document;
the fast path calls their functions.
"""

from collections.abc import Awaitable
from types import SimpleNamespace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.problems import fault, refused
from redsched.api.routes.agents import relay
from redsched.api.routes.selections import PATH, select
from redsched.errors import RedschedError
from redsched.store.agent_calls import CALLS, CALLS_PATH

_CALLS = frozenset(f"{CALLS_PATH}{name}" for name in CALLS)
_ROUTES = {PATH: SimpleNamespace(path=PATH), **dict.fromkeys(_CALLS, SimpleNamespace(path=f"{CALLS_PATH}{{name}}"))}
"""What the router would have found, by path."""


class FastPath:
    """ASGI middleware, outside that of FastAPI, that handles these routes itself and passes on all other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in _ROUTES:
            return await self._app(scope, receive, send)
        scope["route"] = _ROUTES[scope["path"]]
        request = Request(scope, receive, send)
        try:
            answer = await _answer(request)
        except Exception as error:
            await fault(request, error)(scope, receive, send)
            raise  # as Starlette does: the server logs it too
        return await answer(scope, receive, send)


async def _answer(request: Request) -> Response:
    try:
        return await _handle(request, request.scope["path"])
    except RedschedError as error:
        return refused(request, error)


def _handle(request: Request, path: str) -> Awaitable[Response]:
    return relay(request, path.removeprefix(CALLS_PATH)) if path in _CALLS else select(request)
