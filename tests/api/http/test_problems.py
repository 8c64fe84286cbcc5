"""Behaviour common to all routes: unknown routes and methods, body sizes, media types, and an unreachable store."""

from collections.abc import AsyncIterator

import httpx
import pytest
import structlog

from redsched.errors import StoreUnavailable
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.api.parts import NEED, REPORT, check_problem, client_of, held, put_host

BODIES = [
    ("POST", "/v1/selections"),
    ("POST", "/v1/explain"),
    ("POST", "/v1/claims/a/confirm"),
    ("POST", "/v1/claims/a/renew"),
    ("POST", "/v1/claims/a/fail"),
    ("PUT", "/v1/hosts/h1/report"),
    ("PATCH", "/v1/hosts/h1/report"),
    ("POST", "/v1/hosts/h1/heartbeat"),
]


async def test_an_unknown_route_is_a_problem(api: httpx.AsyncClient) -> None:
    for path in ("/nix", "/v1/nix", "/v1/hosts/h1/nix", "/v1/hosts/", "/V1/hosts"):
        check_problem(await api.get(path), 404, "not-found")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE"])
async def test_an_unknown_method_is_a_problem_that_names_the_known(api: httpx.AsyncClient, method: str) -> None:
    answer = await api.request(method, "/v1/selections")
    check_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "OPTIONS, POST"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *BODIES,
        ("GET", "/v1/claims"),
        ("GET", "/v1/claims/a"),
        ("DELETE", "/v1/claims/a"),
        ("GET", "/v1/hosts"),
        ("GET", "/v1/hosts/h1"),
        ("DELETE", "/v1/hosts/h1"),
        ("POST", "/v1/hosts/h1/drain"),
        ("POST", "/v1/hosts/h1/write-off"),
        ("GET", "/v1/hosts/h1/inbox"),
        ("GET", "/v1/changes"),
    ],
)
async def test_a_query_that_the_route_does_not_have_is_422(
    api: httpx.AsyncClient, clean_store: str, method: str, path: str
) -> None:
    """If it were ignored, `?claim=false` beside a body would make a real claim."""
    bodies = {"/v1/hosts/h1/report": REPORT, "/v1/hosts/h1/heartbeat": {}}
    body = bodies.get(path, NEED) if (method, path) in BODIES else None
    before = held(clean_store)
    answer = await api.request(method, path, params={"claim": "false"}, json=body)
    assert "claim" in check_problem(answer, 422, "invalid-request")["detail"]
    assert held(clean_store) == before


@pytest.mark.parametrize(("method", "path"), BODIES)
async def test_a_large_body_is_413(api: httpx.AsyncClient, clean_store: str, method: str, path: str) -> None:
    """The limit, here 4096 bytes, applies to the declared length and to the bytes that arrive."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * 1000

    before = held(clean_store)
    headers = {"Content-Type": "application/json"}
    for content in (b" " * 4097, chunks()):
        answer = await api.request(method, path, content=content, headers=headers)
        check_problem(answer, 413, "body-too-large")
    assert held(clean_store) == before


@pytest.mark.parametrize(("method", "path"), BODIES)
@pytest.mark.parametrize("declared", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
async def test_another_media_type_is_415(
    api: httpx.AsyncClient, clean_store: str, method: str, path: str, declared: str
) -> None:
    before = held(clean_store)
    answer = await api.request(method, path, content=b"{}", headers={"Content-Type": declared} if declared else {})
    check_problem(answer, 415, "unsupported-media-type")
    assert held(clean_store) == before


async def test_a_charset_beside_the_media_type_is_fine(api: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    answer = await api.post("/v1/selections", content=b'{"resources": {"VCPU": 1}}', headers=headers)
    assert answer.status_code == 201


async def test_several_errors_are_all_named(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/selections", json={"resources": {"VCPU": "1"}, "count": "2", "nix": 1})
    found = check_problem(answer, 422, "invalid-request")
    assert {one["field"] for one in found["errors"]} == {"resources.VCPU", "count", "nix"}


async def test_a_store_that_is_gone_is_503_with_retry_after(fresh_server: PrivateServer) -> None:
    settings = Settings(redis_url=fresh_server.url, resend_for_s=3)
    async with client_of(settings) as api:
        await put_host(api, "h1")
        fresh_server.kill()
        for answer in (await api.get("/v1/claims/a"), await api.get("/readyz"), await api.get("/v1/hosts/h1/inbox")):
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["content-type"] == "application/problem+json"
        answer = await api.post("/v1/selections", json=NEED)
        assert answer.status_code == 503, answer.text
        assert (await api.get("/healthz")).status_code == 200


async def test_the_app_does_not_start_without_a_store() -> None:
    """The error is clear, both without a URL and with one where no store listens."""
    with pytest.raises(StoreUnavailable, match="REDSCHED_REDIS_URL"):
        async with client_of(Settings()):
            pass
    with pytest.raises(StoreUnavailable, match=r"nowhere\.sock"):
        async with client_of(Settings(redis_url="unix:///nowhere.sock", reply_timeout_s=0.5)):
            pass


async def test_a_fault_of_redsched_is_a_problem_and_is_logged(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Selections bypass the middleware that turns faults of other routes into problems."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Scheduler, "select", broken)
    monkeypatch.setattr(Scheduler, "explain", broken)
    for path in ("/v1/selections", "/v1/explain"):
        with structlog.testing.capture_logs() as logged:
            found = check_problem(await api.post(path, json=NEED), 500, "internal-error")
        assert "RuntimeError" in found["detail"]
        assert [(one["event"], one["path"]) for one in logged] == [("request failed", path)]
