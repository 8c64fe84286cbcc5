"""The id of each request: from its `X-Request-Id`, or made here. Everything that the request causes carries it.

The id is in the response's `X-Request-Id`, in problems, in the log, in the claims and events that the request causes,
and in what their hosts' hooks get.
"""

import secrets
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redsched import origin, tracing
from redsched.origin import Origin, is_request_id

_HEADER, _TRACEPARENT = b"x-request-id", b"traceparent"


class RequestIds:
    """ASGI middleware, outside all other: it gives each request its id, and each response the header.

    Who sends the request is not known yet: the layer that authenticates it enters an Origin with the actor.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        sent = _sent(scope["headers"])
        parent = _header(scope["headers"], _TRACEPARENT)
        traced = tracing.begin_request(scope["method"], scope["path"], parent, sent)
        request_id = traced.request_id if traced is not None else sent or new_request_id()
        header = (_HEADER, request_id.encode())
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        caused_by = origin.enter(Origin("", request_id))
        try:
            return await self._app(scope, receive, send_with_id)
        finally:
            origin.leave(caused_by)
            if traced is not None:
                traced.end(status, _route(scope))


def new_request_id() -> str:
    """Return an id for a request that came without a valid one."""
    return secrets.token_hex(8)


def _sent(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the id that the client sent; '' if there is none, or if it may be no id."""
    text = _header(headers, _HEADER)
    return text if is_request_id(text) else ""


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name == wanted), "")


def _route(scope: Scope) -> str:
    """Return the path of the route that was found, with the names of its parameters; '' if none was."""
    return str(getattr(scope.get("route"), "path", ""))
