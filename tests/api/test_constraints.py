"""Every field of a request over REST reaches the decision, on hosts and declared objects created over REST."""

from typing import Any

import httpx
import pytest

from tests.api.parts import check_problem, put_host

GPU = {"inventories": {"CUSTOM_GPU_MILLI": {"total": 1000}}, "traits": ["CUSTOM_GPU_T4"]}
NODE = {"inventories": {"VCPU": {"total": 4}, "PCPU": {"total": 4}, "MEMORY_MB": {"total": 4096}}}
PLACE = {"resources": {"VCPU": 1}}


@pytest.fixture
async def fleet(empty_api: httpx.AsyncClient) -> httpx.AsyncClient:
    """Report h1 and h2 in az1, h3 in az2, 8 VCPU each. h1 is in aggregate ssd, h2 in fast, and h3 has pools."""
    for number, zone in ((1, "az1"), (2, "az1"), (3, "az2")):
        labels = {"rack": f"r{number}", "cores": str(8 * number), "ip": f"10.0.{number}.1"}
        await put_host(
            empty_api,
            f"h{number}",
            zone=zone,
            labels=labels,
            traits=[f"CUSTOM_T{number}"],
            external={},
            inventories={"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16_384}},
            pools={
                "numa0": NODE,
                "numa1": NODE,
                "gpu0": {**GPU, "parent": "numa0"},
                "gpu1": {**GPU, "parent": "numa1"},
                "nic0": {"parent": "numa1", "inventories": {"CUSTOM_NIC": {"total": 2}}},
            }
            if number == 3
            else {},
        )
    for name, host in (("ssd", "h1"), ("fast", "h2")):
        answer = await empty_api.put(f"/v1/aggregates/{name}", json={"metadata": {"disk": name}, "hosts": [host]})
        assert answer.status_code == 201, answer.text
    return empty_api


async def selected(api: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    """Select and claim; return the selections."""
    answer = await api.post("/v1/selections", json=body)
    assert answer.status_code == 201, answer.text
    return list(answer.json()["selections"])


ONLY: dict[str, tuple[dict[str, Any], str]] = {
    "member_of one": ({"member_of": "ssd"}, "h1"),
    "member_of a list": ({"member_of": ["fast", "ssd"], "exclude_hosts": ["h1"]}, "h2"),
    "member_of lists": ({"member_of": [["ssd", "fast"], ["fast"]]}, "h2"),
    "not_member_of": ({"not_member_of": ["ssd", "fast"]}, "h3"),
    "not_member_of one": ({"not_member_of": "ssd", "zone": "az1"}, "h2"),
    "aggregate_metadata": ({"aggregate_metadata": {"disk": "ssd"}}, "h1"),
    "label operator": ({"labels": {"cores": ">= 24"}}, "h3"),
    "label in": ({"labels": {"rack": "<in> 2"}}, "h2"),
    "query": ({"query": ["and", ["=", "$label.rack", "r2"], [">=", "$free.VCPU", 1]]}, "h2"),
    "near": ({"hints": {"build_near_host_ip": "10.0.1.77", "cidr": "/24"}}, "h1"),
    "root_required": ({"root_required": ["CUSTOM_T2"]}, "h2"),
    "root_forbidden": ({"root_forbidden": ["CUSTOM_T1", "CUSTOM_T3"]}, "h2"),
    "a trait in a pool": ({"resources": {"CUSTOM_GPU_MILLI": 100}, "required": ["CUSTOM_GPU_T4"]}, "h3"),
}


@pytest.mark.parametrize(("constraint", "host"), ONLY.values(), ids=ONLY)
async def test_a_constraint_leaves_one_host(fleet: httpx.AsyncClient, constraint: dict[str, Any], host: str) -> None:
    """Explain counts the same single host."""
    [found] = await selected(fleet, **{**PLACE, **constraint})
    assert found["host"] == host
    explained = (await fleet.post("/v1/explain", json={**PLACE, **constraint})).json()
    assert (explained["hosts"], explained["fits"]) == (3, 1), explained


async def test_groups_come_from_one_pool_each_and_the_answer_names_them(fleet: httpx.AsyncClient) -> None:
    groups = [
        {"name": "accel", "resources": {"CUSTOM_GPU_MILLI": 700}, "required": ["CUSTOM_GPU_T4"]},
        {"name": "cpus", "resources": {"PCPU": 2}},
    ]
    subtree = [["accel", "cpus"]]
    [found] = await selected(fleet, groups=groups, group_policy="isolate", same_subtree=subtree, claim_ids=["mine"])
    gpu, cpus = sorted(found["slots"])
    assert (gpu, cpus) in {("gpu0/CUSTOM_GPU_MILLI", "numa0/PCPU"), ("gpu1/CUSTOM_GPU_MILLI", "numa1/PCPU")}
    assert found["slots"] == {gpu: 700, cpus: 2}
    assert (await fleet.get("/v1/claims/mine")).json()["slots"] == found["slots"]
    slot = (await fleet.get("/v1/hosts/h3")).json()["slots"][gpu]
    assert (slot["claimed"], slot["free"]) == (700, 300)


async def test_guest_numa_beside_a_device(fleet: httpx.AsyncClient) -> None:
    """The guest's only NUMA cell is placed on the node of the device."""
    numa = {"cells": [{"cpus": 2, "memory_mb": 1024}], "policy": "dedicated"}
    [found] = await selected(fleet, numa=numa, pci=[{"class": "CUSTOM_NIC", "count": 1, "numa_policy": "required"}])
    assert found["slots"] == {"numa1/PCPU": 2, "numa1/MEMORY_MB": 1024, "nic0/CUSTOM_NIC": 1}


async def test_members_of_a_server_group_are_counted_where_they_are(fleet: httpx.AsyncClient) -> None:
    """Anti-affinity places each on a host of its own, and refuses one too many."""
    await fleet.put("/v1/server-groups/web", json={"policy": "anti-affinity"})
    found = await selected(fleet, **PLACE, server_group="web", count=2)
    found += await selected(fleet, **PLACE, server_group="web", claim_ids=["third"])
    assert {one["host"] for one in found} == {"h1", "h2", "h3"}
    check_problem(await fleet.post("/v1/selections", json={**PLACE, "server_group": "web"}), 409, "no-valid-host")
    group = (await fleet.get("/v1/server-groups/web")).json()
    assert group["members"] == 3
    assert group["counts"] == {"host": {"h1": 1, "h2": 1, "h3": 1}, "zone": {"az1": 2, "az2": 1}}
    assert (await fleet.get("/v1/claims/third")).json()["server_group"] == "web"
    check_problem(await fleet.put("/v1/server-groups/web", json={"policy": "affinity"}), 409, "claim-state")
    check_problem(await fleet.delete("/v1/server-groups/web"), 409, "claim-state")


@pytest.mark.parametrize("route", ["/v1/selections", "/v1/explain"])
@pytest.mark.parametrize(
    "unknown", [{"server_group": "none"}, {"member_of": "none"}, {"hints": {"same_host": "none"}}], ids=str
)
async def test_what_is_named_and_not_declared_is_404(
    fleet: httpx.AsyncClient, unknown: dict[str, Any], route: str
) -> None:
    found = check_problem(await fleet.post(route, json={**PLACE, **unknown}), 404, "not-found")
    assert "none" in found["detail"]


async def test_places_are_spread_over_zones(fleet: httpx.AsyncClient) -> None:
    found = await selected(fleet, **PLACE, count=4, spread=[{"by": "zone", "max_skew": 1}])
    zones = ["az2" if one["host"] == "h3" else "az1" for one in found]
    assert (zones.count("az1"), zones.count("az2")) == (2, 2)


async def test_hints_name_claims(fleet: httpx.AsyncClient) -> None:
    await selected(fleet, **PLACE, hosts=["h2"], claim_ids=["first"])
    [beside] = await selected(fleet, **PLACE, hints={"same_host": "first"})
    [away] = await selected(fleet, **PLACE, zone="az1", hints={"different_host": ["first"]})
    assert (beside["host"], away["host"]) == ("h2", "h1")


async def test_a_shared_pool_is_claimed_with_the_host(fleet: httpx.AsyncClient) -> None:
    """Only hosts of its aggregates use it; the response names its slot, and claimed amounts prevent its deletion."""
    await fleet.put(
        "/v1/shared-pools/seats", json={"inventories": {"CUSTOM_SEAT": {"total": 3}}, "aggregates": ["ssd"]}
    )
    body = {"resources": {"VCPU": 1, "CUSTOM_SEAT": 2}}
    [found] = await selected(fleet, **body)
    assert (found["host"], found["slots"]) == ("h1", {"VCPU": 1, "pool:seats/CUSTOM_SEAT": 2})
    slot = (await fleet.get("/v1/shared-pools/seats")).json()["slots"]["CUSTOM_SEAT"]
    assert (slot["claimed"], slot["free"]) == (2, 1)
    check_problem(await fleet.post("/v1/selections", json=body), 409, "no-valid-host")
    check_problem(await fleet.delete("/v1/shared-pools/seats"), 409, "claim-state")
    await fleet.delete(f"/v1/claims/{found['claim_id']}")
    assert (await fleet.get("/v1/shared-pools/seats")).json()["slots"]["CUSTOM_SEAT"]["claimed"] == 0
    assert (await fleet.delete("/v1/shared-pools/seats")).status_code == 204


async def test_a_gang_names_the_member_of_each_place(fleet: httpx.AsyncClient) -> None:
    members = [{"name": "db", "count": 2, **PLACE}, {"name": "web", "resources": {"VCPU": 2}, "zone": "az2"}]
    found = await selected(fleet, members=members, relations=[{"type": "apart", "members": ["db"]}])
    assert [one["member"] for one in found] == ["db", "db", "web"]
    assert found[0]["host"] != found[1]["host"]
    assert found[2]["host"] == "h3"
    assert "member" not in (await selected(fleet, **PLACE))[0]


async def test_incremental_claims_what_fits(fleet: httpx.AsyncClient) -> None:
    found = await selected(fleet, resources={"MEMORY_MB": 10_000}, zone="az1", count=5, mode="incremental")
    assert sorted(one["host"] for one in found) == ["h1", "h2"]


async def test_an_aggregate_keeps_its_hosts_for_a_project(fleet: httpx.AsyncClient) -> None:
    """As soon as the PUT is answered, other projects are refused on these hosts."""
    metadata = {"filter_tenant_id": "mine"}
    await fleet.put("/v1/aggregates/ssd", json={"metadata": metadata, "hosts": ["h1"]})
    body = {**PLACE, "hosts": ["h1"]}
    check_problem(await fleet.post("/v1/selections", json={**body, "project": "other"}), 409, "no-valid-host")
    [found] = await selected(fleet, **body, project="mine")
    assert found["host"] == "h1"
