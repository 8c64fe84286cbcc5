"""What each caller has in progress in this worker, and its limits: requests, requests that wait, open streams.

A caller with many requests in progress delays those of others, however small each is. A refusal costs microseconds.
"""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.api.access.callers import CALLER
from redsched.api.problems import TooManyRequests
from redsched.auth.caller import UNRESTRICTED, Caller
from redsched.model.records.problems import UnavailableFacts
from redsched.serve.problems import problem

REQUESTS, WAITING, STREAMS = "requests", "waiting", "streams"
STREAM_PATH = "/v1/changes"
_COUNTS = "redsched.in_progress"
"""The scope's key of the counts of this worker."""

_ADVICE = {
    REQUESTS: "wait for the responses to some",
    WAITING: "wait for the responses to some, or send requests that do not wait",
    STREAMS: "close some",
}


class InProgress:
    """ASGI middleware, inside the gate: it counts the requests and streams of each caller, and refuses those beyond.

    Callers without an id, which are all without authentication, have no limits.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.counts: dict[tuple[str, str], int] = {}
        """How many each caller has of each kind, by the caller's id and the kind; there are no zeros."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        caller: Caller = scope.get(CALLER, UNRESTRICTED)
        if not caller.id or scope["type"] != "http":
            return await self._app(scope, receive, send)
        scope[_COUNTS] = self.counts
        kind, most = REQUESTS, caller.limits.requests
        if scope["path"] == STREAM_PATH:
            kind, most = STREAMS, caller.limits.streams
        try:
            with _counted(self.counts, caller, kind, most):
                return await self._app(scope, receive, send)
        except TooManyRequests as error:
            refusal = error
        return await problem(refusal)(scope, receive, send)


@contextmanager
def waiting(scope: MutableMapping[str, Any]) -> Iterator[None]:
    """Count a request as one that waits while the context is open. Raises TooManyRequests beyond the caller's limit."""
    caller: Caller = scope.get(CALLER, UNRESTRICTED)
    if _COUNTS not in scope:
        yield
        return
    with _counted(scope[_COUNTS], caller, WAITING, caller.limits.waiting):
        yield


@contextmanager
def _counted(counts: dict[tuple[str, str], int], caller: Caller, kind: str, most: int) -> Iterator[None]:
    key = (caller.id, kind)
    present = counts.get(key, 0)
    if present >= most:
        raise TooManyRequests(
            f"{present} {kind} of {caller.id!r} are in progress in this worker, which is the most: {_ADVICE[kind]}",
            UnavailableFacts(limit=kind, most=most),
        )
    counts[key] = present + 1
    try:
        yield
    finally:
        counts[key] -= 1
        if not counts[key]:
            del counts[key]
