"""/v1/hosts: lists, single hosts, and the actions of operators."""

import httpx
import pytest

from tests.api.parts import NEED, REPORT, check_problem, held, put_host, select

WORDS = ("drain", "enable", "disable", "write-off")


async def test_a_host_shows_what_it_reported_and_what_is_free(api: httpx.AsyncClient) -> None:
    """free = capacity - claimed - external."""
    await select(api)
    found = (await api.get("/v1/hosts/h1")).json()
    for name in ("zone", "labels", "traits", "metrics", "lease_s"):
        assert found[name] == REPORT[name]
    assert (found["status"], found["alive"], found["attested"], found["claims"]) == ("enabled", True, True, 1)
    memory = found["slots"]["MEMORY_MB"]
    assert (memory["total"], memory["reserved"], memory["capacity"]) == (16_384, 384, 16_000)
    assert (memory["claimed"], memory["external"], memory["free"]) == (4096, 1000, 10_904)


async def test_no_host_at_all_is_an_empty_list(empty_api: httpx.AsyncClient) -> None:
    assert (await empty_api.get("/v1/hosts")).json() == {"hosts": [], "next": None}


async def test_lists_filter_and_page(api: httpx.AsyncClient) -> None:
    """Every host is on exactly one page, ordered by name."""
    for number in (2, 3, 4, 5):
        await put_host(api, f"h{number}", zone="az2" if number > 3 else "az1")
    await api.post("/v1/hosts/h2/drain")
    seen, after = [], ""
    while after is not None:
        page = (await api.get("/v1/hosts", params={"limit": 2, "after": after})).json()
        seen += [one["name"] for one in page["hosts"]]
        after = page["next"]
    assert seen == ["h1", "h2", "h3", "h4", "h5"]
    for query, expected in {"zone=az2": 2, "status=draining": 1, "status=enabled": 4, "zone=az9": 0}.items():
        assert len((await api.get(f"/v1/hosts?{query}")).json()["hosts"]) == expected, query


async def test_written_off_hosts_are_listed_as_lost_and_under_no_other_status(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    await api.post("/v1/hosts/h1/write-off", json={"force": True})
    found = {}
    for status in ("enabled", "disabled", "draining", "lost"):
        page = (await api.get("/v1/hosts", params={"status": status})).json()
        found[status] = [one["name"] for one in page["hosts"]]
    assert found == {"enabled": ["h2"], "disabled": [], "draining": [], "lost": ["h1"]}


async def test_a_status_that_does_not_exist_is_refused_with_those_that_do(api: httpx.AsyncClient) -> None:
    refused = check_problem(await api.get("/v1/hosts?status=gone"), 422, "invalid-request")
    assert all(status in refused["detail"] for status in ("enabled", "disabled", "draining", "lost"))


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "status=gone", "after=%0A", "host=h1", "zone=a%20b"]
)
async def test_a_bad_query_is_a_problem(api: httpx.AsyncClient, query: str) -> None:
    check_problem(await api.get(f"/v1/hosts?{query}"), 422, "invalid-request")


@pytest.mark.parametrize(("word", "status"), [("drain", "draining"), ("disable", "disabled")])
async def test_a_host_that_is_not_enabled_gets_no_claims_until_it_is(
    api: httpx.AsyncClient, word: str, status: str
) -> None:
    for _ in range(2):
        assert (await api.post(f"/v1/hosts/h1/{word}")).status_code == 204
    assert (await api.get("/v1/hosts/h1")).json()["status"] == status
    check_problem(await api.post("/v1/selections", json=NEED), 409, "no-valid-host")
    assert (await api.post("/v1/hosts/h1/enable")).status_code == 204
    await select(api)


async def test_a_host_written_off_gets_no_claims(api: httpx.AsyncClient) -> None:
    """While its lease runs, the write-off needs force: the refusal says so, and names the alternatives."""
    refused = check_problem(await api.post("/v1/hosts/h1/write-off", json={"evacuate": True}), 409, "claim-state")
    assert refused["lease_ms"] > 0
    assert all(word in refused["detail"] for word in ("Drain it", "stop its agent", "force"))
    assert (await api.get("/v1/hosts/h1")).json()["draining"] == ""
    assert (await api.post("/v1/hosts/h1/write-off", json={"force": True})).status_code == 204
    assert (await api.get("/v1/hosts/h1")).json()["written_off"] is True
    check_problem(await api.post("/v1/selections", json=NEED), 409, "no-valid-host")


async def test_a_host_that_holds_claims_is_removed_by_force_alone(api: httpx.AsyncClient, clean_store: str) -> None:
    """Without force the response is 409; with `force` its claims end too."""
    claim = await select(api)
    before = held(clean_store)
    check_problem(await api.delete("/v1/hosts/h1"), 409, "claim-state")
    assert held(clean_store) == before
    assert (await api.delete("/v1/hosts/h1?force=true")).status_code == 204
    check_problem(await api.get("/v1/hosts/h1"), 404, "not-found")
    assert (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["state"] == "ended"


async def test_a_host_without_claims_is_removed(api: httpx.AsyncClient) -> None:
    check_problem(await api.delete("/v1/hosts/h1"), 409, "claim-state")
    assert (await api.delete("/v1/hosts/h1?force=true")).status_code == 204
    check_problem(await api.delete("/v1/hosts/h1"), 404, "not-found")


@pytest.mark.parametrize("word", WORDS)
async def test_a_word_on_an_unknown_host_writes_nothing(api: httpx.AsyncClient, clean_store: str, word: str) -> None:
    before = held(clean_store)
    check_problem(await api.post(f"/v1/hosts/h9/{word}"), 404, "not-found")
    check_problem(await api.post(f"/v1/hosts/a%20b/{word}"), 422, "invalid-request")
    assert held(clean_store) == before


async def test_an_unknown_host_is_404(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    check_problem(await api.get("/v1/hosts/h9"), 404, "not-found")
    check_problem(await api.delete("/v1/hosts/h9"), 404, "not-found")
    check_problem(await api.get("/v1/hosts/a%3Ab"), 422, "invalid-request")
    check_problem(await api.delete("/v1/hosts/h1?force=2"), 422, "invalid-request")
    check_problem(await api.delete("/v1/hosts/h1?forced=true"), 422, "invalid-request")
    assert held(clean_store) == before
