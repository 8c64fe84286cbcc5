"""GET /v1/events: pages, filters and the newest events; queries that make no sense are refused."""

import httpx

from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from redsched.store.store import Store
from tests.api.parts import check_problem, select


async def record(url: str) -> None:
    """Record all changes in the event log."""
    async with Store.connect(url) as store:
        await Recorder(store.cell("c1"), Settings()).record()


async def test_events_tell_who_claimed_and_released_what(api: httpx.AsyncClient, clean_store: str) -> None:
    for number in range(3):
        await select(api, claim_ids=[f"id-{number}"], project="web")
        await api.delete(f"/v1/claims/id-{number}")
    await record(clean_store)
    found = (await api.get("/v1/events", params={"claim": "id-1"})).json()
    assert [(one["kind"], one["project"]) for one in found["events"]] == [("claimed", "web"), ("released", "web")]
    assert found["next"] is None
    first = (await api.get("/v1/events", params={"project": "web", "limit": 2})).json()
    rest = (await api.get("/v1/events", params={"project": "web", "after": first["next"]})).json()
    told = [one["claim"] for one in first["events"] + rest["events"]]
    assert told == ["id-0", "id-0", "id-1", "id-1", "id-2", "id-2"]
    newest = (await api.get("/v1/events", params={"newest": "true", "limit": 1})).json()
    assert [one["id"] for one in newest["events"]] == [rest["events"][-1]["id"]]


async def test_what_cannot_be_asked_of_events(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/events", params={"after": "nonsense"}), 422, "invalid-request")
    check_problem(await api.get("/v1/events", params={"newest": "true", "after": "c1:1-1"}), 422, "invalid-request")
    check_problem(await api.get("/v1/events", params={"after": "c9:1-1"}), 404, "not-found")
    check_problem(await api.get("/v1/events", params={"colour": "red"}), 422, "invalid-request")
    for path in ("/v1/events", "/v1/claims/a/events"):
        problem = check_problem(await api.get(path, params={"kind": "foo"}), 422, "invalid-request")
        assert "unknown kind 'foo': events are active, attest, claimed" in problem["detail"]


async def test_a_claim_has_a_history_of_its_own(api: httpx.AsyncClient, clean_store: str) -> None:
    """It has the log's events of that claim, in pages."""
    for number in range(2):
        await select(api, claim_ids=[f"id-{number}"], project="web")
        await api.delete(f"/v1/claims/id-{number}")
    await record(clean_store)
    found = (await api.get("/v1/claims/id-1/events")).json()
    assert [one["kind"] for one in found["events"]] == ["claimed", "released"]
    assert found == (await api.get("/v1/events", params={"claim": "id-1"})).json()
    first = (await api.get("/v1/claims/id-1/events", params={"limit": 1})).json()
    rest = (await api.get("/v1/claims/id-1/events", params={"after": first["next"]})).json()
    assert first["events"] + rest["events"] == found["events"]
    newest = (await api.get("/v1/claims/id-1/events", params={"newest": "true", "limit": 1})).json()
    assert newest["events"] == found["events"][-1:]
    only = (await api.get("/v1/claims/id-1/events", params={"kind": "released"})).json()
    assert only["events"] == found["events"][1:]
    assert (await api.get("/v1/claims/nobody/events")).json() == {"events": [], "next": None}


async def test_what_cannot_be_asked_of_a_history(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/claims/a b/events"), 422, "invalid-request")
    check_problem(await api.get("/v1/claims/a/events", params={"claim": "b"}), 422, "invalid-request")
    check_problem(
        await api.get("/v1/claims/a/events", params={"newest": "1", "after": "c1:1-1"}), 422, "invalid-request"
    )
