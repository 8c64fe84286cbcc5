"""Paths without encoded slashes: `/v1%2Fclaims` would reach a route that a proxy's rules for `/v1/` do not cover."""

from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.problems import problem
from redsched.errors import InvalidRequest
from redsched.schema.parsing import shown_text


class PlainPaths:
    """ASGI middleware, inside the gate: it refuses a path with an encoded slash or backslash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or b"%" not in (raw := scope.get("raw_path", b"")) or not _hides_slash(raw):
            return await self._app(scope, receive, send)
        shown = shown_text(raw.decode("ascii", "backslashreplace"))
        refused = problem(InvalidRequest(f"the path {shown!r} has an encoded slash: no name has one, write / itself"))
        return await refused(scope, receive, send)


def _hides_slash(raw: bytes) -> bool:
    lower = raw.lower()
    return b"%2f" in lower or b"%5c" in lower
