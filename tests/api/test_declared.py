"""Objects that operators declare: shown, listed, replaced and deleted; bad input writes nothing."""

from typing import Any

import httpx
import pytest

from tests.api.parts import BAD_JSON, check_problem, held, put_host

AGGREGATE: dict[str, Any] = {"metadata": {"ssd": "true", "trait:CUSTOM_X": "required"}, "hosts": ["h1"]}
GROUP: dict[str, Any] = {"policy": "anti-affinity", "by": "host", "max_per_host": 2, "count_by": ["label:rack"]}
POOL: dict[str, Any] = {
    "inventories": {"CUSTOM_SEAT": {"total": 100, "reserved": 10, "allocation_ratio": 2.0, "max_unit": 5}},
    "traits": ["CUSTOM_FAST"],
    "aggregates": ["licensed"],
}
BODIES = {"aggregates": AGGREGATE, "server-groups": GROUP, "shared-pools": POOL}

BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "metadata key with a space": ("aggregates", {"metadata": {"a b": "c"}}),
    "metadata key empty": ("aggregates", {"metadata": {"": "c"}}),
    "metadata value empty": ("aggregates", {"metadata": {"a": ""}}),
    "metadata value a number": ("aggregates", {"metadata": {"a": 1}}),
    "metadata value too long": ("aggregates", {"metadata": {"a": "b" * 256}}),
    "too much metadata": ("aggregates", {"metadata": {f"k{number}": "v" for number in range(257)}}),
    "host not a name": ("aggregates", {"hosts": ["a b"]}),
    "hosts a text": ("aggregates", {"hosts": "h1"}),
    "unknown field of an aggregate": ("aggregates", {"zone": "az1"}),
    "no policy": ("server-groups", {}),
    "policy unknown": ("server-groups", {"policy": "near"}),
    "by unknown": ("server-groups", {**GROUP, "by": "rack"}),
    "by a label that is no name": ("server-groups", {**GROUP, "by": "label:a b"}),
    "max_per_host zero": ("server-groups", {**GROUP, "max_per_host": 0}),
    "max_per_host as text": ("server-groups", {**GROUP, "max_per_host": "2"}),
    "max_per_host under affinity": ("server-groups", {"policy": "affinity", "max_per_host": 2}),
    "count_by unknown": ("server-groups", {**GROUP, "count_by": ["rack"]}),
    "too many to count by": ("server-groups", {**GROUP, "count_by": [f"label:l{n}" for n in range(9)]}),
    "no inventories": ("shared-pools", {}),
    "inventories empty": ("shared-pools", {"inventories": {}}),
    "class unknown": ("shared-pools", {"inventories": {"SEATS": {"total": 1}}}),
    "total missing": ("shared-pools", {"inventories": {"CUSTOM_SEAT": {}}}),
    "total negative": ("shared-pools", {"inventories": {"CUSTOM_SEAT": {"total": -1}}}),
    "trait unknown": ("shared-pools", {**POOL, "traits": ["FAST"]}),
    "aggregate not a name": ("shared-pools", {**POOL, "aggregates": ["a/b"]}),
    "cell not a name": ("shared-pools", {**POOL, "cell": "{c1}"}),
}


@pytest.mark.parametrize("kind", BODIES)
async def test_declared_shown_replaced_and_taken_back(api: httpx.AsyncClient, kind: str) -> None:
    """PUT returns 201 for a new object and 200 with its new state otherwise; DELETE returns 204, then 404."""
    route = f"/v1/{kind}/mine"
    check_problem(await api.get(route), 404, "not-found")
    made = await api.put(route, json=BODIES[kind])
    assert made.status_code == 201, made.text
    assert made.json()["name"] == "mine"
    again = await api.put(route, json=BODIES[kind])
    assert (again.status_code, again.json()) == (200, made.json())
    assert (await api.get(route)).json() == made.json()
    assert (await api.get(f"/v1/{kind}")).json() == {kind.replace("-", "_"): [made.json()], "next": None}
    assert (await api.delete(f"{route}?force=true")).status_code == 204
    check_problem(await api.delete(route), 404, "not-found")
    check_problem(await api.get(route), 404, "not-found")


async def test_an_aggregate_shows_its_hosts_and_each_host_its_aggregates(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    await api.put("/v1/aggregates/ssd", json=AGGREGATE)
    found = (await api.get("/v1/aggregates/ssd")).json()
    assert found == {"name": "ssd", **AGGREGATE}
    shown = {one["name"]: one["aggregates"] for one in (await api.get("/v1/hosts")).json()["hosts"]}
    assert shown == {"h1": ["ssd"], "h2": []}
    await put_host(api, "h1", zone="az2")
    assert (await api.get("/v1/hosts/h1")).json()["aggregates"] == ["ssd"], "a report took an operator's word"


async def test_an_aggregate_of_unknown_hosts_is_404_and_writes_nothing(
    api: httpx.AsyncClient, clean_store: str
) -> None:
    before = held(clean_store)
    answer = await api.put("/v1/aggregates/ssd", json={"hosts": ["h1", "h8", "h9"]})
    assert check_problem(answer, 404, "not-found")["hosts"] == ["h8", "h9"]
    assert held(clean_store) == before


async def test_an_aggregate_with_hosts_is_taken_back_by_force_alone(api: httpx.AsyncClient, clean_store: str) -> None:
    await api.put("/v1/aggregates/ssd", json=AGGREGATE)
    before = held(clean_store)
    check_problem(await api.delete("/v1/aggregates/ssd"), 409, "claim-state")
    assert held(clean_store) == before
    assert (await api.delete("/v1/aggregates/ssd?force=true")).status_code == 204
    assert (await api.get("/v1/hosts/h1")).json()["aggregates"] == []


async def test_a_server_group_shows_its_counts(api: httpx.AsyncClient) -> None:
    answer = await api.put("/v1/server-groups/web", json=GROUP)
    assert answer.json() == {
        "name": "web",
        **GROUP,
        "members": 0,
        "counts": {"host": {}, "zone": {}, "label:rack": {}},
    }


async def test_a_pool_shows_each_class_as_a_host_does(api: httpx.AsyncClient) -> None:
    found = (await api.put("/v1/shared-pools/seats", json=POOL)).json()
    assert found == {
        "name": "seats",
        "cell": "c1",
        "slots": {
            "CUSTOM_SEAT": {
                "total": 100,
                "reserved": 10,
                "allocation_ratio": 2.0,
                "min_unit": 1,
                "max_unit": 5,
                "step_size": 1,
                "capacity": 180,
                "claimed": 0,
                "external": 0,
                "free": 180,
            }
        },
        "traits": ["CUSTOM_FAST"],
        "aggregates": ["licensed"],
    }
    check_problem(await api.put("/v1/shared-pools/seats", json={**POOL, "cell": "c9"}), 404, "not-found")


@pytest.mark.parametrize("kind", BODIES)
async def test_lists_are_pages_by_name(api: httpx.AsyncClient, kind: str) -> None:
    for name in ("b", "c", "a"):
        await api.put(f"/v1/{kind}/{name}", json=BODIES[kind])
    seen, after = [], ""
    while after is not None:
        page = (await api.get(f"/v1/{kind}?limit=2&after={after}")).json()
        seen += [one["name"] for one in page[kind.replace("-", "_")]]
        after = page["next"]
    assert seen == ["a", "b", "c"]
    check_problem(await api.get(f"/v1/{kind}?limit=0"), 422, "invalid-request")
    check_problem(await api.get(f"/v1/{kind}?name=a"), 422, "invalid-request")


@pytest.mark.parametrize(("kind", "body"), BAD.values(), ids=BAD)
async def test_a_bad_field_is_a_problem(
    api: httpx.AsyncClient, clean_store: str, kind: str, body: dict[str, Any]
) -> None:
    before = held(clean_store)
    check_problem(await api.put(f"/v1/{kind}/mine", json=body), 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("kind", BODIES)
async def test_bad_json_is_a_problem(api: httpx.AsyncClient, clean_store: str, kind: str) -> None:
    before = held(clean_store)
    for text in BAD_JSON.values():
        answer = await api.put(f"/v1/{kind}/mine", content=text, headers={"Content-Type": "application/json"})
        check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("kind", BODIES)
async def test_a_bad_name_or_query_is_a_problem(api: httpx.AsyncClient, clean_store: str, kind: str) -> None:
    before = held(clean_store)
    check_problem(await api.get(f"/v1/{kind}/a%20b"), 422, "invalid-request")
    check_problem(await api.put(f"/v1/{kind}/a%3Ab", json=BODIES[kind]), 422, "invalid-request")
    check_problem(await api.put(f"/v1/{kind}/a?force=true", json=BODIES[kind]), 422, "invalid-request")
    check_problem(await api.delete(f"/v1/{kind}/a?forced=true"), 422, "invalid-request")
    assert held(clean_store) == before
