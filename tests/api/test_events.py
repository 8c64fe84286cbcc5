"""GET /v1/events: pages, filters and the newest; what cannot be asked is refused."""

import httpx

from redsched.scheduler.recorder import Recorder
from redsched.settings import Settings
from redsched.store import Store
from tests.api.parts import check_problem, select


async def record(url: str) -> None:
    """Have all that has happened be in the log."""
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
