"""HEAD, OPTIONS and Allow for every route: the methods that HTTP expects besides the declared ones."""

import asyncio

from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redsched import aio


class ImpliedMethods:
    """ASGI middleware: answers HEAD with the headers of GET, and OPTIONS with the methods of the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        method = scope["method"] if scope["type"] == "http" else ""
        if method == "HEAD":
            await self._head(scope, receive, send)
        elif method == "OPTIONS" and (methods := allowed_methods(scope)):
            await Response(status_code=204, headers={"Allow": ", ".join(methods)})(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond as GET does, with the headers only. Then cancel the handler, because a stream would never end."""
        answered = asyncio.Event()

        async def send_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                answered.set()

        getting = asyncio.ensure_future(self._app({**scope, "method": "GET"}, receive, send_headers))
        waiting = asyncio.ensure_future(answered.wait())
        try:
            await asyncio.wait((getting, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not answered.is_set():
                await getting
        finally:
            await aio.end_all((getting, waiting))


def allowed_methods(scope: Scope) -> list[str]:
    """Return the methods of all routes that match the path; an empty list if none does."""
    routes: list[Route] = scope["app"].state.routes
    matching = (route for route in routes if route.matches(scope)[0] is not Match.NONE)
    methods = {method for route in matching for method in route.methods or ()}
    if not methods:
        return []
    return sorted(methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set()))
