"""A fast path for the hot route: POST /v1/selections bypasses the router and calls its function directly.

FastAPI's routing, dependencies and exit stacks cost about 100 us a request, about as much as the whole claim. The route
is still declared like any other (routes/selections.py), for the OpenAPI document; the fast path calls its function.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.problems import problem
from redsched.api.routes.selections import PATH, select
from redsched.errors import RedschedError


class FastPath:
    """ASGI middleware that handles one route itself and passes on all other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        answer = await _answer(Request(scope, receive, send))
        return await answer(scope, receive, send)


async def _answer(request: Request) -> Response:
    try:
        return await select(request)
    except RedschedError as error:
        return problem(error)
