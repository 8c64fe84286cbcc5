"""Quotas over HTTP: declared, used, exceeded with the numbers; and the usage of all claims."""

from typing import Any

import httpx
import pytest

from tests.api.parts import check_problem, put_host

LIMITS = {"limits": {"VCPU": 6, "claims": 2}}

BAD: dict[str, dict[str, Any]] = {
    "no limits": {},
    "limits empty": {"limits": {}},
    "class unknown": {"limits": {"SEATS": 1}},
    "limit negative": {"limits": {"VCPU": -1}},
    "limit too large": {"limits": {"VCPU": 2**53}},
    "limit a text": {"limits": {"VCPU": "6"}},
    "unknown field": {**LIMITS, "zone": "az1"},
}


async def select(api: httpx.AsyncClient, vcpu: int, project: str = "web", **more: Any) -> httpx.Response:
    return await api.post("/v1/selections", json={"resources": {"VCPU": vcpu}, "project": project, **more})


async def test_declared_shown_changed_and_taken_back(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/quotas/web"), 404, "not-found")
    made = await api.put("/v1/quotas/web", json=LIMITS)
    assert (made.status_code, made.json()) == (201, {"project": "web", **LIMITS, "used": {"VCPU": 0, "claims": 0}})
    changed = await api.put("/v1/quotas/web", json={"limits": {"claims": 1}})
    assert (changed.status_code, changed.json()["limits"]) == (200, {"claims": 1})
    assert (await api.get("/v1/quotas")).json() == {"quotas": [changed.json()], "next": None}
    assert (await api.delete("/v1/quotas/web")).status_code == 204
    check_problem(await api.delete("/v1/quotas/web"), 404, "not-found")


async def test_what_exceeds_it_is_refused_with_the_numbers(api: httpx.AsyncClient) -> None:
    """Dry runs are refused too; after a release the amounts can be claimed again."""
    await put_host(api, "h1")
    await api.put("/v1/quotas/web", json=LIMITS)
    made = await select(api, 5)
    assert made.status_code == 201, made.text
    for claim in (True, False):
        problem = check_problem(await select(api, 2, claim=claim), 403, "quota-exceeded")
        assert problem["project"] == "web"
        assert problem["exceeded"] == [{"resource": "VCPU", "limit": 6, "used": 5, "asked": 2}]
    assert (await select(api, 2, "other")).status_code == 201
    claim_id = made.json()["selections"][0]["claim_id"]
    assert (await api.delete(f"/v1/claims/{claim_id}")).status_code == 204
    assert (await select(api, 6)).status_code == 201
    assert (await api.get("/v1/quotas/web")).json()["used"] == {"VCPU": 6, "claims": 1}


@pytest.mark.parametrize("case", BAD)
async def test_bad_limits_declare_nothing(api: httpx.AsyncClient, case: str) -> None:
    check_problem(await api.put("/v1/quotas/web", json=BAD[case]), 422, "invalid-request")
    check_problem(await api.get("/v1/quotas/web"), 404, "not-found")


async def test_usage_is_summed_by_what_is_asked_for(api: httpx.AsyncClient) -> None:
    """It covers all projects, with or without a quota."""
    await put_host(api, "h1", zone="az1")
    await put_host(api, "h2", zone="az2")
    for host, project, vcpu in (("h1", "web", 2), ("h2", "web", 1), ("h2", "db", 3)):
        assert (await select(api, vcpu, project, hosts=[host])).status_code == 201
    both = (await api.get("/v1/usage?by=class,zone,project")).json()["usage"]
    assert both == [
        {"zone": "az1", "project": "web", "used": {"VCPU": 2, "claims": 1}},
        {"zone": "az2", "project": "db", "used": {"VCPU": 3, "claims": 1}},
        {"zone": "az2", "project": "web", "used": {"VCPU": 1, "claims": 1}},
    ]
    by_project = (await api.get("/v1/usage?by=project")).json()["usage"]
    assert by_project == [{"project": "db", "used": {"claims": 1}}, {"project": "web", "used": {"claims": 2}}]
    assert (await api.get("/v1/usage")).json() == {"usage": [{"used": {"VCPU": 6, "claims": 3}}]}
    for bad in ("by=host", "by=", "by=class;zone", "of=class"):
        check_problem(await api.get(f"/v1/usage?{bad}"), 422, "invalid-request")
