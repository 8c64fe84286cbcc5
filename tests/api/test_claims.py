"""/v1/claims: lists, single claims, and the verbs with their tokens."""

from typing import Any

import httpx
import pytest

from redsched.store.store import Store
from tests.api.parts import NEED, STALE, check_problem, held, put_host, select

VERBS = ("confirm", "renew", "fail", "move", "shelve")
BAD_BODIES: dict[str, dict[str, Any]] = {
    "no token": {},
    "token not a token": {"token": "x"},
    "token a number": {"token": 7},
    "token too long": {"token": f"1-a.{'9' * 100}"},
    "unknown field": {"token": STALE, "host": "h1"},
}


async def verb(api: httpx.AsyncClient, claim: dict[str, Any], name: str, **more: Any) -> httpx.Response:
    return await api.post(f"/v1/claims/{claim['claim_id']}/{name}", json={"token": claim["token"], **more})


async def test_confirm_makes_a_claim_active(api: httpx.AsyncClient) -> None:
    """An agent without Redis cannot call accept, so confirm accepts the claim too. It may be repeated."""
    claim = await select(api)
    for _ in range(2):
        answer = await verb(api, claim, "confirm")
        assert answer.status_code == 200, answer.text
        assert (answer.json()["state"], answer.json()["expires_at_ms"]) == ("active", None)


async def test_a_claim_says_why_it_is_on_its_host_and_lists_do_not(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    [listed] = (await api.get("/v1/claims")).json()["claims"]
    assert listed["decision"] is None
    decision = (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["decision"]
    assert (decision["token"], decision["host"], decision["candidate"]) == (claim["token"], "h1", 1)
    assert decision["hosts"] == decision["fits"] + sum(one["hosts"] for one in decision["reasons"])
    [best, *_] = decision["ranked"]
    assert best["host"] == "h1"
    assert best["score"] == pytest.approx(sum(best["weighers"].values()), abs=1e-5)


async def test_renew_moves_the_deadline(api: httpx.AsyncClient) -> None:
    claim = await select(api, lease_s=10)
    answer = await api.post(f"/v1/claims/{claim['claim_id']}/renew", json={"token": claim["token"], "lease_s": 600})
    assert answer.status_code == 200, answer.text
    assert answer.json()["expires_at_ms"] > claim["expires_at_ms"] + 500_000


async def test_fail_ends_a_claim_and_frees_its_host(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    answer = await verb(api, claim, "fail", alternates=[])
    assert answer.status_code == 200, answer.text
    assert (answer.json()["state"], answer.json()["end_reason"]) == ("ended", "failed")
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 0


@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_on_an_ended_claim_is_a_conflict(api: httpx.AsyncClient, name: str) -> None:
    claim = await select(api)
    await api.delete(f"/v1/claims/{claim['claim_id']}")
    check_problem(await verb(api, claim, name), 409, "claim-state")


@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_with_another_token_writes_nothing(api: httpx.AsyncClient, clean_store: str, name: str) -> None:
    """The response is 409 stale-token."""
    claim = await select(api)
    before = held(clean_store)
    check_problem(await verb(api, {**claim, "token": STALE}, name), 409, "stale-token")
    assert held(clean_store) == before


@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_on_an_unknown_claim_is_404(api: httpx.AsyncClient, clean_store: str, name: str) -> None:
    before = held(clean_store)
    check_problem(await verb(api, {"claim_id": "nix", "token": STALE}, name), 404, "not-found")
    check_problem(await verb(api, {"claim_id": "a b", "token": STALE}, name), 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_a_bad_body_is_a_problem(
    api: httpx.AsyncClient, clean_store: str, body: dict[str, Any], name: str
) -> None:
    claim = await select(api)
    before = held(clean_store)
    answer = await api.post(f"/v1/claims/{claim['claim_id']}/{name}", json=body)
    check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("lease_s", [0, -1, 86_401, "60", 60.0, True, None])
async def test_a_bad_lease_is_a_problem(api: httpx.AsyncClient, clean_store: str, lease_s: object) -> None:
    claim = await select(api)
    before = held(clean_store)
    body = {"token": claim["token"], "lease_s": lease_s}
    answer = await api.post(f"/v1/claims/{claim['claim_id']}/renew", json=body)
    check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


async def test_release_of_a_claim_that_nobody_took_up_is_204_and_again(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    for _ in range(2):
        answer = await api.delete(f"/v1/claims/{claim['claim_id']}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["end_reason"] == "released"
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 0


async def test_release_of_a_running_claim_is_202_until_its_host_says_so(api: httpx.AsyncClient) -> None:
    """Its amounts stay claimed while the work may still run; `force` frees them."""
    claim = await select(api)
    await verb(api, claim, "confirm")
    for _ in range(2):
        answer = await api.delete(f"/v1/claims/{claim['claim_id']}")
        assert answer.status_code == 202, answer.text
        path = f"/v1/claims/{claim['claim_id']}"
        assert answer.json() == {"claim_id": claim["claim_id"], "state": "ending", "watch": path}
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 2
    assert (await api.delete(f"/v1/claims/{claim['claim_id']}?force=true")).status_code == 204
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 0


async def test_release_that_is_not_possible_writes_nothing(api: httpx.AsyncClient, clean_store: str) -> None:
    claim = await select(api)
    before = held(clean_store)
    path = f"/v1/claims/{claim['claim_id']}"
    check_problem(await api.delete("/v1/claims/nix"), 404, "not-found")
    check_problem(await api.delete(f"{path}?token={STALE}"), 409, "stale-token")
    check_problem(await api.delete(f"{path}?token=x"), 422, "invalid-request")
    check_problem(await api.delete(f"{path}?force=perhaps"), 422, "invalid-request")
    check_problem(await api.delete(f"{path}?now=true"), 422, "invalid-request")
    assert held(clean_store) == before


async def test_lists_filter_and_page(api: httpx.AsyncClient) -> None:
    """Every claim is on exactly one page, and a filter returns only the claims that match it."""
    await put_host(api, "h2", zone="az2")
    for number in range(5):
        host = "h2" if number == 4 else "h1"
        need = {"VCPU": 1}
        await select(api, resources=need, claim_ids=[f"id{number}"], project=f"p{number % 2}", hosts=[host])
    seen, after = [], ""
    while after is not None:
        page = (await api.get("/v1/claims", params={"limit": 2, "after": after})).json()
        seen += [one["claim_id"] for one in page["claims"]]
        after = page["next"]
    assert sorted(seen) == [f"id{number}" for number in range(5)]
    filters = {"project=p1": 2, "host=h2": 1, "zone=az2": 1, "state=claimed": 5, "state=active": 0, "consumer=x": 0}
    for query, expected in filters.items():
        assert len((await api.get(f"/v1/claims?{query}")).json()["claims"]) == expected, query


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1001", "limit=x", "after=%00", "hosts=h1", "host=a%20b"),
        *("state=gone", "state=ended", "state=shelved&host=h1", "state=shelved&zone=az1"),
    ],
)
async def test_a_bad_query_is_a_problem(api: httpx.AsyncClient, query: str) -> None:
    check_problem(await api.get(f"/v1/claims?{query}"), 422, "invalid-request")


async def test_shelved_claims_are_listed_by_their_state(api: httpx.AsyncClient) -> None:
    claim = await select(api, project="web")
    await verb(api, claim, "shelve")
    shelved = "/v1/claims?state=shelved"
    for path, found in {shelved: 1, f"{shelved}&project=web": 1, f"{shelved}&project=db": 0, "/v1/claims": 0}.items():
        listed = (await api.get(path)).json()["claims"]
        assert [one["claim_id"] for one in listed] == [claim["claim_id"]] * found, path


async def test_an_ended_claim_shows_null_for_what_is_not_kept(api: httpx.AsyncClient) -> None:
    claim = await select(api, claim_ids=["mine"], max_attempts=5, on_exit="replace")
    before = (await api.get("/v1/claims/mine")).json()
    assert (before["server_group"], before["alternates"]) == ("", [])
    await verb(api, claim, "fail", alternates=[])
    ended = (await api.get("/v1/claims/mine")).json()
    assert (ended["state"], ended["alternates"], ended["server_group"]) == ("ended", None, None)
    kept = ("attempts", "max_attempts", "on_exit", "claimed_at_ms")
    assert {name: ended[name] for name in kept} == {name: before[name] for name in kept}
    assert (ended["max_attempts"], ended["on_exit"]) == (5, "replace")


async def test_a_claim_shows_how_long_its_work_may_run(api: httpx.AsyncClient) -> None:
    """The limit is part of the digest, so a repeated request with another one is another request."""
    need = {**NEED, "claim_ids": ["mine"], "max_runtime_s": 60}
    assert (await api.post("/v1/selections", json=need)).status_code == 201
    shown = (await api.get("/v1/claims/mine")).json()
    assert (shown["max_runtime_s"], shown["runtime_deadline_ms"]) == (60, shown["claimed_at_ms"] + 60_000)
    assert (await api.post("/v1/selections", json=need)).status_code == 200
    check_problem(await api.post("/v1/selections", json={**need, "max_runtime_s": 61}), 422, "claim-id-reused")
    plain = (await api.get(f"/v1/claims/{(await select(api))['claim_id']}")).json()
    assert (plain["max_runtime_s"], plain["runtime_deadline_ms"]) == (0, None)


async def test_a_claim_shows_the_payload_of_its_request_and_lists_do_not(api: httpx.AsyncClient) -> None:
    job = {"argv": ["train.sh", "--epochs", "3"], "more": [None, 1.5, "\u00fc"]}
    claim = await select(api, payload=job)
    assert (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["payload"] == job
    [listed] = (await api.get("/v1/claims")).json()["claims"]
    assert listed["payload"] is None
    confirmed = await verb(api, claim, "confirm")
    assert confirmed.json()["payload"] == job
    plain = await select(api, payload=None)
    assert (await api.get(f"/v1/claims/{plain['claim_id']}")).json()["payload"] is None


async def test_an_unknown_claim_is_404(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/claims/nix"), 404, "not-found")
    check_problem(await api.get("/v1/claims/a%7Bb"), 422, "invalid-request")


async def test_a_claim_shows_what_becomes_of_it_and_why_it_failed(api: httpx.AsyncClient, clean_store: str) -> None:
    claim = await select(api, on_exit="keep", claim_ids=["mine"])
    shown = (await api.get("/v1/claims/mine")).json()
    assert (shown["on_exit"], shown["work_ended_at_ms"], shown["reason"]) == ("keep", None, None)
    assert (await api.post("/v1/selections", json={**NEED, "claim_ids": ["mine"]})).status_code == 422, (
        "part of the digest"
    )
    async with Store.connect(clean_store) as store:
        await store.cell("c1").claims.work_ended("h1", "mine", claim["token"], "no process 7 is left")
    shown = (await api.get("/v1/claims/mine")).json()
    assert shown["work_ended_at_ms"] == shown["reason"]["at_ms"]
    assert shown["reason"] == {
        "at_ms": shown["work_ended_at_ms"],
        "host": "h1",
        "token": claim["token"],
        "text": "no process 7 is left",
    }
    plain = await select(api)
    assert (await api.get(f"/v1/claims/{plain['claim_id']}")).json()["on_exit"] == "release"


@pytest.mark.parametrize("on_exit", ["", "restart", None, 7, True])
async def test_what_cannot_become_of_a_claim_is_a_problem(api: httpx.AsyncClient, on_exit: object) -> None:
    check_problem(await api.post("/v1/selections", json={**NEED, "on_exit": on_exit}), 422, "invalid-request")


# Many claims at once


async def three_of_web(api: httpx.AsyncClient) -> list[str]:
    """Place two claims of project web and one of db; return their ids."""
    for name, project in (("a", "web"), ("b", "web"), ("c", "db")):
        await select(api, claim_ids=[name], project=project, resources={"VCPU": 1})
    return ["a", "b", "c"]


async def test_many_claims_are_released_with_a_result_for_each(api: httpx.AsyncClient) -> None:
    await three_of_web(api)
    tried = await api.delete("/v1/claims", params={"project": "web", "dry_run": "true"})
    assert [one["outcome"] for one in tried.json()["results"]] == ["selected", "selected"]
    answer = await api.delete("/v1/claims", params={"project": "web"})
    assert answer.status_code == 200, answer.text
    results = [
        {"claim_id": one, "project": "web", "host": "h1", "state": "claimed", "outcome": "released", "problem": None}
        for one in "ab"
    ]
    assert answer.json() == {"results": results, "next": None, "watch": None}
    assert [one["claim_id"] for one in (await api.get("/v1/claims")).json()["claims"]] == ["c"]


async def test_many_claims_are_renewed_and_shelved(api: httpx.AsyncClient) -> None:
    await three_of_web(api)
    renewed = await api.post("/v1/claims/renew", params={"host": "h1", "lease_s": 3600})
    assert [one["outcome"] for one in renewed.json()["results"]] == ["renewed"] * 3
    shelved = await api.post("/v1/claims/shelve", params={"state": "claimed", "cell": "c1", "limit": 2})
    assert [one["outcome"] for one in shelved.json()["results"]] == ["shelved"] * 2
    rest = await api.post("/v1/claims/shelve", params={"host": "h1", "after": shelved.json()["next"]})
    assert ([one["claim_id"] for one in rest.json()["results"]], rest.json()["next"]) == (["c"], None)
    back = await api.post("/v1/claims/unshelve", params={"project": "web"})
    assert [one["outcome"] for one in back.json()["results"]] == ["unshelved"] * 2


async def test_one_of_many_that_is_refused_has_its_problem(api: httpx.AsyncClient) -> None:
    """An ending claim can be released but not shelved; the response as a whole is 200."""
    claim = await select(api, project="web")
    await verb(api, claim, "confirm")
    await api.delete("/v1/claims", params={"project": "web"})
    answer = await api.post("/v1/claims/shelve", params={"project": "web"})
    assert answer.status_code == 200
    [result] = answer.json()["results"]
    assert (result["outcome"], result["state"], result["problem"]["type"]) == (
        "refused",
        "ending",
        "/problems/claim-state",
    )
    assert result["problem"]["status"] == 409


@pytest.mark.parametrize(
    ("method", "path", "query", "words"),
    [
        ("DELETE", "/v1/claims", {}, "at least one of host, project, consumer, state, zone, cell"),
        ("DELETE", "/v1/claims", {"force": "true"}, "at least one of"),
        ("POST", "/v1/claims/shelve", {"dry_run": "true"}, "at least one of"),
        ("POST", "/v1/claims/renew", {"lease_s": "60"}, "at least one of"),
        ("POST", "/v1/claims/renew", {"project": "web"}, "lease_s"),
        ("POST", "/v1/claims/shelve", {"project": "web", "force": "true"}, "not a known field"),
        ("DELETE", "/v1/claims", {"project": "web", "limit": "1001"}, "limit"),
        ("DELETE", "/v1/claims", {"project": "web", "after": "h1"}, "is not the `next`"),
    ],
)
async def test_what_is_reported_of_many_claims_must_say_of_which(
    api: httpx.AsyncClient, method: str, path: str, query: dict[str, str], words: str
) -> None:
    ids = await three_of_web(api)
    problem = check_problem(await api.request(method, path, params=query), 422, "invalid-request")
    assert words in problem["detail"]
    assert [one["claim_id"] for one in (await api.get("/v1/claims")).json()["claims"]] == ids


async def test_a_cell_that_is_not_there_is_not_found(api: httpx.AsyncClient) -> None:
    for method in ("GET", "DELETE"):
        answer = await api.request(method, "/v1/claims", params={"cell": "other"})
        assert "no cell 'other'" in check_problem(answer, 404, "not-found")["detail"]


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/shelve"), ("POST", "/renew")])
async def test_a_host_that_is_not_there_is_not_found(api: httpx.AsyncClient, method: str, path: str) -> None:
    more = {"lease_s": "60"} if path == "/renew" else {}
    answer = await api.request(method, f"/v1/claims{path}", params={"host": "nonesuch", **more})
    assert "no host 'nonesuch'" in check_problem(answer, 404, "not-found")["detail"]
