"""GET /v1/capacity for tenants: what is free to their projects, within their quotas, and no names of hosts."""

from typing import Any

import pytest

from tests.api.access.parts import Callers, put_host
from tests.api.parts import check_problem

NOTHING = {"external": 0, "kept": 0, "away": 0, "largest_at": ""}


async def rows(api: Callers, who: str, query: str = "") -> dict[str, dict[str, Any]]:
    """Return the classes of each row, by its name."""
    found = await api.done(who, "GET", f"/v1/capacity{query}")
    return {row["name"]: row["classes"] for row in found["capacity"]}


@pytest.fixture
async def fleet(api: Callers) -> Callers:
    """Return callers of a fleet of h1 with 8 VCPU, and h2 with 16, which is kept for db; web and db have claims."""
    for host, vcpu in (("h1", 8), ("h2", 16)):
        await put_host(api, host, inventories={"VCPU": {"total": vcpu}}, pools={}, external={})
    kept = {"metadata": {"filter_tenant_id": "db"}, "hosts": ["h2"]}
    await api.done("operator", "PUT", "/v1/aggregates/kept", json=kept)
    for project, consumer, vcpu in (("web", "ci", 3), ("db", "ci", 1), ("web", "train", 1)):
        asked = {"resources": {"VCPU": vcpu}, "project": project, "consumer": consumer, "hosts": ["h1"]}
        await api.done("operator", "POST", "/v1/selections", json=asked)
    return api


async def test_it_has_the_hosts_that_the_project_may_use(fleet: Callers) -> None:
    """Without a quota, free is what is left there."""
    vcpu = {"total": 8, "claimed": 4, "free": 3, "largest": 3, **NOTHING}
    assert await rows(fleet, "web") == {"web": {"VCPU": vcpu}}
    found = await rows(fleet, "both")
    assert found == {
        "web": {"VCPU": vcpu},
        "db": {"VCPU": {**vcpu, "total": 24, "claimed": 1, "free": 19, "largest": 16}},
    }


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"VCPU": 6}, {"total": 6, "free": 2, "largest": 2}),
        ({"VCPU": 4}, {"total": 4, "free": 0, "largest": 0}),
        ({"VCPU": 3}, {"total": 3, "free": 0, "largest": 0}),
        ({"VCPU": 100}, {"total": 8, "free": 3, "largest": 3}),
        ({"claims": 2}, {"total": 8, "free": 0, "largest": 0}),
        ({"claims": 3}, {"total": 8, "free": 3, "largest": 3}),
    ],
)
async def test_it_stays_within_the_quota(fleet: Callers, limits: dict[str, int], expected: dict[str, int]) -> None:
    await fleet.done("operator", "PUT", "/v1/quotas/web", json={"limits": limits})
    assert await rows(fleet, "web") == {"web": {"VCPU": {"claimed": 4, **NOTHING, **expected}}}


async def test_a_tenant_sums_its_own_claims_by_consumer(fleet: Callers) -> None:
    claimed = {name: one["VCPU"]["claimed"] for name, one in (await rows(fleet, "web", "?by=consumer")).items()}
    assert claimed == {"ci": 3, "train": 1}
    claimed = {name: one["VCPU"]["claimed"] for name, one in (await rows(fleet, "reader", "?by=consumer")).items()}
    assert claimed == {"ci": 4, "train": 1}


@pytest.mark.parametrize("by", ["zone", "aggregate"])
async def test_a_tenant_does_not_see_parts_of_the_fleet(fleet: Callers, by: str) -> None:
    found = check_problem(await fleet.send("web", "GET", f"/v1/capacity?by={by}"), 403, "forbidden")
    assert "sum by project or consumer" in found["detail"]
    assert (await rows(fleet, "reader", f"?by={by}")).keys()


async def test_others_see_the_fleet_with_hosts(fleet: Callers) -> None:
    [everything] = (await rows(fleet, "reader")).values()
    assert (everything["VCPU"]["total"], everything["VCPU"]["largest_at"]) == (24, "h2")
    check_problem(await fleet.send("of-h1", "GET", "/v1/capacity"), 403, "forbidden")
