"""The short way for the everyday call: POST /v1/selections goes past the router, straight to its function.

Routing, dependencies and the exit stacks of FastAPI cost some 100 us a request, about as much as the whole claim. The
route stays declared like any other (routes/selections.py), which the OpenAPI shows; this calls the same function.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.problems import problem
from redsched.api.routes.selections import PATH, select
from redsched.errors import RedschedError


class FastPath:
    """ASGI middleware with one stop."""

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
