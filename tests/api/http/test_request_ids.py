"""Request ids: taken from the client or made, repeated in each response and in problems; the access log."""

import re
from typing import Any

import httpx
import pytest

from redsched import logs, origin
from redsched.api import access_log
from redsched.origin import Origin
from redsched.settings import Settings
from tests.api.parts import client_of

MADE = re.compile("[0-9a-f]{16}")


@pytest.mark.parametrize("sent", ["a", "deploy-42", "A.b_c-9", "x" * 64])
async def test_a_valid_id_is_taken_over(api: httpx.AsyncClient, sent: str) -> None:
    answer = await api.get("/v1/hosts", headers={"X-Request-Id": sent})
    assert answer.headers.get_list("x-request-id") == [sent]


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a\tb", "ü".encode(), 'a"b', "a/b"])
async def test_an_invalid_id_is_replaced(api: httpx.AsyncClient, sent: Any) -> None:
    answer = await api.get("/v1/hosts", headers={"X-Request-Id": sent})
    assert MADE.fullmatch(answer.headers["x-request-id"])


async def test_each_request_without_an_id_gets_its_own(api: httpx.AsyncClient) -> None:
    ids = {(await api.get("/healthz")).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(map(MADE.fullmatch, ids))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PUT", "/v1/events", 405),
        ("POST", "/v1/selections", 415),
        ("GET", "/v1%2Fhosts", 422),
    ],
)
async def test_a_problem_names_the_request(api: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await api.request(method, path, headers={"X-Request-Id": "r1"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (status, "r1")
    assert answer.json()["request_id"] == "r1"


async def test_the_access_log_has_a_line_for_each_request(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **facts: Any) -> None:
            lines.append({"event": event, **facts, "origin": origin.current()})

    monkeypatch.setattr(access_log, "log", Log())
    async with client_of(Settings(redis_url=clean_store, access_log=True), is_new=True) as api:
        answer = await api.get("/nowhere?token=secret", headers={"X-Request-Id": "r1"})
    (line,) = lines
    assert line.pop("duration_ms") >= 0
    assert line == {
        "event": "request",
        "method": "GET",
        "path": "/nowhere",
        "status": 404,
        "bytes": len(answer.content),
        "origin": Origin("", "r1"),
    }


def test_log_lines_have_the_current_origin() -> None:
    token = origin.enter(Origin("ci", "r1"))
    try:
        assert logs._add_origin(None, "info", {"event": "x"}) == {"event": "x", "actor": "ci", "request_id": "r1"}
        assert logs._add_origin(None, "info", {"actor": "own"}) == {"actor": "own", "request_id": "r1"}
    finally:
        origin.leave(token)
    assert logs._add_origin(None, "info", {"event": "x"}) == {"event": "x"}
