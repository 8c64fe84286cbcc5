"""Paths without encoded slashes and control characters.

`/v1%2Fclaims` would reach a route that a proxy's rules for `/v1/` do not cover. `/v1/changes%0A` would be served as
that route, because `$` matches before a newline, and yet not be equal to its path.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.errors import InvalidRequest
from redsched.requests.parsing import shown_text
from redsched.serve.problems import problem

_REFUSED = re.compile(rb"%(?:2f|5c|[01][0-9a-f]|7f)", re.IGNORECASE)


class PlainPaths:
    """ASGI middleware, inside the gate: it refuses a path with an encoded slash, backslash or control character."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or b"%" not in (raw := scope.get("raw_path", b"")) or not _REFUSED.search(raw):
            return await self._app(scope, receive, send)
        shown = shown_text(raw.decode("ascii", "backslashreplace"))
        refusal = InvalidRequest(f"the path {shown!r} has an encoded slash or control character: no name has one")
        return await problem(refusal)(scope, receive, send)
