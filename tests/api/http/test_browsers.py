"""Pages in browsers: foreign ones send nothing, names that an attacker controls reach nothing, forms are refused."""

from collections.abc import AsyncIterator

import httpx
import pytest

from redsched.serve.browsers import MAX_KNOWN, Browsers, TrustedHosts
from redsched.serve.registry import WorkerRegistry
from redsched.settings import Settings
from tests.api.parts import NEED, app_of, check_problem, client_of, held

JSON = {"content-type": "application/json"}

FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "http://localhost:3000"},
    {"origin": "http://localhost.evil.example"},
    {"origin": "http://evil.example@localhost"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "localhost"},
    {"origin": "chrome-extension://localhost"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "Cross-Site", "origin": "http://localhost"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_requests_of_foreign_pages_are_refused(
    api: httpx.AsyncClient, clean_store: str, headers: dict[str, str]
) -> None:
    before = held(clean_store)
    for method, path, body in (
        ("POST", "/v1/selections", NEED),
        ("POST", "/v1/hosts/h1/disable", None),
        ("DELETE", "/v1/hosts/h1", None),
        ("GET", "/v1/hosts", None),
        ("GET", "/healthz", None),
        ("OPTIONS", "/v1/selections", None),
    ):
        answer = await api.request(method, path, json=body, headers=headers)
        check_problem(answer, 403, "forbidden")
    assert held(clean_store) == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost"},
        {"origin": "http://localhost:80"},
        {"origin": "https://localhost"},  # a proxy that has the TLS
        {"origin": "http://LOCALHOST", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"host": "localhost:8080", "origin": "http://localhost:8080"},
    ],
    ids=str,
)
async def test_requests_of_our_own_pages_and_of_programs_are_not(
    api: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await api.get("/v1/hosts", headers=headers)).status_code == 200
    assert (await api.post("/v1/selections", json=NEED, headers=headers)).status_code == 201


@pytest.mark.parametrize("declared", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_browser_declares_json_even_without_a_body(api: httpx.AsyncClient, declared: str | None) -> None:
    """A form can send the others without asking first."""
    headers = {"sec-fetch-site": "same-origin", "origin": "http://localhost"}
    if declared:
        headers["content-type"] = declared
    answer = await api.post("/v1/hosts/h1/disable", headers=headers)
    check_problem(answer, 415, "unsupported-media-type")
    assert (await api.post("/v1/hosts/h1/disable", headers={**headers, **JSON})).status_code == 204


async def test_programs_declare_json_if_there_is_a_body(api: httpx.AsyncClient) -> None:
    """Also of routes that read none."""
    assert (await api.post("/v1/hosts/h1/disable")).status_code == 204
    answer = await api.post("/v1/hosts/h1/enable", content=b"a=b", headers={"content-type": "text/plain"})
    check_problem(answer, 415, "unsupported-media-type")


async def test_responses_have_no_cors_headers(api: httpx.AsyncClient) -> None:
    origin = {"origin": "http://localhost", "access-control-request-method": "POST"}
    for answer in (
        await api.get("/v1/hosts", headers=origin),
        await api.options("/v1/selections", headers=origin),
        await api.options("/v1/selections", headers={"origin": "http://evil.example"}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil", "[x]"]
)
async def test_a_name_that_resolves_to_this_api_is_no_way_in(api: httpx.AsyncClient, host: str) -> None:
    """DNS rebinding: the page's origin is the host that it asks, so only the name tells."""
    headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    assert (
        "REDSCHED_TRUSTED_HOSTS"
        in check_problem(await api.get("/v1/hosts", headers=headers), 403, "forbidden")["detail"]
    )


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "localhost.", "127.0.0.1:8080", "10.1.2.3", "[::1]:8080"]
)
async def test_addresses_and_localhost_are_trusted(api: httpx.AsyncClient, host: str) -> None:
    assert (await api.get("/healthz", headers={"host": host})).status_code == 200


@pytest.fixture
async def named(clean_store: str) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(Settings(redis_url=clean_store, trusted_hosts="api.example, Other.example")) as client:
        yield client


async def test_listed_names_are_trusted(named: httpx.AsyncClient) -> None:
    for host, status in (("api.example", 200), ("other.EXAMPLE:8080", 200), ("localhost", 200), ("third.example", 403)):
        assert (await named.get("/healthz", headers={"host": host})).status_code == status


def test_with_authentication_any_name_is_accepted_unless_some_are_listed() -> None:
    assert TrustedHosts.of(Settings(auth="a")) is None
    listed = TrustedHosts.of(Settings(auth="a", trusted_hosts="api.example"), "db1")
    assert listed is not None
    assert [listed.accept(one) for one in ("api.example", "db1:80", "evil.example")] == [True, True, False]


def test_many_names_are_not_remembered() -> None:
    layer = Browsers(app_of(Settings()), TrustedHosts(frozenset()))
    for number in range(1000):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"10.0.0.1:%d" % number)]}
        assert layer._refusal(scope) is None
    assert len(layer._known) <= MAX_KNOWN


def test_the_bound_name_reaches_the_workers() -> None:
    assert WorkerRegistry(bound="db1").bound == "db1"
