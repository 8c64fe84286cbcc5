"""Status 202: work that continues after the response, and what to watch until it is done."""

from typing import Any

import httpx
import pytest

from tests.api.parts import put_host, select
from tests.support.waiting import wait_until


def watched(answer: httpx.Response) -> str:
    """Check that a response is 202 with something to watch, and return its path."""
    assert answer.status_code == 202, answer.text
    assert answer.json()["watch"] == answer.headers["location"]
    return str(answer.headers["location"])


async def verb(api: httpx.AsyncClient, claim: dict[str, Any], name: str, **body: Any) -> httpx.Response:
    return await api.post(f"/v1/claims/{claim['claim_id']}/{name}", json={"token": claim["token"], **body})


async def running(api: httpx.AsyncClient, claim_id: str, **body: Any) -> dict[str, Any]:
    claim = await select(api, claim_ids=[claim_id], **body)
    assert (await verb(api, claim, "confirm")).status_code == 200
    return claim


async def gone(api: httpx.AsyncClient, claim: dict[str, Any], host: str = "h1") -> None:
    """Have the host report that the work of a claim has ended."""
    await put_host(api, host, ended=[{"id": claim["claim_id"], "token": claim["token"]}])


async def test_a_move_is_watched_until_the_claim_is_at_its_target_alone(api: httpx.AsyncClient) -> None:
    claim = await running(api, "c")
    await put_host(api, "h2")
    moving = await verb(api, claim, "move")
    path = watched(moving)
    assert [one["host"] for one in (await api.get(path)).json()["placements"]] == ["h1", "h2"]
    assert (await verb(api, moving.json(), "confirm")).status_code == 200
    watched(await verb(api, claim, "move"))  # its source has not ended yet
    await gone(api, claim)

    async def moved() -> bool:
        return [one["host"] for one in (await api.get(path)).json()["placements"]] == ["h2"]

    await wait_until(moved, what="it is at its target alone")
    assert (await verb(api, claim, "move")).status_code == 200


async def test_a_resize_is_watched_until_the_host_has_done_it(api: httpx.AsyncClient) -> None:
    at_once = await verb(api, await select(api), "resize", resources={"VCPU": 1})
    assert at_once.status_code == 200, "no host runs it yet"
    claim = await running(api, "c")
    path = watched(await verb(api, claim, "resize", resources={"VCPU": 1}))
    resizing = (await api.get(path)).json()
    assert resizing["resizing_to"]["VCPU"] == 1
    held = {"id": "c", "token": resizing["token"], "state": "active", "slots": resizing["resizing_to"]}
    await put_host(api, "h1", claims=[held])
    done = (await api.get(path)).json()
    assert (done["resizing_to"], done["slots"]["VCPU"]) == ({}, 1)


async def test_a_shelving_is_watched_until_the_work_is_gone(api: httpx.AsyncClient) -> None:
    assert (await verb(api, await select(api), "shelve")).status_code == 200, "no host runs it yet"
    claim = await running(api, "c")
    path = watched(await verb(api, claim, "shelve"))
    assert (await api.get(path)).json()["state"] == "ending"
    await gone(api, claim)
    assert (await api.get(path)).json()["end_reason"] == "shelved"


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/v1/claims"), ("POST", "/v1/claims/shelve")])
async def test_many_claims_are_watched_in_the_list_of_those_that_are_ending(
    api: httpx.AsyncClient, method: str, path: str
) -> None:
    first = await running(api, "a", project="web")
    await select(api, claim_ids=["b"], project="db")
    await running(api, "other", project="own")
    query = {"project": ["web", "db"], "host": "h1", "state": ["active", "claimed"]}
    answer = await api.request(method, path, params=query)
    watch = watched(answer)
    assert [one["claim_id"] for one in (await api.get(watch)).json()["claims"]] == ["a"]
    await gone(api, first)
    assert (await api.get(watch)).json()["claims"] == []
    again = await api.request(method, path, params=query)
    assert (again.status_code, again.json()["watch"]) == (200, None)


async def test_a_drain_with_moves_is_watched_until_the_host_is_empty(api: httpx.AsyncClient) -> None:
    claim = await running(api, "c")
    assert (await api.get("/v1/hosts/h1/drain")).json()["state"] == "none"
    assert (await api.post("/v1/hosts/h1/drain")).status_code == 204, "nothing goes on by itself"
    assert (await api.get("/v1/hosts/h1/drain")).json()["state"] == "waiting"
    await put_host(api, "h2")
    path = watched(await api.post("/v1/hosts/h1/drain", json={"move": True}))
    found = (await api.get(path)).json()
    assert (found["host"], found["state"], found["claims"], found["draining"]) == ("h1", "moving", 1, "move")

    async def has_target() -> bool:
        return len((await api.get("/v1/claims/c")).json()["placements"]) == 2

    await wait_until(has_target, what="a scheduler moves the claim")
    (target,) = [one for one in (await api.get("/v1/claims/c")).json()["placements"] if one["host"] == "h2"]
    assert (await verb(api, {"claim_id": "c", "token": target["token"]}, "confirm")).status_code == 200
    await gone(api, claim)

    async def empty() -> bool:
        return bool((await api.get(path)).json()["state"] == "empty")

    await wait_until(empty, what="the host is empty")


async def test_an_evacuation_is_watched_and_a_write_off_alone_is_done(api: httpx.AsyncClient) -> None:
    claim = await select(api)
    assert (await verb(api, claim, "confirm")).status_code == 200
    assert (await api.post("/v1/hosts/h1/write-off", json={"force": True})).status_code == 204
    path = watched(await api.post("/v1/hosts/h1/write-off", json={"evacuate": True}))
    found = (await api.get(path)).json()
    assert (found["state"], found["draining"], found["claims"]) == ("moving", "evacuate", 1)
    assert [one["claim_id"] for one in found["unmovable"]] == [claim["claim_id"]]
