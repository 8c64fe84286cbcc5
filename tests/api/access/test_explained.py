"""What tenants and operators learn of the hosts that nearly fit, and of the claims in the way there."""

from collections.abc import Mapping
from typing import Any

import pytest

from redsched.operations.operation import json_value
from tests.api.access.parts import Callers, put_host
from tests.support.fleets.gpu_lab import GPU, reports

FOUR = {"groups": [{"name": f"g{number}", "resources": {GPU: 1000}} for number in range(4)]}
ONE = {"resources": {}, "groups": FOUR["groups"][:1]}
TWO_THOUSAND = {"resources": {GPU: 2000}}


@pytest.fixture
async def lab(api: Callers) -> Callers:
    """Return the callers of an API with one box, whose GPUs 0 to 2 web, db and db have claimed, and two machines."""
    for one in reports(boxes=1, machines=2):
        await put_host(api, one.name, labels={}, metrics={}, traits=[], external={}, **_body(json_value(one)))
    for claim_id, project in (("web-1", "web"), ("db-1", "db"), ("db-2", "db")):
        await api.claim(claim_id, project, **ONE)
    return api


def _body(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("inventories", "pools") if name in body}


async def nearest(lab: Callers, who: str, request: Mapping[str, Any], path: str = "/v1/explain") -> dict[str, Any]:
    asked = {**request, "project": "web"}
    found = (await lab.send(who, "POST", path, json=asked)).json()
    [miss] = found["nearest"]
    return dict(miss)


@pytest.mark.parametrize("who", ["operator", "reader", "web", "web-sees"])
@pytest.mark.parametrize("path", ["/v1/explain", "/v1/selections"])
async def test_needs_free_and_changes_are_filled_for_every_caller(lab: Callers, who: str, path: str) -> None:
    dry_run = {"claim": False} if path == "/v1/selections" else {}
    miss = await nearest(lab, who, {**FOUR, **dry_run}, path)
    assert (miss["needs"], miss["free"]) == ({GPU: 4000}, {GPU: 1000})
    assert miss["changes"] == ["without groups g1, g2, g3"]
    await lab.done("operator", "DELETE", "/v1/claims/db-2?force=true")
    miss = await nearest(lab, who, {**TWO_THOUSAND, **dry_run}, path)
    assert (miss["needs"], miss["free"]) == ({GPU: 2000}, {GPU: 1000})
    assert miss["changes"] == [f"2000 {GPU} as 2 groups of 1000, because no place of it has more than 1000"]


@pytest.mark.parametrize(
    ("who", "ids", "others"),
    [
        ("operator", ["db-1", "db-2", "web-1"], None),
        ("reader", ["db-1", "db-2", "web-1"], None),
        ("both", ["db-1", "db-2", "web-1"], None),
        ("web", ["web-1"], 2),
        ("web-sees", ["web-1"], 2),
    ],
)
async def test_a_tenant_gets_its_own_claims_in_the_way_and_the_number_of_the_others(
    lab: Callers, who: str, ids: list[str], others: int | None
) -> None:
    """That it sees hosts tells it no claims of others."""
    miss = await nearest(lab, who, FOUR)
    assert sorted(one["claim_id"] for one in miss["claims"]) == ids
    assert miss.get("other_claims") == others


@pytest.mark.parametrize("who", ["web", "web-sees"])
async def test_the_one_claim_in_the_way_is_named_to_its_own_project_alone(lab: Callers, who: str) -> None:
    for claim_id in ("web-1", "db-1"):
        await lab.done("operator", "DELETE", f"/v1/claims/{claim_id}?force=true")
    miss = await nearest(lab, who, FOUR)
    assert ("after" in miss, "claims" in miss, miss["other_claims"]) == (False, False, 1)
    await lab.done("operator", "DELETE", "/v1/claims/db-2?force=true")
    await lab.claim("web-2", "web", **ONE)
    miss = await nearest(lab, who, FOUR)
    assert (miss["after"], miss["claims"]) == ("web-2", [{"claim_id": "web-2", "project": "web"}])
    assert "other_claims" not in miss
