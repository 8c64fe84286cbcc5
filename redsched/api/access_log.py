"""The access log: one line for each request, if the setting access_log asks for it."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redsched import logs
from redsched.api.access.callers import CALLER
from redsched.auth.caller import Caller
from redsched.requests.parsing import shown_text

log = logs.get_logger(__name__)


class AccessLog:
    """ASGI middleware that logs each request once it is over, also one that is refused for its caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began_s, sent = time.perf_counter(), _Sent()

        async def count(message: Message) -> None:
            sent.count(message)
            await send(message)

        try:
            return await self._app(scope, receive, count)
        finally:
            log.info(
                "request",
                method=shown_text(scope["method"]),
                path=shown_text(scope["path"]),  # without the query, which may have anything in it
                status=sent.status,
                duration_ms=round((time.perf_counter() - began_s) * 1000, 3),
                bytes=sent.bytes,
                **_actor(scope),
            )


def _actor(scope: Scope) -> dict[str, str]:
    caller: Caller | None = scope.get(CALLER)
    return {"actor": caller.id} if caller and caller.id else {}


class _Sent:
    """What was sent as the response so far. `status` is 0 if the client was gone before it began."""

    def __init__(self) -> None:
        self.status, self.bytes = 0, 0

    def count(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.bytes += len(message.get("body", b""))
