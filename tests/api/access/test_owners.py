"""Owners: a claim is its owner's, and other callers of the project cannot change it unless they are project-wide."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from redsched.settings import Settings
from tests.api.access.parts import VERBS, Callers, bearer, callers, put_host, token_file
from tests.api.parts import check_problem, client_of, held, put_host as put
from tests.support.waiting import wait_until

WEB: dict[str, Any] = {"role": "tenant", "projects": ["web"]}
OWN: dict[str, Any] = {**WEB, "project_wide": False}
ASKED: dict[str, Any] = {"resources": {"VCPU": 1}, "project": "web", "lease_s": 3600}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with tokens of alice, who has two, and of bob, of their lead, and one made by an older release."""
    own = {"alice": OWN, "alice-2": {**OWN, "owner": "alice"}, "bob": OWN, "lead": {**WEB, "project_wide": True}}
    return token_file(tmp_path_factory.mktemp("owners"), **own, old=WEB)


@pytest.fixture
async def api(clean_store: str, tokens: Path) -> AsyncIterator[Callers]:
    """Yield the callers of an API over a store with h1."""
    async with callers(clean_store, tokens) as found:
        await put_host(found, "h1")
        yield found


async def claim(api: Callers, who: str, claim_id: str, **more: Any) -> str:
    """Claim as a caller, and return the token of the claim."""
    found = await api.done(who, "POST", "/v1/selections", json={**ASKED, "claim_ids": [claim_id], **more})
    return str(found["selections"][0]["token"])


async def is_recorded(api: Callers, who: str, text: str) -> bool:
    """Return whether the events that a caller sees have a text: recorders are behind for a moment."""
    return text in (await api.send(who, "GET", "/v1/events?claim=a")).text


async def owner_of(api: Callers, claim_id: str) -> str:
    return str((await api.done("reader", "GET", f"/v1/claims/{claim_id}"))["owner"])


@pytest.mark.parametrize(
    ("who", "owner"), [("alice", "alice"), ("alice-2", "alice"), ("lead", "lead"), ("operator", "operator")]
)
async def test_who_claims_owns_the_claim(api: Callers, who: str, owner: str) -> None:
    await claim(api, who, "a")
    assert await owner_of(api, "a") == owner


async def test_operators_claim_for_others(api: Callers) -> None:
    await claim(api, "operator", "a", owner="alice")
    assert await owner_of(api, "a") == "alice"


@pytest.mark.parametrize("who", ["alice", "alice-2", "lead", "old"])
async def test_a_tenant_does_not_claim_for_others(api: Callers, clean_store: str, who: str) -> None:
    """Not even one that is project-wide. It may name itself."""
    before = held(clean_store)
    asked = {**ASKED, "owner": "bob"}
    assert (
        "'bob'" in check_problem(await api.send(who, "POST", "/v1/selections", json=asked), 403, "forbidden")["detail"]
    )
    assert held(clean_store) == before
    await claim(api, "alice", "a", owner="alice")


async def change(api: Callers, who: str, verb: str, claim_id: str, token: str) -> httpx.Response:
    """Send a verb for one claim with its right token."""
    path = f"/v1/claims/{claim_id}"
    if verb.startswith("release"):
        return await api.send(who, "DELETE", f"{path}?token={token}" if verb == "release-token" else path)
    body = {"json": {"token": token, **VERBS[verb]}} if verb in VERBS else {}
    return await api.send(who, "POST", f"{path}/{verb}", **body)


@pytest.mark.parametrize("verb", [*VERBS, "unshelve", "release", "release-token"])
async def test_no_verb_changes_the_claim_of_another(api: Callers, clean_store: str, verb: str) -> None:
    """The refusal says whose it is and what to ask for. The owner's second token, a lead and older tokens may."""
    await put_host(api, "h2")
    token = await claim(api, "alice", "a")
    if verb == "unshelve":
        await api.done("alice", "POST", "/v1/claims/a/shelve", json={"token": token})
    before = held(clean_store)
    problem = check_problem(await change(api, "bob", verb, "a", token), 403, "forbidden")
    assert (problem["claim_id"], problem["owner"]) == ("a", "alice")
    assert "belongs to 'alice'" in problem["detail"]
    assert "project-wide" in problem["detail"]
    assert held(clean_store) == before
    assert (await change(api, "alice-2", verb, "a", token)).is_success


@pytest.mark.parametrize("who", ["lead", "old", "operator"])
async def test_project_wide_tokens_and_operators_change_all(api: Callers, who: str) -> None:
    """A token from before claims had owners goes on to do what it could."""
    await claim(api, "alice", "a")
    assert (await api.send(who, "DELETE", "/v1/claims/a")).status_code == 204


@pytest.mark.parametrize(("who", "reason"), [("lead", "released by lead"), ("alice", None)])
async def test_a_claim_says_who_has_released_it(api: Callers, who: str, reason: str | None) -> None:
    """So does its event, unless its owner did it."""
    await claim(api, "alice", "a")
    await api.done(who, "DELETE", "/v1/claims/a")
    assert (await api.done("alice", "GET", "/v1/claims/a"))["closed_by"] == who
    found: list[dict[str, Any]] = []

    async def is_recorded() -> bool:
        found[:] = (await api.done("alice", "GET", "/v1/claims/a/events"))["events"]
        return any(one["kind"] == "released" for one in found)

    await wait_until(is_recorded, what="the release is recorded")
    assert [one.get("reason") for one in found if one["kind"] == "released"] == [reason]


async def test_everybody_of_the_project_changes_what_nobody_owns(api: Callers, clean_store: str) -> None:
    """As claims from before there were owners."""
    for claim_id in ("a", "b"):
        await claim(api, "alice", claim_id)
    with redis.Redis.from_url(clean_store, protocol=2) as client:
        for claim_id in ("a", "b"):
            assert client.hdel(f"rs:{{c1}}:claim:{claim_id}", "owner") == 1
    assert (await api.send("bob", "DELETE", "/v1/claims/a")).status_code == 204
    found = await api.done("bob", "DELETE", "/v1/claims?project=web")
    assert [one["claim_id"] for one in found["results"]] == ["b"]


async def test_agents_act_on_the_claims_on_their_hosts_as_before(api: Callers) -> None:
    token = await claim(api, "alice", "a")
    await api.done("of-h1", "POST", "/v1/claims/a/confirm", json={"token": token})


async def test_all_of_a_project_see_its_claims_and_their_owners(api: Callers) -> None:
    """And nobody else: to another project the claim is unknown, and so is its owner."""
    await claim(api, "alice", "a")
    assert (await api.done("bob", "GET", "/v1/claims/a"))["owner"] == "alice"
    await wait_until(lambda: is_recorded(api, "bob", "alice"))
    for path in ("/v1/claims", "/v1/claims/a", "/v1/events", "/v1/claims/a/events"):
        assert "alice" not in (await api.send("db", "GET", path)).text
    refused = await api.send("db", "DELETE", "/v1/claims/a")
    assert (refused.status_code, "alice" in refused.text) == (404, False)
    reused = await api.send("db", "POST", "/v1/selections", json={**ASKED, "project": "db", "claim_ids": ["a"]})
    assert (reused.status_code, "alice" in reused.text) == (422, False)


async def test_a_payload_is_shown_to_the_owner_and_to_leads(api: Callers) -> None:
    """It may have arguments of a job that are nobody else's business."""
    token = await claim(api, "alice", "a", payload={"argv": ["train"]})
    await wait_until(lambda: is_recorded(api, "alice", "claimed"))
    for who, shown in (("alice", {"argv": ["train"]}), ("bob", None), ("lead", {"argv": ["train"]})):
        assert (await api.done(who, "GET", "/v1/claims/a"))["payload"] == shown
        assert ("train" in (await api.send(who, "GET", "/v1/events?claim=a")).text) is False
    await api.done("of-h1", "POST", "/v1/claims/a/confirm", json={"token": token})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/claims?project=web"),
        ("POST", "/v1/claims/renew?project=web&lease_s=9"),
        ("POST", "/v1/claims/shelve?project=web"),
        ("POST", "/v1/claims/unshelve?project=web"),
    ],
)
async def test_bulk_verbs_leave_claims_of_others_alone(api: Callers, clean_store: str, method: str, path: str) -> None:
    """And refuse a filter that names another owner."""
    for who in ("alice", "bob"):
        token = await claim(api, who, f"of-{who}")
        if "unshelve" in path:
            await api.done(who, "POST", f"/v1/claims/of-{who}/shelve", json={"token": token})
    before = held(clean_store)
    refused = check_problem(await api.send("bob", method, f"{path}&owner=alice"), 403, "forbidden")
    assert "'alice'" in refused["detail"]
    assert held(clean_store) == before
    for who, changed in (("bob", ["of-bob"]), ("lead", ["of-alice", "of-bob"])):
        found = await api.done(who, method, f"{path}&dry_run=true")
        assert [one["claim_id"] for one in found["results"]] == changed
        assert found.get("of_others", 0) == 2 - len(changed)
    found = await api.done("bob", method, path)
    assert [one["claim_id"] for one in found["results"]] == ["of-bob"]
    key = b"rs:{c1}:claim:of-alice"
    assert held(clean_store)[key] == before[key]


async def test_claims_that_still_end_are_listed_within_what_was_changed(api: Callers) -> None:
    for who in ("alice", "bob"):
        token = await claim(api, who, f"of-{who}")
        await api.done("of-h1", "POST", f"/v1/claims/of-{who}/confirm", json={"token": token})
    await api.done("alice", "DELETE", "/v1/claims/of-alice")
    found = await api.done("bob", "DELETE", "/v1/claims?project=web")
    ending = await api.done("bob", "GET", found["watch"])
    assert [one["claim_id"] for one in ending["claims"]] == ["of-bob"]


async def test_lists_are_filtered_by_owner(api: Callers) -> None:
    for who in ("alice", "bob", "lead"):
        await claim(api, who, f"of-{who}")

    async def listed(who: str, query: str) -> list[str]:
        found = await api.done(who, "GET", f"/v1/claims?{query}")
        return [one["claim_id"] for one in found["claims"]]

    assert await listed("alice", "") == ["of-alice", "of-bob", "of-lead"]
    assert await listed("alice", "owner=@me") == await listed("alice-2", "owner=@me") == ["of-alice"]
    assert await listed("operator", "owner=alice&owner=bob") == ["of-alice", "of-bob"]
    assert await listed("operator", "owner=") == []
    assert await listed("db", "owner=alice") == []


async def test_a_repeated_request_gets_no_claims_of_others(api: Callers, clean_store: str) -> None:
    """Otherwise one who goes away before they are active would end them. A lead gets them."""
    asked = {**ASKED, "claim_ids": ["a"], "until": "active", "confirm_timeout_s": 1}
    token = await claim(api, "alice", "a")
    await api.done("alice", "POST", "/v1/claims/a/confirm", json={"token": token})
    before = held(clean_store)
    problem = check_problem(await api.send("bob", "POST", "/v1/selections", json=asked), 403, "forbidden")
    assert (problem["claim_id"], problem["owner"]) == ("a", "alice")
    assert held(clean_store) == before
    for who in ("alice", "alice-2", "lead", "operator"):
        found = await api.send(who, "POST", "/v1/selections", json=asked)
        assert (found.status_code, found.json()["selections"][0]["token"]) == (200, token)


async def test_a_request_that_waited_gets_no_claims_of_others(api: Callers) -> None:
    """Both wait with the same id; the place goes to the first."""
    await api.claim("full", "db", resources={"VCPU": 8})
    asked = {**ASKED, "claim_ids": ["a"], "queue_timeout_s": 60}
    alice = asyncio.create_task(api.send("alice", "POST", "/v1/selections", json=asked))
    waiting = api.client._transport.app.state.scheduler._selector._waiting  # type: ignore[attr-defined]
    await wait_until(lambda: len(waiting) == 1)
    bob = asyncio.create_task(api.send("bob", "POST", "/v1/selections", json=asked))
    await wait_until(lambda: len(waiting) == 2)
    await api.done("operator", "DELETE", "/v1/claims/full")
    assert (await alice).status_code == 201
    check_problem(await bob, 403, "forbidden")
    assert await owner_of(api, "a") == "alice"


async def test_the_members_of_a_gang_have_one_owner(api: Callers, clean_store: str) -> None:
    gang = {"members": [{"name": "a", "count": 2, "resources": {"VCPU": 1}}], "project": "web"}
    found = await api.done("alice", "POST", "/v1/selections", json={**gang, "claim_ids": ["a1", "a2"]})
    before = held(clean_store)
    for one in found["selections"]:
        assert await owner_of(api, one["claim_id"]) == "alice"
        check_problem(await change(api, "bob", "fail", one["claim_id"], one["token"]), 403, "forbidden")
    assert held(clean_store) == before


async def test_idempotency_keys_of_two_owners_do_not_meet(api: Callers) -> None:
    """Those of project-wide tokens are of the project, as before."""

    async def selected(who: str) -> str:
        headers = [*bearer(who), ("Idempotency-Key", "job-1")]
        answer = await api.client.post("/v1/selections", json=ASKED, headers=headers)
        assert answer.is_success, answer.text
        return str(answer.json()["selections"][0]["claim_id"])

    alice = await selected("alice")
    assert await selected("alice-2") == alice
    assert await selected("bob") != alice
    assert await selected("lead") == await selected("old") != alice


async def test_the_owner_stays_when_a_claim_moves_and_is_shelved(api: Callers, clean_store: str) -> None:
    token = await claim(api, "alice", "a")
    await api.done("of-h1", "POST", "/v1/claims/a/confirm", json={"token": token})
    await put_host(api, "h2")
    await api.done("operator", "POST", "/v1/claims/a/move", json={"token": token})
    assert await owner_of(api, "a") == "alice"
    await api.done("alice", "DELETE", "/v1/claims/a")
    token = await claim(api, "alice", "b")
    await api.done("operator", "POST", "/v1/claims/b/shelve", json={"token": token})
    assert await owner_of(api, "b") == "alice"
    await api.done("operator", "POST", "/v1/claims/b/unshelve")
    with redis.Redis.from_url(clean_store, protocol=2, decode_responses=True) as client:
        assert client.hget("rs:{c1}:claim:b", "owner") == "alice"


async def test_without_authentication_nobody_owns_claims_and_nobody_is_me(clean_store: str) -> None:
    async with client_of(Settings(redis_url=clean_store), is_new=True) as client:
        await put(client, "h1")
        assert (await client.post("/v1/selections", json={**ASKED, "claim_ids": ["a"]})).status_code == 201
        assert (await client.get("/v1/claims/a")).json()["owner"] == ""
        problem = check_problem(await client.get("/v1/claims?owner=@me"), 422, "invalid-request")
        assert "nobody is known here: name the owner" in problem["detail"]
