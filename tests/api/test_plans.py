"""POST /v1/plans/...: what would happen, for operators and readers; nothing is written."""

import asyncio
import json

import httpx
import pytest

from redsched import aio
from redsched.requests.plans import MAX_NEW_HOSTS, AddingBody
from redsched.scheduler.decide_apart.planner import Planner
from tests.api.parts import NEED, check_problem, held, put_host, select


async def test_capacity(api: httpx.AsyncClient, clean_store: str) -> None:
    before = held(clean_store)
    answer = await api.post("/v1/plans/capacity", json={"request": NEED, "n_plus_one": "host"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "places": 3,
        "at_least": False,
        "zones": {"az1": 3},
        "reasons": [{"reason": "MEMORY_MB", "hosts": 1}],
        "classes": [
            {"resource_class": "MEMORY_MB", "capacity": 16000, "free": 15000, "after": 2712},
            {"resource_class": "VCPU", "capacity": 8, "free": 8, "after": 2},
        ],
        "quota": None,
        "redundancy": {"by": "host", "checked": 1, "failed": 0, "failing": [], "unchecked": 0, "unlabelled": 0},
    }
    assert held(clean_store) == before


async def test_hosts_that_leave(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2", zone="az2")
    await select(api, claim_ids=["mine"], hosts=["h1", "h2"], zone="az1")
    for verb in ("drain", "without"):
        found = (await api.post(f"/v1/plans/{verb}", json={"hosts": ["h1"]})).json()
        assert (found["hosts"], found["moves"]) == (["h1"], [])
        [stays] = found["unplaced"]
        assert (stays["claim_id"], stays["host"]) == ("mine", "h1")
    check_problem(await api.post("/v1/plans/drain", json={"hosts": ["h9"]}), 404, "not-found")
    check_problem(await api.post("/v1/plans/drain", json={"hosts": []}), 422, "invalid-request")


async def test_further_hosts(api: httpx.AsyncClient) -> None:
    new = {"name": "new-{n}", "repeat": 3, "zone": "az2", "inventories": {"VCPU": {"total": 4}}}
    body = {"hosts": [new], "request": {"resources": {"VCPU": 2}}}
    found = (await api.post("/v1/plans/with", json=body)).json()
    assert (found["hosts"], found["room"]) == (3, {"before": 4, "after": 10, "at_least": False})
    assert found["classes"][1] == {"resource_class": "VCPU", "capacity": 20, "free": 8, "after": 20}
    wrong = {
        "new": "needs {n} in the name",
        "h1": "needs {n} in the name",
        "a b-{n}": "name",
    }
    for name, words in wrong.items():
        problem = check_problem(
            await api.post("/v1/plans/with", json={"hosts": [{**new, "name": name}]}), 422, "invalid-request"
        )
        assert words in problem["detail"]
    twice = {"hosts": [{**new, "name": "x", "repeat": 1}] * 2}
    assert "twice" in check_problem(await api.post("/v1/plans/with", json=twice), 422, "invalid-request")["detail"]
    there = {"hosts": [{**new, "name": "h1", "repeat": 1}]}
    assert "already" in check_problem(await api.post("/v1/plans/with", json=there), 422, "invalid-request")["detail"]
    far = {"hosts": [{**new, "cell": "c9"}]}
    check_problem(await api.post("/v1/plans/with", json=far), 404, "not-found")


async def test_bad_bodies_are_refused(api: httpx.AsyncClient) -> None:
    for body, words in (
        ({"request": {**NEED, "claim_ids": ["mine"]}}, "request: claim_ids belong to one selection"),
        ({"request": NEED, "n_plus_one": "rack"}, "n_plus_one: by 'rack' is not a topology"),
        ({"request": NEED, "n_plus_one": 3}, "n_plus_one: "),
        ({"request": {}}, "request"),
        ({}, "request"),
        ({"request": {**NEED, "server_group": "nobody"}}, ""),
    ):
        answer = await api.post("/v1/plans/capacity", json=body)
        assert answer.status_code in (404, 422), answer.text
        assert words in answer.json()["detail"]


async def test_a_plan_beyond_its_budget_is_too_hard(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count is a lower bound then."""
    await select(api, claim_ids=["mine"])
    [cell] = api._transport.app.state.scheduler.cells  # type: ignore[attr-defined]
    planner = api._transport.app.state.scheduler._limits.planner  # type: ignore[attr-defined]
    assert isinstance(planner, Planner)
    monkeypatch.setattr(planner, "_limit_s", 0.0)
    problem = check_problem(await api.post("/v1/plans/drain", json={"hosts": ["h1"]}), 422, "too-hard")
    assert "REDSCHED_PLAN_LIMIT_S" in problem["detail"]
    found = (await api.post("/v1/plans/capacity", json={"request": NEED})).json()
    assert (found["places"], found["at_least"]) == (0, True)
    assert int(cell.updater.columns.claims.sum()) == 1


async def test_moves_are_planned_and_carried_out_by_separate_calls(api: httpx.AsyncClient) -> None:
    """A claim without an agent is not active on its target in time, which the response says; the move goes on."""
    await put_host(api, "h2")
    for name, other in (("one", "h2"), ("two", "h1")):
        await api.post(f"/v1/hosts/{other}/disable")
        found = await select(api, claim_ids=[name], resources={"VCPU": 2})
        await api.post(f"/v1/claims/{name}/confirm", json={"token": found["token"]})
        await api.post(f"/v1/hosts/{other}/enable")
    whole = {"resources": {"VCPU": 8}}
    plan = (await api.post("/v1/plans/rebalance", json={"for": "request", "request": whole, "max_moves": 3})).json()
    assert (plan["before"], plan["after"], plan["is_cut"]) == (0, 1, False)
    [move] = plan["moves"]
    answer = await api.post("/v1/plans/rebalance/apply", json={"moves": plan["moves"], "timeout_s": 1})
    [made] = answer.json()["moves"]
    assert made["claim_id"] == move["claim_id"]
    assert "not active on" in made["problem"]
    claim = (await api.get(f"/v1/claims/{move['claim_id']}")).json()
    assert {one["host"] for one in claim["placements"]} == {"h1", "h2"}
    again = await api.post("/v1/plans/rebalance/apply", json={"moves": plan["moves"], "timeout_s": 1})
    assert again.json() == answer.json()
    stale = [{**plan["moves"][0], "source": "h3"}]
    answer = await api.post("/v1/plans/rebalance/apply", json={"moves": stale})
    assert "plan again" in answer.json()["moves"][0]["problem"]


async def test_bad_rebalancing_is_refused(api: httpx.AsyncClient) -> None:
    gang = {"members": [{"name": "a", "resources": {"VCPU": 1}}, {"name": "b", "resources": {"VCPU": 2}}]}
    for body, words in (
        ({"for": "nothing"}, "for"),
        ({}, "for"),
        ({"for": "request"}, "request to make room for"),
        ({"for": "drain", "hosts": ["h1"], "policy": "pack"}, "policy does not belong"),
        ({"for": "request", "request": NEED, "max_moves": 0}, "max_moves"),
        ({"for": "request", "request": NEED, "max_moves": "3"}, "max_moves"),
        ({"for": "request", "request": gang}, "largest member"),
        ({"for": "policy", "policy": "nope"}, "unknown policy"),
    ):
        problem = check_problem(await api.post("/v1/plans/rebalance", json=body), 422, "invalid-request")
        assert words in problem["detail"], problem
    check_problem(await api.post("/v1/plans/rebalance/apply", json={"moves": []}), 422, "invalid-request")


async def test_many_reports_are_made_while_others_have_their_turn() -> None:
    new = {"name": "new-{n}", "repeat": MAX_NEW_HOSTS, "inventories": {"VCPU": {"total": 4}}}
    body, turns = AddingBody.model_validate_json(json.dumps({"hosts": [new]})), [0]

    async def others() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    assert len(await body.reports()) == MAX_NEW_HOSTS
    assert turns[0] > 2
    await aio.end(task)
