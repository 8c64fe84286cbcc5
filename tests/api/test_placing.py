"""Verbs that place a claim on another host or change its size: their responses, and what they refuse."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.parts import NEED, check_problem, held, put_host, select
from tests.support.builders.cells import raw_client
from tests.support.waiting import patience_s, wait_until


@pytest.fixture
async def two_hosts(api: httpx.AsyncClient) -> httpx.AsyncClient:
    """Add h2, which equals h1."""
    await put_host(api, "h2")
    return api


async def said(api: httpx.AsyncClient, claim: dict[str, Any], name: str, status: int, **more: Any) -> dict[str, Any]:
    """Call a verb on a claim, check the status, and return the response."""
    body = {"token": claim["token"], **more} if name != "unshelve" else more
    answer = await api.post(f"/v1/claims/{claim['claim_id']}/{name}", json=body)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def other(host: str) -> str:
    return "h2" if host == "h1" else "h1"


async def test_a_move_answers_the_target_until_it_has_moved(two_hosts: httpx.AsyncClient) -> None:
    claim = await select(two_hosts)
    target = await said(two_hosts, claim, "move", 202)
    assert (target["claim_id"], target["host"]) == (claim["claim_id"], other(claim["host"]))
    assert (await said(two_hosts, claim, "move", 202, hosts=["h1", "h2"]))["token"] == target["token"]
    source = (await two_hosts.get(f"/v1/claims/{claim['claim_id']}")).json()
    assert (source["host"], source["token"]) == (claim["host"], claim["token"])
    assert [one["host"] for one in source["placements"]] == [claim["host"], target["host"]]
    await said(two_hosts, target, "confirm", 200)

    async def moved() -> bool:
        found = (await two_hosts.get(f"/v1/claims/{claim['claim_id']}")).json()
        return bool(found["token"] == target["token"] and len(found["placements"]) == 1)

    await wait_until(moved, what="it is at the target alone")
    await said(two_hosts, claim, "move", 200)


async def test_a_live_move_has_a_deadline(two_hosts: httpx.AsyncClient) -> None:
    target = await said(two_hosts, await select(two_hosts), "move", 202, live=True)
    (placement,) = [one for one in target["placements"] if one["token"] == target["token"]]
    assert 240_000 < placement["move_deadline_ms"] - target["claimed_at_ms"] < 360_000


async def test_a_move_that_nothing_fits_gives_the_reason(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    body = {"token": claim["token"]}
    found = check_problem(await api.post(f"/v1/claims/{claim['claim_id']}/move", json=body), 409, "no-valid-host")
    assert {one["reason"] for one in found["reasons"]} == {"exclude_hosts"}


async def test_fail_answers_the_next_place(two_hosts: httpx.AsyncClient) -> None:
    """If no host is left, the response is 409 with the claim's id, and the claim ends."""
    claim = await select(two_hosts)
    now = await said(two_hosts, claim, "fail", 200)
    assert (now["host"], now["claim_id"], now["state"]) == (other(claim["host"]), claim["claim_id"], "claimed")
    answer = await two_hosts.post(f"/v1/claims/{claim['claim_id']}/fail", json={"token": now["token"]})
    assert check_problem(answer, 409, "no-valid-host")["claim_id"] == now["claim_id"]
    assert (await two_hosts.get(f"/v1/claims/{claim['claim_id']}")).json()["end_reason"] == "failed"


async def test_resize_by_class_and_by_slot(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    grown = await said(api, claim, "resize", 200, resources={"VCPU": 5})
    assert grown["slots"] == {**claim["slots"], "VCPU": 5}
    found = check_problem(
        await api.post(f"/v1/claims/{claim['claim_id']}/resize", json={"token": grown["token"], "slots": {"VCPU": 99}}),
        409,
        "no-valid-host",
    )
    assert (found["slot"], found["asked"]) == ("VCPU", 99)


async def test_shelve_and_unshelve(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    assert (await said(api, claim, "shelve", 200))["end_reason"] == "shelved"
    assert (await api.get("/v1/hosts/h1")).json()["slots"]["VCPU"]["claimed"] == 0
    path = f"/v1/claims/{claim['claim_id']}/unshelve"
    back = await api.post(path)
    assert (back.status_code, back.json()["claim_id"]) == (201, claim["claim_id"])
    assert (await api.post(path, json={})).json()["token"] == back.json()["token"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("fail", {"alternates": ["a b"]}),
        ("fail", {"alternates": "h2"}),
        ("move", {"hosts": ["a b"]}),
        ("move", {"live": "yes"}),
        ("move", {"deadline_s": -1}),
        ("move", {"queue_timeout_s": 3601}),
        ("resize", {"resources": {"VCPUS": 1}}),
        ("resize", {"resources": {"VCPU": -1}}),
        ("resize", {"slots": {"a b/VCPU": 1}}),
        ("resize", {"resources": {"VCPU": 0, "MEMORY_MB": 0}}),
        ("shelve", {"queue_timeout_s": 1}),
    ],
)
async def test_a_bad_body_is_a_problem(
    api: httpx.AsyncClient, clean_store: str, name: str, body: dict[str, Any]
) -> None:
    claim = await select(api)
    before = held(clean_store)
    answer = await api.post(f"/v1/claims/{claim['claim_id']}/{name}", json={"token": claim["token"], **body})
    check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


async def test_unshelve_and_drain_read_a_body_where_there_is_one(api: httpx.AsyncClient) -> None:
    check_problem(await api.post("/v1/claims/x/unshelve", json={"now": True}), 422, "invalid-request")
    check_problem(await api.post("/v1/hosts/h1/drain", json={"moves": True}), 422, "invalid-request")
    check_problem(await api.post("/v1/hosts/h1/write-off", content=b"x"), 415, "unsupported-media-type")
    assert (await api.post("/v1/hosts/h1/drain", json={"move": True})).status_code == 202
    assert (await api.get("/v1/hosts/h1")).json()["draining"] == "move"


async def test_a_drain_has_a_deadline_only_with_moves(api: httpx.AsyncClient) -> None:
    bad: list[dict[str, Any]] = [{"deadline_s": 60}, {"move": True, "then": "stop"}, {"move": True, "deadline_s": -1}]
    for body in (*bad, {"move": True, "deadline_s": 60, "then": "wait"}):
        check_problem(await api.post("/v1/hosts/h1/drain", json=body), 422, "invalid-request")
    asked = {"move": True, "deadline_s": 60, "then": "stop"}
    assert (await api.post("/v1/hosts/h1/drain", json=asked)).status_code == 202
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["draining"], found["drain_then"]) == ("move", "stop")
    assert found["drain_deadline_ms"] > 0
    assert (await api.post("/v1/hosts/h1/drain")).status_code == 204
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["draining"], found["drain_deadline_ms"], found["drain_then"]) == ("", None, "")


async def test_a_host_that_is_emptied_shows_what_cannot_leave(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    await said(api, claim, "confirm", 200)  # a claim that is not active yet would end as failed at the next sweep
    assert (await api.post("/v1/hosts/h1/write-off", json={"evacuate": True, "force": True})).status_code == 202
    found = (await api.get("/v1/hosts/h1")).json()
    assert (found["draining"], [one["claim_id"] for one in found["unmovable"]]) == ("evacuate", [claim["claim_id"]])
    assert "none of 1 hosts can take" in found["unmovable"][0]["reason"]


async def test_until_active_is_504_when_no_host_confirms(api: httpx.AsyncClient) -> None:
    """All claims are released, and the response lists the failed attempts."""
    need = {"resources": {"VCPU": 8}, "until": "active"}
    found = check_problem(await api.post("/v1/selections", json={**need, "confirm_timeout_s": 1}), 504, "not-confirmed")
    [claim_id] = found["claim_ids"]
    assert (await api.get(f"/v1/claims/{claim_id}")).json()["state"] == "ended"
    [attempt] = found["failed_attempts"]
    assert attempt.pop("at_ms") > 0
    assert attempt == {"claim_id": claim_id, "host": "h1", "kind": "not-confirmed", "reason": "within 1 s"}


async def test_until_active_answers_what_is_confirmed(api: httpx.AsyncClient) -> None:
    need = {"resources": {"VCPU": 8}, "until": "active", "confirm_timeout_s": 60, "claim_ids": ["mine"]}
    selecting = asyncio.create_task(api.post("/v1/selections", json=need))
    claim: dict[str, Any] = {}

    async def is_claimed() -> bool:
        claim.update((await api.get("/v1/claims/mine")).json())
        return claim.get("state") == "claimed"

    await wait_until(is_claimed, what="it is claimed")
    await said(api, claim, "confirm", 200)
    async with asyncio.timeout(patience_s(30)):
        answer = await selecting
    assert (answer.status_code, answer.json()["selections"][0]["state"]) == (201, "active")


async def test_alternates_and_attempts_are_kept_with_the_claim(api: httpx.AsyncClient) -> None:
    """A retry with its id returns the same alternates."""
    await put_host(api, "h2")
    await api.post("/v1/explain", json=NEED)  # its response means that the replica has the host
    need = {**NEED, "hosts": ["h1", "h2"], "alternates": 1, "max_attempts": 2, "claim_ids": ["mine"]}
    [first] = (await api.post("/v1/selections", json=need)).json()["selections"]
    again = await api.post("/v1/selections", json=need)
    assert (again.status_code, again.json()["selections"]) == (200, [first])
    shown = (await api.get("/v1/claims/mine")).json()
    assert (shown["alternates"], shown["attempts"], shown["max_attempts"]) == (first["alternates"], 1, 2)
    assert [one["host"] for one in first["alternates"]] == [other(first["host"])]
    check_problem(await api.post("/v1/selections", json={**need, "max_attempts": 3}), 422, "claim-id-reused")


async def test_a_claim_that_is_failed_without_hosts_goes_to_its_alternate(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2")
    await put_host(api, "h3")
    await api.post("/v1/explain", json=NEED)  # its response means that the replica has the hosts
    need = {**NEED, "alternates": 1, "hosts": ["h1", "h2", "h3"]}
    [found] = (await api.post("/v1/selections", json=need)).json()["selections"]
    now = await said(api, found, "fail", 200)
    assert (now["host"], now["attempts"], now["alternates"]) == (found["alternates"][0]["host"], 2, [])


async def test_a_claim_shows_its_restarts_and_when_a_place_is_looked_for_next(
    api: httpx.AsyncClient, clean_store: str
) -> None:
    """A service is pending, since its host has shrunk."""
    [found] = (await api.post("/v1/selections", json={**NEED, "claim_ids": ["mine"], "on_exit": "replace"})).json()[
        "selections"
    ]
    now = await said(api, found, "confirm", 200)
    assert (now["restarts"], now["next_attempt_at_ms"]) == (0, None)
    await put_host(api, "h1", inventories={"VCPU": {"total": 1}, "MEMORY_MB": {"total": 16_384}})
    check_problem(await api.post("/v1/claims/mine/fail", json={"token": found["token"]}), 409, "no-valid-host")
    async with raw_client(clean_store) as raw:
        await raw.hset("rs:{c1}:claim:mine", "restarts", 3)
        due_ms = int(await raw.zscore("rs:{c1}:reconcile", "mine"))
    shown = (await api.get("/v1/claims/mine")).json()
    assert (shown["state"], shown["restarts"], shown["next_attempt_at_ms"]) == ("pending", 3, due_ms)
