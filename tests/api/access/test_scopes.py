"""The table of routes and roles: each route has a row, and each row is what happens."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from redsched.api.access.policies import RoutePolicies
from redsched.api.access.scopes import SCOPES
from redsched.auth.policy import Access
from redsched.errors import Forbidden
from redsched.model.role import Role
from redsched.settings import Settings
from tests.api.access.matrix import BEGIN, END, matrix
from tests.api.access.parts import STRANGERS, TOKENS, Callers, settle
from tests.api.parts import NEED, REPORT, app_of, check_problem, held
from tests.auth.parts import token
from tests.support.openapi import openapi_document

ROUTES = app_of(Settings()).state.routes
ROWS = sorted({(method, route.path) for route in ROUTES for method in route.methods - {"HEAD"}})
CLOSED = [row for row in ROWS if not SCOPES[row].is_open]

STALE = "1-a.1"
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/agent/calls/{name}"): {"hosts": ["h1"]},
    ("POST", "/v1/selections"): {**NEED, "project": "web"},
    ("POST", "/v1/explain"): {**NEED, "project": "web"},
    ("POST", "/v1/claims/{claim_id}/confirm"): {"token": STALE},
    ("POST", "/v1/claims/{claim_id}/renew"): {"token": STALE},
    ("POST", "/v1/claims/{claim_id}/fail"): {"token": STALE},
    ("POST", "/v1/claims/{claim_id}/move"): {"token": STALE},
    ("POST", "/v1/claims/{claim_id}/resize"): {"token": STALE, "resources": {"VCPU": 2}},
    ("POST", "/v1/claims/{claim_id}/shelve"): {"token": STALE},
    ("PUT", "/v1/hosts/{host}/report"): REPORT,
    ("PATCH", "/v1/hosts/{host}/report"): {"labels": {"rack": "r5"}},
    ("POST", "/v1/hosts/{host}/heartbeat"): {"lease_s": 3600},
    ("POST", "/v1/hosts/{host}/write-off"): {"force": True},
    ("PUT", "/v1/aggregates/{name}"): {"hosts": ["h3"]},
    ("PUT", "/v1/server-groups/{name}"): {"policy": "affinity"},
    ("PUT", "/v1/shared-pools/{name}"): {"inventories": {"CUSTOM_SEAT": {"total": 9}}},
    ("PUT", "/v1/quotas/{project}"): {"limits": {"VCPU": 5}},
    ("POST", "/v1/plans/capacity"): {"request": NEED, "n_plus_one": "host"},
    ("POST", "/v1/plans/drain"): {"hosts": ["h1"]},
    ("POST", "/v1/plans/without"): {"hosts": ["h1"]},
    ("POST", "/v1/plans/rebalance"): {"for": "drain", "hosts": ["h1"]},
    ("POST", "/v1/plans/rebalance/apply"): {
        "moves": [{"claim_id": "web-1", "token": "1-a.1", "source": "h1", "target": "h2"}]
    },
    ("POST", "/v1/plans/with"): {"hosts": [{"name": "new", "inventories": {"VCPU": {"total": 4}}}]},
}
QUERIES = {
    ("GET", "/v1/agent/hosts/{host}/claims/{claim_id}/texts"): "?name=alternates:web-1",
    ("DELETE", "/v1/hosts/{host}"): "?force=true",
    ("DELETE", "/v1/aggregates/{name}"): "?force=true",
    ("DELETE", "/v1/claims"): "?project=web",
    ("POST", "/v1/claims/renew"): "?project=web&lease_s=60",
    ("POST", "/v1/claims/shelve"): "?project=web",
    ("POST", "/v1/claims/unshelve"): "?project=web",
}
NAMES = {"agent": "claim-ids", "aggregates": "licensed", "server-groups": "spread", "shared-pools": "seats"}
BY_ROLE = {Role.TENANT: "web", Role.AGENT: "of-h1", Role.READER: "reader", Role.OPERATOR: "operator"}
OTHER = {Role.TENANT: "db", Role.AGENT: "of-h2"}


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert set(ROWS) == set(SCOPES)


def test_a_route_without_a_row_is_refused() -> None:
    rows = {row: policy for row, policy in SCOPES.items() if row != ("GET", "/v1/hosts")}
    with pytest.raises(Forbidden):
        RoutePolicies(ROUTES, rows).find("GET", "/v1/hosts")


def test_head_and_options_follow_the_methods_of_the_path() -> None:
    policies = RoutePolicies(ROUTES)
    assert policies.find("HEAD", "/v1/hosts")[0] is SCOPES["GET", "/v1/hosts"]
    options, _ = policies.find("OPTIONS", "/v1/quotas/web")
    assert options is not None
    assert (options.tenant, options.reader, options.agent) == (Access.PROJECTS, Access.ALL, Access.NONE)
    assert policies.find("OPTIONS", "/nothing")[0] is None


def test_the_documented_matrix_is_the_table() -> None:
    text = Path("docs/security.md").read_text()
    [shown] = re.findall(f"{re.escape(BEGIN)}\n(.*?){re.escape(END)}", text, re.DOTALL)
    assert shown == matrix(), "run: python -m tests.api.access.matrix"


def example(row: tuple[str, str]) -> Any:
    """Return the example of the body of an earlier agent's route, about h1 and web-1; None without."""
    if not row[1].startswith("/v1/agent"):
        return None
    operation = openapi_document()["paths"][row[1]][row[0].lower()]
    if "requestBody" not in operation:
        return None
    [content] = operation["requestBody"]["content"].values()
    found = content["example"]
    text = json.dumps({**found, **({"timeout_s": 0} if "timeout_s" in found else {})})
    return json.loads(text.replace("h17", "h1").replace("6f1c", "web-1"))


def target(row: tuple[str, str], claims: dict[str, dict[str, Any]]) -> tuple[str, Any]:
    """Return the path and the body of a request for the route, about what belongs to web and h1."""
    _, path = row
    claim_id = "web-shelved" if path.endswith("/unshelve") else "web-1"
    kind = path.split("/")[2] if path.count("/") > 1 else ""
    filled = path.format(claim_id=claim_id, host="h1", name=NAMES.get(kind, ""), project="web")
    body = BODIES.get(row) or example(row)
    if body and "token" in body:
        body = {**body, "token": claims["web-1"]["token"]}
    return filled + QUERIES.get(row, ""), body


async def send(api: Callers, who: str, row: tuple[str, str], path: str, body: Any) -> Any:
    """Send a request; of a stream, only its head."""
    more: dict[str, Any] = {} if body is None else {"json": body}
    method = "HEAD" if row == ("GET", "/v1/changes") else row[0]
    if who == "in the query":
        path = f"{path}{'&' if '?' in path else '?'}access_token={token('operator')}"
    return await api.send(who, method, path, **more)


@pytest.mark.parametrize("row", CLOSED, ids=" ".join)
async def test_those_who_may_not_change_nothing_and_learn_nothing(
    api: Callers, clean_store: str, row: tuple[str, str]
) -> None:
    """Strangers, each role that may not use the route, and callers that it is not for."""
    claims = await settle(api)
    path, body = target(row, claims)
    before = held(clean_store)
    await check_strangers(api, row, path, body)
    await check_other_roles(api, row, path, body)
    await check_others(api, row, path, body)
    assert held(clean_store) == before


async def check_strangers(api: Callers, row: tuple[str, str], path: str, body: Any) -> None:
    """Check that no token, an expired, a revoked and a forged one are refused."""
    for who in STRANGERS:
        answer = await send(api, who, row, path, body)
        assert answer.status_code == 401, (who, answer.text)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "h1" not in answer.text
        if row != ("GET", "/v1/changes"):
            check_problem(answer, 401, "unauthenticated")


async def check_other_roles(api: Callers, row: tuple[str, str], path: str, body: Any) -> None:
    """Check that the tokens of each role that may not use the route are refused."""
    for role, who in BY_ROLE.items():
        access = SCOPES[row].access(role)
        if access in (Access.NONE, Access.DRY_RUNS):
            answer = await send(api, who, row, path, body)
            assert answer.status_code == 403, (who, answer.text)


async def check_others(api: Callers, row: tuple[str, str], path: str, body: Any) -> None:
    """Check what a tenant of another project and the agent of another host get for what web and h1 may send."""
    for role, who in OTHER.items():
        if SCOPES[row].access(role) is Access.NONE:
            continue
        answer = await send(api, who, row, path, body)
        expected = {403} if "{host}" in path or row[1] in ("/v1/selections", "/v1/explain") else {404}
        if role is Role.AGENT and "{host}" in row[1]:
            expected = {403}
        if "{" not in row[1] and row[1] not in ("/v1/selections", "/v1/explain"):
            expected = {200}  # what it lists is the caller's own, or nothing
        if row[1].startswith("/v1/agent/"):
            expected = {403}  # whether the host is in the path or in the body
        if row[1] == "/v1/claims/{claim_id}/events":
            expected = {200}
        assert answer.status_code in expected, (who, answer.text)
        assert "web-1" not in answer.text or answer.status_code == 404, answer.text
        assert "h1" not in answer.text or answer.status_code == 403, answer.text


@pytest.mark.parametrize("row", CLOSED, ids=" ".join)
async def test_each_role_may_do_what_its_row_says(api: Callers, row: tuple[str, str]) -> None:
    claims = await settle(api)
    path, body = target(row, claims)
    allowed = [who for role, who in BY_ROLE.items() if SCOPES[row].access(role) not in (Access.NONE, Access.DRY_RUNS)]
    for number, who in enumerate(allowed):
        answer = await send(api, who, row, path, body)
        assert answer.status_code not in (401, 403), (who, answer.text)
        # Later ones may find that it has been done.
        assert answer.is_success or number, (who, answer.text)
        assert answer.status_code < 500


async def test_a_reader_may_send_dry_runs(settled: Callers) -> None:
    for row, policy in SCOPES.items():
        if policy.reader is Access.DRY_RUNS:
            path, body = target(row, {})
            dry = {"json": {**body, "claim": False}} if body else {}
            joined = path if body else f"{path}&dry_run=true"
            assert (await settled.send("reader", row[0], joined, **dry)).status_code == 200, row


@pytest.mark.parametrize("row", [row for row in ROWS if SCOPES[row].is_open], ids=" ".join)
async def test_open_routes_need_no_token(api: Callers, row: tuple[str, str]) -> None:
    """Nor do they refuse a wrong one: those who probe a service may send whatever they send elsewhere."""
    path = row[1].format(name="app.js")
    for who in ("no token", "forged", *TOKENS):
        assert (await api.send(who, row[0], path)).status_code in (200, 307), who


async def test_readyz_shows_details_to_operators_and_readers_alone(api: Callers) -> None:
    for who in ("no token", "web", "of-h1", "forged"):
        assert (await api.send(who, "GET", "/readyz")).json() == {"status": "ready"}
    assert (await api.send("reader", "GET", "/readyz")).json()["workers"] == 1


async def test_what_no_route_takes_needs_a_token_too(api: Callers) -> None:
    for method, path in (("GET", "/v2"), ("POST", "/v1/hosts"), ("GET", "/v1%2Fclaims"), ("POST", "/healthz")):
        assert (await api.send("no token", method, path)).status_code == 401, path
        assert (await api.send("operator", method, path)).status_code in (404, 405, 422), path
    assert (await api.send("no token", "GET", "/static-offline-docs/swagger-ui.css")).status_code == 200
