"""Agents: their own hosts, what their token allows to be reported, and the claims that are placed there."""

from typing import Any

import pytest

from redsched.api.access.agents import check_report
from redsched.auth.caller import Caller
from redsched.errors import Forbidden
from redsched.model.hosts import Inventory, Pool
from redsched.model.role import Role
from redsched.requests.reports import HeldClaimBody, ReportBody
from tests.api.access.parts import Callers, put_host, settle
from tests.api.access.test_tenants import alike
from tests.api.parts import REPORT, check_problem, held

AGENT = Caller(
    id="of-h1",
    role=Role.AGENT,
    projects=frozenset(("web",)),
    hosts=frozenset(("h1",)),
    cell="c1",
    zones=frozenset(("az1",)),
    labels=frozenset(("rack",)),
    traits=frozenset(("CUSTOM_SSD",)),
)


def report(**changed: Any) -> ReportBody:
    """Return a report that the agent may send, with changes."""
    allowed: dict[str, Any] = {
        "name": "h1",
        "zone": "az1",
        "labels": {"rack": "r4"},
        "traits": frozenset(("CUSTOM_SSD",)),
        "inventories": {"VCPU": Inventory(8)},
        "pools": {"numa0": Pool(inventories={"PCPU": Inventory(4)})},
    }
    return ReportBody(**{**allowed, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "h2"},
        {"cell": "c2"},
        {"zone": "az2"},
        {"labels": {"rack": "r4", "tier": "gold"}},
        {"traits": frozenset(("CUSTOM_SSD", "CUSTOM_GPU"))},
        {"pools": {"gpu0": Pool(inventories={"PCPU": Inventory(4)}, traits=frozenset(("CUSTOM_GPU",)))}},
        {"claims": (HeldClaimBody(id="x", slots={"VCPU": 1}, project="db"),)},
        {"claims": (HeldClaimBody(id="x", slots={"VCPU": 1}),)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_report_is_limited_to_what_the_token_allows(changed: dict[str, Any]) -> None:
    with pytest.raises(Forbidden):
        check_report(AGENT, report(**changed))
    check_report(Caller("boss", Role.OPERATOR), report(**changed))


def test_what_the_token_allows_may_be_reported() -> None:
    """A token that names no zones, labels or traits allows all of them; local claims need a project of the token."""
    check_report(AGENT, report(claims=(HeldClaimBody(id="x", slots={"VCPU": 1}, project="web"),)))
    free = Caller("of-h1", Role.AGENT, hosts=frozenset(("h1",)))
    check_report(free, report(zone="az7", labels={"tier": "gold"}, traits=frozenset(("CUSTOM_GPU",))))


async def test_reports_over_rest_are_checked(settled: Callers, clean_store: str) -> None:
    before = held(clean_store)
    for method, body in (
        ("PUT", {**REPORT, "zone": "az2"}),
        ("PATCH", {"zone": "az2"}),
        ("PUT", {**REPORT, "claims": [{"id": "mine", "slots": {"VCPU": 1}, "project": "db"}]}),
    ):
        answer = await settled.send("of-h1", method, "/v1/hosts/h1/report", json=body)
        check_problem(answer, 403, "forbidden")
    assert held(clean_store) == before
    assert (await settled.send("of-h1", "PATCH", "/v1/hosts/h1/report", json={"labels": {"rack": "r9"}})).is_success


async def test_a_host_of_others_is_refused_whether_it_exists_or_not(settled: Callers) -> None:
    for method, path, body in (
        ("GET", "/v1/hosts/{}", None),
        ("GET", "/v1/hosts/{}/inbox", None),
        ("POST", "/v1/hosts/{}/heartbeat", {"lease_s": 30}),
        ("PUT", "/v1/hosts/{}/report", REPORT),
    ):
        more = {"json": body} if body else {}
        answers = [await settled.send("of-h1", method, path.format(host), **more) for host in ("h2", "h9")]
        assert alike(answers[0], "h2") == alike(answers[1], "h9")
        check_problem(answers[0], 403, "forbidden")


async def test_an_agent_sees_and_touches_claims_on_its_hosts_alone(api: Callers, clean_store: str) -> None:
    claims = await settle(api)
    before = held(clean_store)
    body = {"token": claims["db-1"]["token"]}
    for verb in ("confirm", "renew", "fail"):
        answers = [await api.send("of-h1", "POST", f"/v1/claims/{one}/{verb}", json=body) for one in ("db-1", "db-9")]
        assert alike(answers[0], "db-1") == alike(answers[1], "db-9")
        check_problem(answers[0], 404, "not-found")
    assert (await api.send("of-h1", "GET", "/v1/claims/db-1")).status_code == 404
    assert held(clean_store) == before
    assert [one["claim_id"] for one in (await api.done("of-h1", "GET", "/v1/claims"))["claims"]] == ["web-1"]
    assert (await api.done("of-h1", "GET", "/v1/claims?host=h2"))["claims"] == []
    mine = {"json": {"token": claims["web-1"]["token"]}}
    assert (await api.done("of-h1", "POST", "/v1/claims/web-1/confirm", **mine))["state"] == "active"


async def test_an_agent_cannot_act_on_the_other_placement_of_a_move(api: Callers, clean_store: str) -> None:
    """The claim is on its host, but the token is of the placement on another one. Nor is it shown that host."""
    given = (await settle(api))["web-1"]["token"]
    await api.done("of-h1", "POST", "/v1/claims/web-1/confirm", json={"token": given})
    moved = await api.done("operator", "POST", "/v1/claims/web-1/move", json={"token": given, "hosts": ["h2"]})
    target = next(one["token"] for one in moved["placements"] if one["host"] == "h2")
    before = held(clean_store)
    for verb in ("confirm", "renew", "fail"):
        answer = await api.send("of-h1", "POST", f"/v1/claims/web-1/{verb}", json={"token": target})
        check_problem(answer, 404, "not-found")
    assert held(clean_store) == before
    shown = await api.send("of-h1", "GET", "/v1/claims/web-1")
    assert shown.json()["host"] == "h1"
    assert "h2" not in shown.text
    assert "h1" not in (await api.send("of-h2", "GET", "/v1/claims/web-1")).text
    assert (await api.done("of-h2", "POST", "/v1/claims/web-1/confirm", json={"token": target}))["state"] == "active"


async def test_a_failure_does_not_tell_an_agent_where_its_claim_goes(api: Callers) -> None:
    given = (await settle(api))["web-1"]["token"]
    check_problem(
        await api.send("of-h1", "POST", "/v1/claims/web-1/fail", json={"token": given, "alternates": ["h2"]}),
        403,
        "forbidden",
    )
    answer = await api.send("of-h1", "POST", "/v1/claims/web-1/fail", json={"token": given})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["host"], "h2" in answer.text, "h3" in answer.text) == ("", False, False)


async def test_a_new_host_can_be_reported_by_its_agent(api: Callers) -> None:
    await put_host(api, "h9")
    first = await api.send("of-h1", "PUT", "/v1/hosts/h1/report", json={**REPORT, "traits": []})
    assert first.status_code == 200, first.text
