"""ETag and If-Match: what was changed since it was read is not overwritten."""

from typing import Any

import httpx
import pytest

from tests.api.parts import check_problem, held, put_host, select

DECLARED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/v1/aggregates/a": ({"metadata": {"ssd": "true"}}, {"metadata": {"ssd": "false"}}),
    "/v1/server-groups/a": ({"policy": "affinity"}, {"policy": "anti-affinity"}),
    "/v1/shared-pools/a": (
        {"inventories": {"CUSTOM_SEAT": {"total": 3}}},
        {"inventories": {"CUSTOM_SEAT": {"total": 4}}},
    ),
    "/v1/quotas/a": ({"limits": {"VCPU": 4}}, {"limits": {"VCPU": 5}}),
}
ACTIONS = ("enable", "disable", "drain", "write-off")


@pytest.mark.parametrize("path", DECLARED)
async def test_a_declaration_changes_only_under_its_present_etag(
    api: httpx.AsyncClient, clean_store: str, path: str
) -> None:
    first, second = DECLARED[path]
    old = (await api.put(path, json=first)).headers["etag"]
    assert (await api.get(path)).headers["etag"] == old
    changed = await api.put(path, json=second, headers={"If-Match": f'"other", {old}'})
    new = changed.headers["etag"]
    assert changed.status_code == 200
    assert new != old
    before = held(clean_store)
    for stale in (old, f"W/{new}", '"other"'):
        refused = await api.put(path, json=first, headers={"If-Match": stale})
        assert new in check_problem(refused, 412, "precondition-failed")["detail"]
        check_problem(await api.delete(path, headers={"If-Match": stale}), 412, "precondition-failed")
    assert held(clean_store) == before
    assert (await api.delete(path, headers={"If-Match": new})).status_code == 204


@pytest.mark.parametrize("path", DECLARED)
async def test_a_precondition_on_what_is_not_there_fails(api: httpx.AsyncClient, clean_store: str, path: str) -> None:
    """Even `*`, which any state of a thing satisfies."""
    before = held(clean_store)
    for tag in ("*", '"a"'):
        answer = await api.put(path, json=DECLARED[path][0], headers={"If-Match": tag})
        check_problem(answer, 412, "precondition-failed")
    assert held(clean_store) == before
    await api.put(path, json=DECLARED[path][0])
    assert (await api.put(path, json=DECLARED[path][1], headers={"If-Match": "*"})).status_code == 200


@pytest.mark.parametrize("action", ACTIONS)
async def test_an_action_on_a_host_is_refused_under_an_old_etag(
    api: httpx.AsyncClient, clean_store: str, action: str
) -> None:
    """Reports and claims do not change it: an agent that reports is no reason to refuse an operator."""
    old = (await api.get("/v1/hosts/h1")).headers["etag"]
    await select(api)
    await put_host(api, "h1", zone="az2")
    assert (await api.get("/v1/hosts/h1")).headers["etag"] == old
    assert (await api.post("/v1/hosts/h1/drain", headers={"If-Match": old})).status_code == 204
    new = (await api.get("/v1/hosts/h1")).headers["etag"]
    before = held(clean_store)
    body = {"force": True} if action == "write-off" else None
    path = f"/v1/hosts/h1/{action}"
    check_problem(await api.post(path, json=body, headers={"If-Match": old}), 412, "precondition-failed")
    check_problem(await api.delete("/v1/hosts/h1", headers={"If-Match": old}), 412, "precondition-failed")
    assert held(clean_store) == before
    assert (await api.post(path, json=body, headers={"If-Match": new})).status_code == 204


async def test_a_header_that_is_no_etag_is_422(api: httpx.AsyncClient) -> None:
    check_problem(await api.put("/v1/aggregates/a", json={}, headers={"If-Match": "abc"}), 422, "invalid-request")
    answer = await api.put("/v1/aggregates/a%20b", json={}, headers={"If-Match": "*"})
    check_problem(answer, 422, "invalid-request")


async def test_a_bad_request_is_told_so_before_its_precondition(api: httpx.AsyncClient) -> None:
    """RFC 9110, 13.2.1: If-Match matters only where the request would succeed without it."""
    stale = {"If-Match": '"other"'}
    for path in DECLARED:
        check_problem(await api.put(path, json={"nix": 1}, headers=stale), 422, "invalid-request")
        check_problem(await api.delete(f"{path}?nix=1", headers=stale), 422, "invalid-request")
