"""What HTTP promises of every route: HEAD, OPTIONS, Allow, Location."""

import asyncio

import httpx
import pytest

from redsched.api.app import create_app
from redsched.settings import Settings
from tests.api.parts import NEED, check_problem, held, put_host, select

DOCUMENT = create_app(Settings()).openapi()
GETS = [path for path, item in DOCUMENT["paths"].items() if "get" in item]
POOL = {"inventories": {"CUSTOM_SEAT": {"total": 3}}}


def _filled(path: str) -> str:
    return path.replace("{host}", "h1").replace("{name}", "a").replace("{project}", "a").replace("{claim_id}", "a")


@pytest.mark.parametrize("path", GETS)
async def test_head_answers_as_get_does_without_the_body(api: httpx.AsyncClient, path: str) -> None:
    """Also where GET is a stream without an end, and where it is refused."""
    async with asyncio.timeout(20):
        head = await api.head(_filled(path))
        assert head.content == b""
        if path == "/v1/changes":
            assert head.headers["content-type"].startswith("text/event-stream")
            return
        get = await api.get(_filled(path))
    assert (head.status_code, head.headers["content-type"]) == (get.status_code, get.headers["content-type"])
    if path not in ("/v1/hosts", "/v1/hosts/{host}", "/metrics"):  # these change from one look to the next
        assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("path", DOCUMENT["paths"])
async def test_options_and_405_name_all_methods_of_a_path(api: httpx.AsyncClient, path: str) -> None:
    """Over all routes of the path, not only the first one that is found."""
    declared = {method.upper() for method in DOCUMENT["paths"][path]}
    options = await api.options(_filled(path))
    assert (options.status_code, options.content) == (204, b"")
    expected = declared | {"OPTIONS"} | ({"HEAD"} if "GET" in declared else set())
    if path in ("/v1/claims/renew", "/v1/claims/shelve", "/v1/claims/unshelve"):
        expected |= {"GET", "HEAD", "DELETE"}  # as claims of such ids
    assert set(options.headers["allow"].split(", ")) == expected
    refused = await api.request("TRACE", _filled(path))
    check_problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == options.headers["allow"]


async def test_options_of_an_unknown_path_is_404(api: httpx.AsyncClient) -> None:
    check_problem(await api.options("/v1/nix"), 404, "not-found")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/aggregates/a", {}),
        ("/v1/server-groups/a", {"policy": "affinity"}),
        ("/v1/shared-pools/a", POOL),
        ("/v1/quotas/a", {"limits": {"VCPU": 4}}),
    ],
)
async def test_201_of_a_declaration_says_where_it_is(
    api: httpx.AsyncClient, path: str, body: dict[str, object]
) -> None:
    made = await api.put(path, json=body)
    assert (made.status_code, made.headers["location"]) == (201, path)
    assert (await api.get(made.headers["location"])).json() == made.json()
    assert "location" not in (await api.put(path, json=body)).headers


async def test_201_of_a_selection_says_where_the_first_claim_is(api: httpx.AsyncClient) -> None:
    body = {"resources": {"VCPU": 1}, "count": 2, "claim_ids": ["one", "two"]}
    made = await api.post("/v1/selections", json=body)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/claims/one")
    assert (await api.get(made.headers["location"])).json()["claim_id"] == "one"
    for again in (body, {**NEED, "claim": False}):
        answer = await api.post("/v1/selections", json=again)
        assert answer.status_code == 200
        assert "location" not in answer.headers


async def test_unshelved_and_ending_claims_say_where_they_are(api: httpx.AsyncClient) -> None:
    """201 of what was claimed again; 202 of what is to be watched until its host has ended it."""
    claim = await select(api, claim_ids=["c"])
    assert (await api.post("/v1/claims/c/shelve", json={"token": claim["token"]})).status_code == 200
    back = await api.post("/v1/claims/c/unshelve")
    assert (back.status_code, back.headers["location"]) == (201, "/v1/claims/c")
    confirmed = await api.post("/v1/claims/c/confirm", json={"token": back.json()["token"]})
    assert confirmed.status_code == 200, confirmed.text
    ending = await api.delete("/v1/claims/c")
    assert (ending.status_code, ending.headers["location"]) == (202, "/v1/claims/c")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/claims?state=active&state=claimed"),
        ("GET", "/v1/claims?host=h1&host=h2"),
        ("DELETE", "/v1/claims?project=a&project=b"),
        ("POST", "/v1/claims/renew?lease_s=5&lease_s=6&project=a"),
        ("GET", "/v1/hosts?status=enabled&status=draining"),
        ("GET", "/v1/aggregates?limit=1&limit=2"),
        ("GET", "/v1/usage?by=zone&by=class"),
        ("GET", "/v1/events?kind=claimed&kind=ended"),
        ("DELETE", "/v1/hosts/h1?force=false&force=true"),
        ("POST", "/v1/explain?limit=1&limit=2"),
    ],
)
async def test_a_parameter_given_twice_is_refused(
    api: httpx.AsyncClient, clean_store: str, method: str, path: str
) -> None:
    """The last one alone would be heeded: more claims than meant would be released, or fewer shown."""
    before = held(clean_store)
    answer = await api.request(method, path, json=NEED if path.startswith("/v1/explain") else None)
    assert "2 times" in check_problem(answer, 422, "invalid-request")["detail"]
    assert held(clean_store) == before


async def test_hosts_to_explain_may_be_several(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    answer = await api.post("/v1/explain?host=h1&host=h2", json=NEED)
    assert [one["host"] for one in answer.json()["checks"]] == ["h1", "h2"]
