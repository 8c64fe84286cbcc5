"""POST /v1/selections and /v1/explain: what is claimed, what is refused and why; bad input writes nothing."""

import json
from typing import Any

import httpx
import pytest

from tests.api.parts import BAD_JSON, NEED, check_problem, held, put_host, select

BAD_FIELDS: dict[str, dict[str, Any]] = {
    "no resources": {},
    "empty resources": {"resources": {}},
    "amount as text": {"resources": {"VCPU": "2"}},
    "amount with a point": {"resources": {"VCPU": 2.0}},
    "amount true": {"resources": {"VCPU": True}},
    "amount null": {"resources": {"VCPU": None}},
    "amount zero": {"resources": {"VCPU": 0}},
    "amount negative": {"resources": {"VCPU": -1}},
    "amount above 2^53-1": {"resources": {"VCPU": 2**53}},
    "unknown class": {"resources": {"VCPUS": 1}},
    "unknown trait required": {**NEED, "required": ["FAST"]},
    "unknown trait forbidden": {**NEED, "forbidden": ["FAST"]},
    "unknown trait in any_of": {**NEED, "any_of": [["FAST"]]},
    "empty any_of": {**NEED, "any_of": [[]]},
    "zone not a name": {**NEED, "zone": "a b"},
    "zone a number": {**NEED, "zone": 1},
    "host not a name": {**NEED, "hosts": ["{h}"]},
    "excluded host not a name": {**NEED, "exclude_hosts": ["a/b"]},
    "label not a name": {**NEED, "labels": {"a:b": "c"}},
    "label value too long": {**NEED, "labels": {"a": "c" * 256}},
    "policy unknown": {**NEED, "policy": "nix"},
    "weight as text": {**NEED, "weights": {"free": "1"}},
    "weight too large": {**NEED, "weights": {"free": 1e9}},
    "count zero": {**NEED, "count": 0},
    "count above 200": {**NEED, "count": 201},
    "mode unknown": {**NEED, "mode": "most"},
    "alternates above 50": {**NEED, "alternates": 51},
    "alternates negative": {**NEED, "alternates": -1},
    "no attempt": {**NEED, "max_attempts": 0},
    "too many attempts": {**NEED, "max_attempts": 101},
    "a negative runtime": {**NEED, "max_runtime_s": -1},
    "a runtime of more than 30 days": {**NEED, "max_runtime_s": 2_592_001},
    "a payload that is nested too deeply": {**NEED, "payload": json.loads("[" * 65 + "]" * 65)},
    "a payload of one member": {"members": [{"name": "db", **NEED, "payload": 1}]},
    "attempts with a point": {**NEED, "max_attempts": 2.0},
    "project not a name": {**NEED, "project": "a/b"},
    "consumer not a name": {**NEED, "consumer": "é"},
    "too few ids": {**NEED, "count": 2, "claim_ids": ["a"]},
    "an id twice": {**NEED, "count": 2, "claim_ids": ["a", "a"]},
    "id not a name": {**NEED, "claim_ids": ["a b"]},
    "lease zero": {**NEED, "lease_s": 0},
    "lease of a year": {**NEED, "lease_s": 31_536_000},
    "claim as text": {**NEED, "claim": "false"},
    "unknown field": {**NEED, "zones": ["az1"]},
    "a field of a later version": {**NEED, "urgent": True},
    "group without a name": {"groups": [{"resources": {"VCPU": 1}}]},
    "group of an unknown class": {"groups": [{"name": "a", "resources": {"VCPUS": 1}}]},
    "group without resources": {"groups": [{"name": "a"}]},
    "two groups of one name": {"groups": [{"name": "a", "resources": {"VCPU": 1}}] * 2},
    "group_policy unknown": {**NEED, "group_policy": "apart"},
    "same_subtree of no group": {**NEED, "same_subtree": [["a"]]},
    "root trait unknown": {**NEED, "root_required": ["FAST"]},
    "member_of a number": {**NEED, "member_of": 0},
    "member_of with an empty list": {**NEED, "member_of": [["a"], []]},
    "member_of names and lists": {**NEED, "member_of": ["a", ["b"]]},
    "member_of not a name": {**NEED, "member_of": "a b"},
    "member_of empty": {**NEED, "member_of": ""},
    "not_member_of in lists": {**NEED, "not_member_of": [["a"]]},
    "aggregate metadata key not one": {**NEED, "aggregate_metadata": {"a b": "c"}},
    "property without a value": {**NEED, "properties": {"os_type": ""}},
    "query a text": {**NEED, "query": '[">=", "$free.VCPU", 1]'},
    "query with null": {**NEED, "query": ["=", "$free.VCPU", None]},
    "query too large": {**NEED, "query": ["or", *range(1000)]},
    "query of a huge number": {**NEED, "query": ["=", "$free.VCPU", 2**53]},
    "server group not a name": {**NEED, "server_group": "a/b"},
    "spread by nonsense": {**NEED, "spread": [{"by": "rack"}]},
    "spread by nothing": {**NEED, "spread": [{}]},
    "spread twice by one": {**NEED, "spread": [{"by": "zone"}, {"by": "zone", "hard": False}]},
    "spread with no skew": {**NEED, "spread": [{"by": "zone", "max_skew": 0}]},
    "numa without cells": {"numa": {"cells": []}},
    "numa cell without memory": {"numa": {"cells": [{"cpus": 1}]}},
    "numa policy unknown": {"numa": {"cells": [{"cpus": 1, "memory_mb": 1}], "policy": "own"}},
    "numa pages that do not fit": {"numa": {"cells": [{"cpus": 1, "memory_mb": 1}], "page_size_kb": 2048}},
    "dedicated cpus of a shared guest": {"numa": {"cells": [{"cpus": 2, "memory_mb": 1, "dedicated_cpus": 1}]}},
    "pci of an unknown class": {"pci": [{"class": "PCI"}]},
    "pci of too many": {"pci": [{"class": "CUSTOM_NIC", "count": 65}]},
    "pci under another name": {"pci": [{"resource_class": "CUSTOM_NIC"}]},
    "pci near nothing": {"pci": [{"class": "CUSTOM_NIC", "numa_policy": "near"}]},
    "hint unknown": {**NEED, "hints": {"same_rack": "a"}},
    "hint not a claim": {**NEED, "hints": {"same_host": ["a b"]}},
    "hint of an address that is none": {**NEED, "hints": {"build_near_host_ip": "10.0.0"}},
    "hint of a cidr alone": {**NEED, "hints": {"cidr": "/24"}},
    "members beside resources": {**NEED, "members": [{"name": "db", **NEED}]},
    "member without a name": {"members": [NEED]},
    "member that asks for nothing": {"members": [{"name": "db"}]},
    "member with members": {"members": [{"name": "db", "members": [{"name": "x", **NEED}]}]},
    "member with a project": {"members": [{"name": "db", "project": "web", **NEED}]},
    "two members of one name": {"members": [{"name": "db", **NEED}] * 2},
    "too many places of members": {"members": [{"name": "a", "count": 200, **NEED}, {"name": "b", **NEED}]},
    "relation of no members": {"members": [{"name": "db", **NEED}], "relations": [{"type": "apart", "members": []}]},
    "relation of a stranger": {"members": [{"name": "db", **NEED}], "relations": [{"type": "apart", "members": ["x"]}]},
    "relation unknown": {"members": [{"name": "db", **NEED}], "relations": [{"type": "near", "members": ["db"]}]},
    "relations without members": {**NEED, "relations": [{"type": "apart", "members": ["db"]}]},
}


async def test_a_selection_claims_on_a_host_and_says_all_of_it(api: httpx.AsyncClient) -> None:
    """The 201 response has the claim's id, host and slots; claim and host show it at once."""
    answer = await api.post("/v1/selections", json={**NEED, "claim_ids": ["mine"], "project": "web", "lease_s": 60})
    assert answer.status_code == 201
    [found] = answer.json()["selections"]
    assert found["expires_at_ms"] > 0
    expected = {"claim_id": "mine", "state": "claimed", "cell": "c1", "host": "h1", "slots": NEED["resources"]}
    assert expected.items() <= found.items()
    claim = (await api.get("/v1/claims/mine")).json()
    assert (claim["token"], claim["project"], claim["slots"]) == (found["token"], "web", NEED["resources"])
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 2


async def test_ids_sent_again_answer_200_with_the_first_outcome(api: httpx.AsyncClient, clean_store: str) -> None:
    """Invariant 3: the second call changes nothing."""
    first = await api.post("/v1/selections", json={**NEED, "claim_ids": ["mine"]})
    before = held(clean_store)
    again = await api.post("/v1/selections", json={**NEED, "claim_ids": ["mine"]})
    assert (again.status_code, again.json()) == (200, first.json())
    assert held(clean_store) == before


async def test_an_id_with_other_content_is_refused(api: httpx.AsyncClient, clean_store: str) -> None:
    """The response is 422 claim-id-reused, and nothing is written."""
    await select(api, claim_ids=["mine"])
    before = held(clean_store)
    again = await api.post("/v1/selections", json={"resources": {"VCPU": 1}, "claim_ids": ["mine"]})
    check_problem(again, 422, "claim-id-reused")
    assert held(clean_store) == before


async def test_a_dry_run_answers_200_and_writes_nothing(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    answer = await api.post("/v1/selections", json={**NEED, "claim": False})
    assert answer.status_code == 200
    [found] = answer.json()["selections"]
    assert (found["host"], found["claim_id"], found["token"]) == ("h1", None, None)
    assert held(clean_store) == before


async def test_many_places_and_alternates(api: httpx.AsyncClient) -> None:
    """Each of `count` places has its own id; alternates are hosts that were not chosen."""
    for name in ("h2", "h3"):
        await put_host(api, name)
    answer = await api.post("/v1/selections", json={**NEED, "count": 2, "alternates": 2, "hosts": ["h1", "h2", "h3"]})
    assert answer.status_code == 201, answer.text
    found = answer.json()["selections"]
    assert len({one["claim_id"] for one in found}) == 2
    chosen = {one["host"] for one in found}
    assert all({other["host"] for other in one["alternates"]}.isdisjoint(chosen) for one in found)


@pytest.mark.parametrize(
    "constraint",
    [{"zone": "az1"}, {"zone": ["az9", "az1"]}, {"required": ["HW_CPU_X86_AVX2"]}, {"labels": {"rack": "r4"}}],
    ids=str,
)
async def test_constraints_that_the_host_meets(api: httpx.AsyncClient, constraint: dict[str, Any]) -> None:
    assert (await select(api, **constraint))["host"] == "h1"


@pytest.mark.parametrize(
    "constraint",
    [
        {"resources": {"VCPU": 9}},
        {"resources": {"CUSTOM_GPU": 1}},
        {"zone": "az2"},
        {"required": ["CUSTOM_FAST"]},
        {"forbidden": ["HW_CPU_X86_AVX2"]},
        {"any_of": [["CUSTOM_FAST", "HW_CPU_X86_SSE42"]]},
        {"labels": {"rack": "r5"}},
        {"hosts": ["h9"]},
        {"exclude_hosts": ["h1"]},
    ],
    ids=str,
)
async def test_no_host_fits_gives_the_reason(
    api: httpx.AsyncClient, clean_store: str, constraint: dict[str, Any]
) -> None:
    """The response is 409 with the reasons and their counts, and nothing is written."""
    before = held(clean_store)
    found = check_problem(await api.post("/v1/selections", json={**NEED, **constraint}), 409, "no-valid-host")
    assert sum(one["hosts"] for one in found["reasons"]) == 1
    assert held(clean_store) == before


async def test_no_host_fits_names_the_nearest_miss(api: httpx.AsyncClient) -> None:
    await select(api)
    answer = await api.post("/v1/selections", json={"resources": {"VCPU": 7}})
    found = check_problem(answer, 409, "no-valid-host")
    assert found["nearest"] == [{"host": "h1", "needs": {"VCPU": 7}, "free": {"VCPU": 6}, "changes": ["1 VCPU less"]}]


@pytest.mark.parametrize("body", BAD_FIELDS.values(), ids=BAD_FIELDS)
async def test_a_bad_field_is_a_problem(api: httpx.AsyncClient, clean_store: str, body: dict[str, Any]) -> None:
    """The response is 422, and nothing is written."""
    before = held(clean_store)
    for route in ("/v1/selections", "/v1/explain"):
        check_problem(await api.post(route, json=body), 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"groups": [{"name": "a", "resources": {"VCPU": "1"}}]}, "groups[0].resources.VCPU"),
        ({"numa": {"cells": [{"cpus": 1, "memory_mb": 1}, {"cpus": 0.5, "memory_mb": 1}]}}, "numa.cells[1].cpus"),
        ({"members": [{"name": "db", "pci": [{"class": "CUSTOM_NIC", "x": 1}]}]}, "members[0].pci[0].x"),
        ({**NEED, "member_of": 1}, "member_of"),
    ],
    ids=str,
)
async def test_an_error_names_the_field_however_deep_it_lies(
    api: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    found = check_problem(await api.post("/v1/selections", json=body), 422, "invalid-request")
    assert [one["field"] for one in found["errors"]] == [field]
    assert found["detail"].startswith(f"{field}: ")


@pytest.mark.parametrize(("depth", "status"), [(19, 200), (20, 422), (400, 422)])
async def test_a_query_has_a_deepest_nesting(api: httpx.AsyncClient, depth: int, status: int) -> None:
    """A condition is nested in `depth` negations; only the limit decides, since each depth is a valid query."""
    query = '["not", ' * depth + '["=", 1, 2]' + "]" * depth
    text = f'{{"resources": {{"VCPU": 1}}, "query": {query}}}'
    answer = await api.post("/v1/explain", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text


async def test_what_the_model_refuses_is_reported_with_the_part_that_it_is_in(api: httpx.AsyncClient) -> None:
    """Every field conforms to the schema here; only a value is wrong."""
    body = {"members": [{"name": "web", **NEED}, {"name": "db", "groups": [{"name": "a", "resources": {"VCPUS": 1}}]}]}
    found = check_problem(await api.post("/v1/selections", json=body), 422, "invalid-request")
    assert found["detail"].startswith("members[1].groups[0]: unknown resource class 'VCPUS'")


@pytest.mark.parametrize("route", ["/v1/selections", "/v1/explain"])
@pytest.mark.parametrize("text", BAD_JSON.values(), ids=BAD_JSON)
async def test_bad_json_is_a_problem(api: httpx.AsyncClient, clean_store: str, text: bytes, route: str) -> None:
    before = held(clean_store)
    answer = await api.post(route, content=text, headers={"Content-Type": "application/json"})
    check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


async def test_explain_counts_reasons_and_checks_a_host(api: httpx.AsyncClient, clean_store: str) -> None:
    """It counts reasons over all hosts, and shows each check of the named host; nothing is written."""
    before = held(clean_store)
    answer = await api.post("/v1/explain?host=h1", json={"resources": {"VCPU": 9}})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["hosts"], found["fits"]) == (1, 0)
    assert [one["hosts"] for one in found["reasons"]] == [1]
    [checked] = found["checks"]
    assert (checked["host"], checked["reason"]) == ("h1", "VCPU")
    assert [one["name"] for one in checked["checks"] if not one["ok"]] == ["VCPU"]
    assert held(clean_store) == before


async def test_explain_names_the_scarce_classes_that_a_request_leaves_to_others(api: httpx.AsyncClient) -> None:
    for name, classes in (("h2", {}), ("h3", {"CUSTOM_SEAT": {"total": 4}})):
        await put_host(api, name, inventories={"VCPU": {"total": 8}, **classes}, pools={}, external={})
    found = (await api.post("/v1/explain", json={"resources": {"VCPU": 1}})).json()
    assert found["spared"] == {"CUSTOM_SEAT": 1}
    assert {one["host"]: one["weighers"]["stranding"] for one in found["ranked"]} == {"h1": 0, "h2": 0, "h3": -1}
    asking = (await api.post("/v1/explain", json={"resources": {"VCPU": 1, "CUSTOM_SEAT": 1}})).json()
    assert (asking["spared"], asking["fits"]) == ({}, 1)
    refused = (await api.post("/v1/explain", json={"resources": {"VCPU": 9}})).json()
    assert (refused["spared"], refused["fits"]) == ({}, 0)


async def test_explain_of_an_unknown_host_is_404(api: httpx.AsyncClient) -> None:
    check_problem(await api.post("/v1/explain?host=h9", json=NEED), 404, "not-found")
    check_problem(await api.post("/v1/explain?host=a%20b", json=NEED), 422, "invalid-request")
    check_problem(await api.post("/v1/explain?hosts=h1", json=NEED), 422, "invalid-request")
