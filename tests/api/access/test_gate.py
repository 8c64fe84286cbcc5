"""The gate alone: what it puts into the scope, what it reads, and which headers it takes for a token."""

from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from redsched import origin
from redsched.api.access.callers import caller_of
from redsched.api.access.gate import Gate, bearer
from redsched.auth.access_token import MAX_TOKEN_BYTES
from redsched.auth.authenticator import Authenticator
from redsched.auth.caller import UNRESTRICTED, Caller
from redsched.errors import Unauthenticated
from redsched.origin import UNKNOWN, Origin
from redsched.settings import Settings
from tests.api.access.parts import bearer as header
from tests.api.parts import app_of

ROUTES = app_of(Settings()).state.routes


def scope_of(*headers: tuple[str, str], method: str = "POST", path: str = "/v1/selections") -> Scope:
    """Return the scope of a request with these headers."""
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    return {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}


class Inside:
    """The app behind the gate: it notes who came, and for whom it works."""

    def __init__(self, error: Exception | None = None) -> None:
        self.seen: list[tuple[Caller, Origin]] = []
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append((caller_of(scope), origin.current()))
        if self._error:
            raise self._error
        await Response()(scope, receive, send)


async def unread() -> Message:
    """Fail: a refused request's body must not be read."""
    raise AssertionError("the body was read")


async def status(gate: Gate, scope: Scope) -> int:
    """Return the status of the response."""
    sent: list[Any] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await gate(scope, unread, send)
    return int(sent[0]["status"])


def gate_of(tokens: Path, inside: Inside) -> Gate:
    """Return the gate of the tests' tokens."""
    return Gate(inside, ROUTES, Authenticator.of(Settings(auth=str(tokens))))


async def test_without_authentication_everybody_is_unrestricted() -> None:
    inside = Inside()
    assert await status(Gate(inside, ROUTES, None), scope_of()) == 200
    assert inside.seen == [(UNRESTRICTED, UNKNOWN)]


async def test_what_a_caller_causes_is_the_caller_s(tokens: Path) -> None:
    """During the request, whose id is kept, and not after it, whether it fails or not."""
    inside = Inside()
    entered = origin.enter(Origin("", "request-1"))
    try:
        assert await status(gate_of(tokens, inside), scope_of(*header("web"))) == 200
        with pytest.raises(RuntimeError):
            await status(gate_of(tokens, Inside(RuntimeError())), scope_of(*header("web")))
        assert origin.current() == Origin("", "request-1")
    finally:
        origin.leave(entered)
    [(caller, seen)] = inside.seen
    assert (caller.id, seen) == ("web", Origin("web", "request-1"))


async def test_refused_requests_reach_nothing_and_are_not_read(tokens: Path) -> None:
    inside = Inside()
    gate = gate_of(tokens, inside)
    assert await status(gate, scope_of()) == 401
    assert await status(gate, scope_of(*header("of-h1"))) == 403
    assert await status(gate, scope_of(method="OPTIONS")) == 401
    assert await status(gate, scope_of(*header("of-h1"), method="OPTIONS")) == 403
    assert await status(gate, scope_of(*header("of-h1"), method="HEAD", path="/v1/hosts")) == 403
    assert inside.seen == []
    assert await status(gate, scope_of(*header("reader"), method="HEAD", path="/v1/hosts")) == 200
    assert await status(gate, scope_of(*header("web"), method="OPTIONS")) == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_in_any_case(scheme: str) -> None:
    assert bearer([(b"authorization", f"{scheme} rst_a_b".encode())]) == "rst_a_b"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")],
        [(b"authorization", b"Basic a")],
        [(b"authorization", b"Bearer\xa0a")],
        [(b"authorization", b"Bearer \xff")],
        [(b"authorization", b"Bearer " + b"a" * (MAX_TOKEN_BYTES + 1))],
    ],
)
def test_other_headers_are_no_token_and_are_not_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthenticated) as refused:
        bearer(headers)
    assert "aaa" not in refused.value.detail
