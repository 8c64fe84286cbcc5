"""Who learns for which request a host keeps something: operators and readers, and the project that it is of."""

from typing import Any

import pytest

from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.api.access.parts import Callers, put_host

LARGE = {"resources": {"VCPU": 8}, "project": "web"}
OF_ANOTHER = {"slots": {"VCPU": 6}, "request": "", "project": ""}


@pytest.fixture(params=["web", "db"])
async def kept_for(api: Callers, clean_store: str, request: pytest.FixtureRequest) -> str:
    """Return the project of the request for which h1 keeps something."""
    await put_host(api, "h1")
    async with Scheduler.connect(clean_store, Settings(), on_demand=True) as scheduler:
        cell = scheduler._cells.named("c1").store
        await cell.reservations.put("h1", "r1", {"VCPU": 6}, 60_000, 0, 9, "big", request.param)
    return str(request.param)


@pytest.mark.parametrize("who", ["operator", "reader", "both", "web", "web-sees"])
async def test_an_explanation_names_the_request_to_those_who_may_know_it(api: Callers, kept_for: str, who: str) -> None:
    knows = who in ("operator", "reader", "both") or kept_for == "web"
    expected = {"slots": {"VCPU": 6}, "request": "big", "project": kept_for} if knows else OF_ANOTHER
    query = "?host=h1" if who in ("operator", "reader", "web-sees") else ""
    found = await api.done(who, "POST", f"/v1/explain{query}", json=LARGE)
    assert found["nearest"][0]["kept"] == expected
    assert [one["kept"] for one in found["checks"]] == [expected] * bool(query)


@pytest.mark.parametrize("who", ["operator", "web"])
async def test_a_refusal_says_what_is_kept_and_not_for_whom(api: Callers, kept_for: str, who: str) -> None:
    answer = await api.send(who, "POST", "/v1/selections", json=LARGE)
    assert answer.status_code == 409, kept_for
    assert answer.json()["nearest"][0]["kept"] == OF_ANOTHER
    assert "big" not in answer.text


@pytest.mark.parametrize(("who", "sees"), [("operator", ("web", "db")), ("reader", ("web", "db")), ("of-h1", ("web",))])
async def test_the_page_of_a_host_names_it_to_those_who_may_know_it(
    api: Callers, kept_for: str, who: str, sees: tuple[str, ...]
) -> None:
    """An agent sees its own host, and the requests of its projects."""
    found: dict[str, Any] = await api.done(who, "GET", "/v1/hosts/h1")
    assert (found["kept"], found["slots"]["VCPU"]["kept"]) == ({"VCPU": 6}, 6)
    named = (found.get("reservation_request"), found.get("reservation_project"))
    assert named == (("big", kept_for) if kept_for in sees else (None, None))
