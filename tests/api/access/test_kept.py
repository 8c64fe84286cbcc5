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
        cell = scheduler.cells.named("c1").store
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
async def test_a_refusal_says_for_whom_something_is_kept_to_those_who_may_know_it(
    api: Callers, kept_for: str, who: str
) -> None:
    knows = who == "operator" or kept_for == "web"
    answer = await api.send(who, "POST", "/v1/selections", json=LARGE)
    problem = answer.json()
    assert answer.status_code == 409
    assert [one["reason"] for one in problem["reasons"]] == ["kept"]
    named = f"6 VCPU are kept for request big of project {kept_for}"
    assert (named if knows else "6 VCPU are kept for a request that waits") in problem["detail"]
    expected = {"slots": {"VCPU": 6}, "request": "big", "project": kept_for} if knows else OF_ANOTHER
    assert problem["nearest"][0]["kept"] == expected
    assert ("big" in answer.text) == knows


@pytest.mark.parametrize("who", ["operator", "web"])
async def test_so_does_the_refusal_of_a_resize(api: Callers, kept_for: str, who: str) -> None:
    small = {"resources": {"VCPU": 1}, "project": "web", "claim_ids": ["web-mine"]}
    (made,) = (await api.done(who, "POST", "/v1/selections", json=small))["selections"]
    wanted = {"token": made["token"], "resources": {"VCPU": 8}}
    problem = (await api.send(who, "POST", "/v1/claims/web-mine/resize", json=wanted)).json()
    knows = who == "operator" or kept_for == "web"
    assert (problem["rule"], problem["value"], problem["slot"], problem["asked"]) == ("kept", 6, "VCPU", 8)
    assert (f"kept for request big of project {kept_for}" in problem["detail"]) == knows
    assert problem["kept"]["request"] == ("big" if knows else "")


@pytest.mark.parametrize(("who", "sees"), [("operator", ("web", "db")), ("reader", ("web", "db")), ("of-h1", ("web",))])
async def test_the_page_of_a_host_names_it_to_those_who_may_know_it(
    api: Callers, kept_for: str, who: str, sees: tuple[str, ...]
) -> None:
    """An agent sees its own host, and the requests of its projects."""
    found: dict[str, Any] = await api.done(who, "GET", "/v1/hosts/h1")
    assert (found["kept"], found["slots"]["VCPU"]["kept"]) == ({"VCPU": 6}, 6)
    named = (found.get("reservation_request"), found.get("reservation_project"))
    assert named == (("big", kept_for) if kept_for in sees else (None, None))
