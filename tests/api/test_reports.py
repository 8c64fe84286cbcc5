"""A host's report, heartbeat and inbox over HTTP, with the same effects as through Redis."""

from typing import Any

import httpx
import pytest

from tests.api.parts import BAD_JSON, NEED, REPORT, STALE, check_problem, held, put_host, select

VCPU = {"inventories": {"VCPU": {"total": 8}}}
BAD_REPORTS: dict[str, dict[str, Any]] = {
    "no inventories": {"inventories": None},
    "unknown class": {"inventories": {"VCPUS": {"total": 1}}},
    "total as text": {"inventories": {"VCPU": {"total": "8"}}},
    "total with a point": {"inventories": {"VCPU": {"total": 8.0}}},
    "total true": {"inventories": {"VCPU": {"total": True}}},
    "total negative": {"inventories": {"VCPU": {"total": -1}}},
    "total above 2^53-1": {"inventories": {"VCPU": {"total": 2**53}}},
    "ratio zero": {"inventories": {"VCPU": {"total": 1, "allocation_ratio": 0}}},
    "capacity above 2^53-1": {"inventories": {"VCPU": {"total": 2**52, "allocation_ratio": 16.0}}},
    "step zero": {"inventories": {"VCPU": {"total": 1, "step_size": 0}}},
    "unknown word in an inventory": {"inventories": {"VCPU": {"total": 1, "totals": 1}}},
    "cell not a name": {**VCPU, "cell": "{c1}"},
    "zone not a name": {**VCPU, "zone": "a b"},
    "label not a name": {**VCPU, "labels": {"a b": "c"}},
    "label value not printable": {**VCPU, "labels": {"a": "\n"}},
    "label value a number": {**VCPU, "labels": {"a": 1}},
    "unknown trait": {**VCPU, "traits": ["FAST"]},
    "metric as text": {**VCPU, "metrics": {"cpu.percent": "1"}},
    "external of another class": {**VCPU, "external": {"DISK_GB": 1}},
    "external negative": {**VCPU, "external": {"VCPU": -1}},
    "lease zero": {**VCPU, "lease_s": 0},
    "agent without a number": {**VCPU, "agent": {"journal": "j", "nonce": "n"}},
    "agent number zero": {**VCPU, "agent": {"journal": "j", "nonce": "n", "number": 0}},
    "epoch not an epoch": {**VCPU, "epoch": "x"},
    "claims without slots": {**VCPU, "claims": [{"id": "a"}]},
    "claims of an unknown state": {**VCPU, "claims": [{"id": "a", "token": "1-a.1", "slots": {}, "state": "dead"}]},
    "claims with a bad amount": {**VCPU, "claims": [{"id": "a", "token": "1-a.1", "slots": {"VCPU": -1}}]},
    "claims with a bad token": {**VCPU, "claims": [{"id": "a", "token": "x", "slots": {"VCPU": 1}}]},
    "ended with a bad token": {**VCPU, "ended": [{"id": "a", "token": "x"}]},
    "ended with a bad id": {**VCPU, "ended": [{"id": "a b", "token": "1-a.1"}]},
    "pool not a name": {**VCPU, "pools": {"gpu/0": {}}},
    "pools a list": {**VCPU, "pools": ["gpu0"]},
    "pool in no pool": {**VCPU, "pools": {"gpu0": {"parent": "numa0"}}},
    "pool in itself": {**VCPU, "pools": {"a": {"parent": "b"}, "b": {"parent": "a"}}},
    "unknown class in a pool": {**VCPU, "pools": {"gpu0": {"inventories": {"GPUS": {"total": 1}}}}},
    "unknown trait of a pool": {**VCPU, "pools": {"gpu0": {"traits": ["FAST"]}}},
    "device of a pool with a blank": {**VCPU, "pools": {"gpu0": {"device": "GPU 0"}}},
    "one device in two pools": {**VCPU, "pools": {"gpu0": {"device": "GPU-a"}, "gpu1": {"device": "GPU-a"}}},
    "unknown word in a pool": {**VCPU, "pools": {"gpu0": {"slots": {}}}},
    "too many pools": {**VCPU, "pools": {f"p{number}": {} for number in range(257)}},
    "external of a pool that is not there": {**VCPU, "external": {"gpu0/CUSTOM_GPU_MILLI": 1}},
    "claims with a bad slot": {
        **VCPU,
        "claims": [{"id": "a", "token": "1-a.1", "slots": {"gpu/0/VCPU": 1}}],
    },
    "claims counted by nonsense": {
        **VCPU,
        "claims": [{"id": "a", "token": "1-a.1", "slots": {"VCPU": 1}, "counted": {"rack": "r4"}}],
    },
    "unknown field": {**VCPU, "hostname": "h1"},
}


async def test_a_new_host_reports_and_takes_claims(empty_api: httpx.AsyncClient) -> None:
    """A first report without `claims` means that nothing runs there: the host attests with this one call."""
    check_problem(await empty_api.post("/v1/selections", json=NEED), 409, "no-valid-host")
    answer = (await empty_api.put("/v1/hosts/h1/report", json=REPORT)).json()
    assert (answer["outcome"], answer["attested"], answer["drop"]) == ("OK", True, [])
    await select(empty_api)


async def test_a_report_replaces_what_the_host_owns_and_no_claim(api: httpx.AsyncClient) -> None:
    """Invariant 6: claims and the status set by an operator are kept."""
    await select(api)
    await api.post("/v1/hosts/h1/drain")
    await put_host(
        api, "h1", labels={}, traits=[], external={}, inventories={"VCPU": {"total": 4}, "MEMORY_MB": {"total": 8192}}
    )
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["labels"], found["traits"], found["status"], found["claims"]) == ({}, [], "draining", 1)
    assert (found["slots"]["VCPU"]["total"], found["slots"]["VCPU"]["claimed"]) == (4, 2)


async def test_members_of_a_group_count_where_a_report_says_that_their_host_is(api: httpx.AsyncClient) -> None:
    """At once, as with an agent on the store; the claim shows it too."""
    await api.put("/v1/server-groups/web", json={"policy": "anti-affinity", "by": "zone", "count_by": ["label:rack"]})
    placed = await select(api, hosts=["h1"], server_group="web")
    await put_host(api, "h1", zone="az9", labels={})
    assert (await api.get("/v1/server-groups/web")).json()["counts"] == {
        "host": {"h1": 1},
        "zone": {"az9": 1},
        "label:rack": {},
    }
    claim = (await api.get(f"/v1/claims/{placed['claim_id']}")).json()
    assert claim["counted"] == {"zone": "az9"}


async def test_reports_of_an_agent_count_in_their_order(api: httpx.AsyncClient) -> None:
    """A report without a higher number changes nothing; another journal is refused while the lease runs."""
    agent = {"journal": "j1", "nonce": "n1", "number": 5}
    assert (await put_host(api, "h1", agent=agent))["outcome"] == "OK"
    late = {**REPORT, "zone": "az7", "agent": {**agent, "number": 4}}
    assert (await api.put("/v1/hosts/h1/report", json=late)).json()["outcome"] == "ALREADY_DONE"
    assert (await api.get("/v1/hosts/h1")).json()["zone"] == "az1"
    other = {**REPORT, "agent": {"journal": "j2", "nonce": "n2", "number": 9}}
    check_problem(await api.put("/v1/hosts/h1/report", json=other), 409, "other-agent")


async def test_ended_ends_a_claim_and_missing_does_not(api: httpx.AsyncClient) -> None:
    """Invariant 5: a claim ends by its id and token, and never because it is missing from a list."""
    claim = await select(api)
    await api.post(f"/v1/claims/{claim['claim_id']}/confirm", json={"token": claim["token"]})
    await put_host(api, "h1", claims=[])
    assert (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["state"] == "active"
    await put_host(api, "h1", ended=[{"id": claim["claim_id"], "token": claim["token"]}])
    assert (await api.get(f"/v1/claims/{claim['claim_id']}")).json()["state"] == "ended"
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 0


POOLS: dict[str, Any] = {
    "numa0": {"inventories": {"PCPU": {"total": 16}}},
    "gpu0": {
        "parent": "numa0",
        "inventories": {"CUSTOM_GPU_MILLI": {"total": 1000, "step_size": 10}},
        "traits": ["CUSTOM_GPU_T4"],
    },
}


async def test_a_host_shows_the_pools_that_it_reported(api: httpx.AsyncClient) -> None:
    """It shows their slots by full name, with external usage, and their tree and traits."""
    await put_host(api, "h1", pools=POOLS, external={"gpu0/CUSTOM_GPU_MILLI": 250})
    found = (await api.get("/v1/hosts/h1")).json()
    assert found["pools"] == {
        "gpu0": {"parent": "numa0", "traits": ["CUSTOM_GPU_T4"]},
        "numa0": {"parent": "", "traits": ["HW_NUMA_ROOT"]},
    }
    assert found["traits"] == REPORT["traits"], "a pool's traits are not the host's"
    slot = found["slots"]["gpu0/CUSTOM_GPU_MILLI"]
    assert (slot["total"], slot["step_size"], slot["external"], slot["free"]) == (1000, 10, 250, 750)
    await put_host(api, "h1")
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["pools"], sorted(found["slots"])) == ({}, ["MEMORY_MB", "VCPU"])


async def test_a_part_of_a_pool_is_patched_and_the_rest_stays(api: httpx.AsyncClient) -> None:
    """null removes a pool; what the patch does not name stays as reported, also which device a pool is."""
    pools = {**POOLS, "gpu0": {**POOLS["gpu0"], "device": "0000:3b:00.0"}}
    await put_host(api, "h1", pools=pools, external={"gpu0/CUSTOM_GPU_MILLI": 250})
    before = (await api.get("/v1/hosts/h1")).json()
    assert before["pools"]["gpu0"]["device"] == "0000:3b:00.0"
    patch: dict[str, Any] = {"pools": {"gpu0": {"inventories": {"CUSTOM_GPU_MILLI": {"total": 500}}}}}
    assert (await api.patch("/v1/hosts/h1/report", json=patch)).status_code == 200
    found = (await api.get("/v1/hosts/h1")).json()
    slot = found["slots"].pop("gpu0/CUSTOM_GPU_MILLI")
    assert (slot["total"], slot["max_unit"], slot["step_size"], slot["external"]) == (500, 500, 10, 250)
    before["slots"].pop("gpu0/CUSTOM_GPU_MILLI")
    assert {**found, "version": 0} == {**before, "version": 0}
    out: dict[str, Any] = {"pools": {"gpu0": None}, "external": {"gpu0/CUSTOM_GPU_MILLI": None}}
    assert (await api.patch("/v1/hosts/h1/report", json=out)).status_code == 200
    assert (await api.get("/v1/hosts/h1")).json()["pools"].keys() == {"numa0"}


async def test_a_claim_on_a_pool_is_attested_with_its_slots(empty_api: httpx.AsyncClient) -> None:
    """The claim is restored with its slots in pools, and with its server group."""
    slots = {"VCPU": 1, "gpu0/CUSTOM_GPU_MILLI": 300}
    claim = {"id": "mine", "token": STALE, "slots": slots, "digest": "ab", "project": "web"}
    await put_host(empty_api, "h1", pools=POOLS, claims=[{**claim, "group": "web", "counted": {"zone": "az1"}}])
    found = (await empty_api.get("/v1/claims/mine")).json()
    assert (found["state"], found["slots"], found["server_group"]) == ("active", slots, "web")
    assert (await empty_api.get("/v1/hosts/h1")).json()["slots"]["gpu0/CUSTOM_GPU_MILLI"]["claimed"] == 300


async def test_what_a_claim_shows_brings_it_back_whole_after_a_wipe(empty_api: httpx.AsyncClient) -> None:
    """The placement was moved to this host, and resized since."""
    entry: dict[str, Any] = {"id": "second", "token": "1-a.4", "slots": {"VCPU": 1}, "digest": "ab", "project": "web"}
    entry |= {"max_attempts": 5, "alternates": ["h3"], "max_runtime_s": 60, "runtime_deadline_ms": 1_790_000_060_000}
    await put_host(empty_api, "h1", claims=[{**entry, "placed": "1-a.3", "root": "1-a.2"}])
    found = (await empty_api.get("/v1/claims/second")).json()
    assert (found["digest"], found["token"]) == ("ab", "1-a.4")
    assert (found["max_attempts"], found["alternates"]) == (5, [{"host": "h3"}])
    assert (found["max_runtime_s"], found["runtime_deadline_ms"]) == (60, 1_790_000_060_000)
    (placement,) = found["placements"]
    assert (placement["placed"], placement["root"]) == ("1-a.3", "1-a.2")


async def test_an_inventory_needs_a_total(api: httpx.AsyncClient, clean_store: str) -> None:
    """A patch may omit it only for a slot that the host already has."""
    before = held(clean_store)
    bare: dict[str, Any] = {"inventories": {"VCPU": {}}}
    check_problem(await api.put("/v1/hosts/h1/report", json=bare), 422, "invalid-request")
    bare = {"inventories": {"DISK_GB": {}}}
    check_problem(await api.patch("/v1/hosts/h1/report", json=bare), 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("body", BAD_REPORTS.values(), ids=BAD_REPORTS)
async def test_a_bad_report_is_a_problem(api: httpx.AsyncClient, clean_store: str, body: dict[str, Any]) -> None:
    before = held(clean_store)
    for method in ("PUT", "PATCH"):
        check_problem(await api.request(method, "/v1/hosts/h1/report", json=body), 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("text", BAD_JSON.values(), ids=BAD_JSON)
async def test_bad_json_is_a_problem(api: httpx.AsyncClient, clean_store: str, text: bytes, method: str) -> None:
    before = held(clean_store)
    headers = {"Content-Type": "application/json"}
    answer = await api.request(method, "/v1/hosts/h1/report", content=text, headers=headers)
    check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


async def test_a_bad_host_name_is_a_problem(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    check_problem(await api.put("/v1/hosts/a%20b/report", json=REPORT), 422, "invalid-request")
    check_problem(await api.put(f"/v1/hosts/{'x' * 254}/report", json=REPORT), 422, "invalid-request")
    assert held(clean_store) == before


async def test_a_patch_changes_what_it_names_and_keeps_the_rest(api: httpx.AsyncClient) -> None:
    """RFC 7396: members replace, null removes, and the rest of the last report stays."""
    patch = {
        "zone": "az2",
        "labels": {"rack": None, "row": "b"},
        "inventories": {"VCPU": {"total": 12}},
        "external": None,
    }
    answer = await api.patch(
        "/v1/hosts/h1/report", json=patch, headers={"Content-Type": "application/merge-patch+json"}
    )
    assert answer.status_code == 200, answer.text
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["zone"], found["labels"], found["traits"]) == ("az2", {"row": "b"}, REPORT["traits"])
    assert (found["lease_s"], found["metrics"]) == (REPORT["lease_s"], REPORT["metrics"])
    assert (found["slots"]["VCPU"]["total"], found["slots"]["VCPU"]["max_unit"]) == (12, 12)
    memory = found["slots"]["MEMORY_MB"]
    assert (memory["total"], memory["reserved"], memory["external"]) == (16_384, 384, 0)


async def test_an_empty_patch_changes_nothing_that_the_host_shows(api: httpx.AsyncClient) -> None:
    """The report rebuilt from the store equals the one that was sent, so nothing is lost."""
    await put_host(
        api,
        "h1",
        inventories={"VCPU": {"total": 8, "allocation_ratio": 1.5, "min_unit": 2, "max_unit": 4, "step_size": 2}},
        external={"VCPU": 1},
    )
    before = (await api.get("/v1/hosts/h1")).json()
    assert (await api.patch("/v1/hosts/h1/report", json={})).status_code == 200
    after = (await api.get("/v1/hosts/h1")).json()
    assert {**after, "version": 0} == {**before, "version": 0}


async def test_a_patch_of_an_unknown_host_is_404(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    check_problem(await api.patch("/v1/hosts/h9/report", json={"zone": "az2"}), 404, "not-found")
    assert held(clean_store) == before


async def test_a_heartbeat_renews_the_lease(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/hosts/h1/heartbeat", json={"lease_s": 60})
    assert (answer.status_code, answer.json()) == (200, {"outcome": "OK"})


@pytest.mark.parametrize(
    "body",
    [{"lease_s": 0}, {"lease_s": "30"}, {"lease_s": 2.5}, {"lease": 30}, {"agent": {"number": 1}}],
    ids=str,
)
async def test_a_bad_heartbeat_is_a_problem(api: httpx.AsyncClient, clean_store: str, body: dict[str, Any]) -> None:
    before = held(clean_store)
    check_problem(await api.post("/v1/hosts/h1/heartbeat", json=body), 422, "invalid-request")
    assert held(clean_store) == before


async def test_a_heartbeat_of_an_agents_former_process_asks_for_a_report(api: httpx.AsyncClient) -> None:
    """The report's number then shows which process is newer; the host exists, so the response is not 404."""
    former, now = ({"journal": "j", "nonce": nonce, "number": number} for nonce, number in (("a", 5), ("b", 6)))
    for agent in (former, now):
        answer = await api.put("/v1/hosts/h1/report", json={**REPORT, "agent": agent})
        assert answer.status_code == 200, answer.text
    answer = await api.post("/v1/hosts/h1/heartbeat", json={"agent": former})
    assert (answer.status_code, answer.json()) == (200, {"outcome": "NOT_ATTESTED"})
    check_problem(
        await api.put("/v1/hosts/h1/report", json={**REPORT, "agent": {**former, "number": 6}}), 409, "other-agent"
    )


async def test_a_heartbeat_of_an_unknown_host_says_report_first(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    check_problem(await api.post("/v1/hosts/h9/heartbeat", json={}), 404, "not-found")
    assert held(clean_store) == before


async def test_the_inbox_names_what_was_placed_and_forgets_what_was_accepted(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    [entry] = (await api.get("/v1/hosts/h1/inbox")).json()["entries"]
    assert (entry["op"], entry["claim_id"], entry["token"]) == ("claim", claim["claim_id"], claim["token"])
    assert (await api.get(f"/v1/hosts/h1/inbox?after={entry['entry_id']}")).json() == {"entries": []}
    await api.post(f"/v1/claims/{claim['claim_id']}/confirm", json={"token": claim["token"]})
    assert (await api.get("/v1/hosts/h1/inbox")).json() == {"entries": []}


async def test_a_bad_inbox_is_a_problem(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/hosts/h9/inbox"), 404, "not-found")
    check_problem(await api.get("/v1/hosts/h1/inbox?after=x"), 422, "invalid-request")
    check_problem(await api.get("/v1/hosts/h1/inbox?since=1"), 422, "invalid-request")


async def test_work_without_a_token_becomes_a_local_claim(api: httpx.AsyncClient) -> None:
    """No scheduler placed it: it is held even if the host is then over, and ends by id and token like any claim."""
    work = {"id": "console", "slots": {"VCPU": 2}, "project": "ops", "consumer": "alice"}
    await put_host(api, "h1", claims=[work])
    claim = (await api.get("/v1/claims/console")).json()
    assert (claim["state"], claim["host"], claim["project"]) == ("active", "h1", "ops")
    await put_host(api, "h1", claims=[work])
    assert (await api.get("/v1/claims/console")).json()["token"] == claim["token"]
    await put_host(api, "h1", claims=[{**work, "slots": {"VCPU": 999}}])
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 999
    await put_host(api, "h1", claims=[])
    claim = (await api.get("/v1/claims/console")).json()
    assert claim["state"] == "active", "missing from a list ends nothing"
    await put_host(api, "h1", ended=[{"id": "console", "token": claim["token"]}])
    assert (await api.get("/v1/claims/console")).json()["state"] == "ended"


async def test_local_work_cannot_have_the_id_of_another_claim(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    work = {"id": claim["claim_id"], "slots": {"VCPU": 1}}
    check_problem(await api.put("/v1/hosts/h1/report", json={**REPORT, "claims": [work]}), 422, "claim-id-reused")


async def test_the_answer_warns_of_what_can_never_be_claimed(api: httpx.AsyncClient) -> None:
    wrong = {"inventories": {"MEMORY_MB": {"total": 4096, "reserved": 65536}}, "lease_s": 3600}
    answer = await api.put("/v1/hosts/h1/report", json=wrong)
    assert answer.json()["warnings"] == ["MEMORY_MB: reserved 65536 is above total 4096"]
