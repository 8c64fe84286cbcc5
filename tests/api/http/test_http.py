"""HTTP features that every route has: HEAD, OPTIONS, Allow, Location."""

import asyncio

import httpx
import pytest

from tests.api.parts import NEED, check_problem, held, put_host, select
from tests.support.openapi import openapi_document
from tests.support.waiting import patience_s

DOCUMENT = openapi_document()
GETS = [path for path, item in DOCUMENT["paths"].items() if "get" in item]
CHANGING = ("/v1/hosts", "/v1/hosts/{host}", "/v1/status", "/metrics")
"""Paths whose content has times or ages: its length may change between two requests."""
POOL = {"inventories": {"CUSTOM_SEAT": {"total": 3}}}


def _filled(path: str) -> str:
    return path.replace("{host}", "h1").replace("{name}", "a").replace("{project}", "a").replace("{claim_id}", "a")


@pytest.mark.parametrize("path", GETS)
async def test_head_answers_as_get_does_without_the_body(api: httpx.AsyncClient, path: str) -> None:
    """This includes a GET that streams without an end, and one that is refused."""
    async with asyncio.timeout(patience_s(20)):
        head = await api.head(_filled(path))
        assert head.content == b""
        if path == "/v1/changes":
            assert head.headers["content-type"].startswith("text/event-stream")
            return
        get = await api.get(_filled(path))
    assert (head.status_code, head.headers["content-type"]) == (get.status_code, get.headers["content-type"])
    if path not in CHANGING:
        assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("path", DOCUMENT["paths"])
async def test_options_and_405_name_all_methods_of_a_path(api: httpx.AsyncClient, path: str) -> None:
    """They cover all routes of the path, not only the first match."""
    declared = {method.upper() for method in DOCUMENT["paths"][path]}
    options = await api.options(_filled(path))
    assert (options.status_code, options.content) == (204, b"")
    expected = declared | {"OPTIONS"} | ({"HEAD"} if "GET" in declared else set())
    if path in ("/v1/claims/renew", "/v1/claims/shelve", "/v1/claims/unshelve"):
        expected |= {"GET", "HEAD", "DELETE"}  # the last segment is also a valid claim id
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
    """The response is 201 for an unshelved claim, and 202 for one whose end the caller can watch."""
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
        ("GET", "/v1/claims?limit=1&limit=2"),
        ("GET", "/v1/claims?after=a&after=b"),
        ("DELETE", "/v1/claims?project=a&dry_run=true&dry_run=false"),
        ("POST", "/v1/claims/renew?lease_s=5&lease_s=6&project=a"),
        ("GET", "/v1/aggregates?limit=1&limit=2"),
        ("GET", "/v1/events?newest=true&newest=false"),
        ("DELETE", "/v1/hosts/h1?force=false&force=true"),
        ("POST", "/v1/explain?limit=1&limit=2"),
    ],
)
async def test_a_parameter_that_has_one_value_is_refused_twice(
    api: httpx.AsyncClient, clean_store: str, method: str, path: str
) -> None:
    """If only the last value counted, more claims than meant would be released, or fewer shown."""
    before = held(clean_store)
    answer = await api.request(method, path, json=NEED if path.startswith("/v1/explain") else None)
    assert "2 times" in check_problem(answer, 422, "invalid-request")["detail"]
    assert held(clean_store) == before


async def ids_of(api: httpx.AsyncClient, path: str, method: str = "GET") -> list[str]:
    answer = (await api.request(method, path)).raise_for_status().json()
    return [one["claim_id"] for one in answer["claims" if method == "GET" else "results"]]


async def test_a_filter_given_twice_takes_either_value(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    for name, host in (("a", "h1"), ("b", "h1"), ("c", "h2"), ("d", "h2")):
        claim = await select(api, claim_ids=[name], project=f"of-{name}", consumer=name, hosts=[host])
        if name in "bd":
            await api.post(f"/v1/claims/{name}/confirm", json={"token": claim["token"]})
    assert await ids_of(api, "/v1/claims?state=active&state=claimed") == ["a", "b", "c", "d"]
    assert await ids_of(api, "/v1/claims?state=active") == ["b", "d"]
    assert await ids_of(api, "/v1/claims?host=h2&host=h1&limit=3") == ["a", "b", "c"]
    assert await ids_of(api, "/v1/claims?project=of-a&project=of-d&state=claimed&state=active") == ["a", "d"]
    assert await ids_of(api, "/v1/claims?consumer=c&consumer=b&host=h2&host=h9") == ["c"]
    assert await ids_of(api, "/v1/claims?cell=c1&cell=c1&zone=nowhere&zone=az1") == ["a", "b", "c", "d"]
    assert await ids_of(api, "/v1/claims?zone=nowhere&zone=far") == []
    bulk = "/v1/claims/renew?lease_s=60&state=active&state=claimed&project=of-a&project=of-b"
    assert await ids_of(api, bulk, "POST") == ["a", "b"]
    assert await ids_of(api, "/v1/claims?consumer=a&consumer=c&force=true", "DELETE") == ["a", "c"]
    assert await ids_of(api, "/v1/claims") == ["b", "d"]


async def test_shelved_claims_are_listed_beside_others(api: httpx.AsyncClient) -> None:
    tokens = {name: (await select(api, claim_ids=[name]))["token"] for name in "abc"}
    await api.post("/v1/claims/b/shelve", json={"token": tokens["b"]})
    assert await ids_of(api, "/v1/claims?state=claimed&state=shelved") == ["b", "a", "c"]
    first = (await api.get("/v1/claims?state=claimed&state=shelved&limit=1")).json()
    after = httpx.QueryParams({"after": first["next"]})
    assert await ids_of(api, f"/v1/claims?state=claimed&state=shelved&{after}") == ["a", "c"]
    check_problem(await api.get("/v1/claims?state=shelved&state=active&host=h1"), 422, "invalid-request")
    check_problem(await api.get("/v1/claims?state=active&state=ended"), 422, "invalid-request")
    check_problem(await api.post("/v1/claims/unshelve?state=active&state=shelved"), 422, "invalid-request")
    check_problem(await api.delete("/v1/claims?host=h1&host=nonesuch"), 404, "not-found")


async def test_hosts_events_and_usage_have_filters_of_several_values(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2", zone="az2")
    await put_host(api, "h3", zone="az3")
    await api.post("/v1/hosts/h2/drain")
    await api.post("/v1/hosts/h3/disable")

    async def names(query: str) -> list[str]:
        return [one["name"] for one in (await api.get(f"/v1/hosts?{query}")).raise_for_status().json()["hosts"]]

    assert await names("status=enabled&status=draining") == ["h1", "h2"]
    assert await names("zone=az2&zone=az3&zone=none") == ["h2", "h3"]
    assert await names("zone=az2&zone=az3&status=disabled&status=enabled") == ["h3"]
    assert (await api.get("/v1/usage?by=zone&by=class")).text == (await api.get("/v1/usage?by=zone,class")).text
    check_problem(await api.get("/v1/events?kind=claimed&kind=fialed"), 422, "invalid-request")
    check_problem(await api.get("/v1/usage?by=zone&by=rack"), 422, "invalid-request")


async def test_hosts_to_explain_may_be_several(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    answer = await api.post("/v1/explain?host=h1&host=h2", json=NEED)
    assert [one["host"] for one in answer.json()["checks"]] == ["h1", "h2"]
