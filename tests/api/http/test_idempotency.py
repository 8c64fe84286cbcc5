"""Idempotency-Key: the same key gives the same claims."""

from typing import Any

import httpx
import pytest

from tests.api.parts import NEED, check_problem, held


async def _post(api: httpx.AsyncClient, key: str, **changed: Any) -> httpx.Response:
    return await api.post("/v1/selections", json={**NEED, **changed}, headers={"Idempotency-Key": key})


async def test_the_same_key_claims_once(api: httpx.AsyncClient) -> None:
    """A retry gets 200 with the same claims; another key makes another claim."""
    first = await _post(api, "order-1", count=2)
    again = await _post(api, "order-1", count=2)
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert again.json() == first.json()
    other = await _post(api, "order-2")
    ids = [one["claim_id"] for answer in (first, other) for one in answer.json()["selections"]]
    assert len(set(ids)) == 3
    assert len((await api.get("/v1/claims")).json()["claims"]) == 3


async def test_every_member_of_a_gang_has_an_id_of_the_key(api: httpx.AsyncClient) -> None:
    members = [{"name": "db", "count": 2, "resources": {"VCPU": 1}}, {"name": "web", "resources": {"VCPU": 1}}]
    gang, headers = {"members": members}, {"Idempotency-Key": "gang"}
    first = await api.post("/v1/selections", json=gang, headers=headers)
    again = await api.post("/v1/selections", json=gang, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200), again.text
    assert len({one["claim_id"] for one in first.json()["selections"]}) == 3
    assert again.json() == first.json()


async def test_a_key_of_another_request_is_refused(api: httpx.AsyncClient, clean_store: str) -> None:
    await _post(api, "order-1")
    before = held(clean_store)
    check_problem(await _post(api, "order-1", project="web"), 422, "claim-id-reused")
    assert held(clean_store) == before


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e4"])
async def test_a_bad_key_claims_nothing(api: httpx.AsyncClient, clean_store: str, key: str) -> None:
    before = held(clean_store)
    headers = [(b"Idempotency-Key", key.encode())]
    check_problem(await api.post("/v1/selections", json=NEED, headers=headers), 422, "invalid-request")
    assert held(clean_store) == before


async def test_two_ways_to_give_ids_are_refused(api: httpx.AsyncClient, clean_store: str) -> None:
    """Two keys are refused as well."""
    before = held(clean_store)
    check_problem(await _post(api, "a", claim_ids=["c"]), 422, "invalid-request")
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    check_problem(await api.post("/v1/selections", json=NEED, headers=headers), 422, "invalid-request")
    assert held(clean_store) == before
