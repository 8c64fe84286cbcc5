"""Agents that the API refuses: its log names each once, with its host, and not each of their requests."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Scope
from structlog.testing import capture_logs

from redsched.api.access import refused_agents
from redsched.api.access.refused_agents import RefusedAgents
from redsched.auth.caller import Caller
from redsched.errors import Unauthenticated
from redsched.model.role import Role
from tests.api.access.parts import STRANGERS, Callers, bearer, callers, token_file
from tests.api.parts import REPORT

AGENT = Caller(id="of-h1", role=Role.AGENT)
REFUSED = Unauthenticated("no")


def scope_of(path: str, name: str = "", address: str = "10.0.0.1") -> Scope:
    headers = [(b"user-agent", name.encode())] if name else []
    return {"path": path, "headers": headers, "client": (address, 1234)}


def noted(*scopes: Scope, caller: Caller | None = None) -> list[dict[str, Any]]:
    """Return what is logged of refused requests."""
    refused = RefusedAgents()
    with capture_logs() as logged:
        for scope in scopes:
            refused.note(scope, REFUSED, caller)
    return [dict(one) for one in logged]


@pytest.fixture
async def api(clean_store: str, tmp_path: Any) -> AsyncIterator[Callers]:
    async with callers(clean_store, token_file(tmp_path)) as found:
        yield found


async def test_the_log_names_the_host_and_the_token(api: Callers) -> None:
    path = "/v1/agent/hosts/h1/report"
    with capture_logs() as logged:
        for _ in range(3):
            assert (await api.client.put(path, headers=STRANGERS["revoked"], json={})).status_code == 401
            assert (await api.client.put(path, headers=bearer("of-h2"), json={})).status_code == 403
            assert (await api.client.put(path, headers=bearer("web"), json={})).status_code == 403  # no agent
    found = [{name: one.get(name) for name in ("event", "host", "token")} for one in logged]
    assert found == [
        {"event": "agent_refused", "host": "h1", "token": None},
        {"event": "agent_refused", "host": "h1", "token": "of-h2"},
    ]
    assert "is none of the hosts of the token of 'of-h2'" in logged[1]["problem"]


async def test_what_only_the_body_shows_is_named_too(api: Callers) -> None:
    with capture_logs() as logged:
        report = {**REPORT, "zone": "az9"}
        answer = await api.client.put("/v1/hosts/h1/report", headers=bearer("of-h1"), json=report)
    assert answer.status_code == 403
    (one,) = logged
    assert (one["event"], one["host"], one["token"]) == ("agent_refused", "h1", "of-h1")


async def test_a_refused_call_is_named_by_the_host_that_the_agent_says_it_is_of(api: Callers) -> None:
    """The host is in the body, which the gate does not read."""
    headers = [*bearer("of-h1"), ("User-Agent", "redsched-agent (h1)")]
    with capture_logs() as logged:
        body = {"hosts": ["h2"]}
        assert (await api.client.post("/v1/agent/calls/claim-ids", headers=headers, json=body)).status_code == 403
    (one,) = logged
    assert (one["event"], one["host"], one["token"]) == ("agent_refused", "h1", "of-h1")


@pytest.mark.parametrize(
    ("path", "name", "host"),
    [
        ("/v1/agent", "redsched-agent (gpu-1)", "gpu-1"),
        ("/v1/agent/calls/heartbeats", "redsched-agent (gpu-1 and 3 more)", "gpu-1"),
        ("/v1/agent", "", None),
        ("/v1/hosts/gpu-1/heartbeat", "curl", "gpu-1"),
    ],
)
def test_where_the_path_has_no_host_the_agent_names_it(path: str, name: str, host: str | None) -> None:
    (one,) = noted(scope_of(path, name))
    assert (one.get("host"), one["address"]) == (host, "10.0.0.1")


def test_refusals_of_others_are_not_logged() -> None:
    assert noted(scope_of("/v1/claims"), scope_of("/v1/hosts/h1/drain")) == []


def test_an_agent_is_logged_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((100.0, 399.0, 400.0))
    monkeypatch.setattr(refused_agents, "now_s", lambda: next(times))
    refused = RefusedAgents()
    with capture_logs() as logged:
        for _ in range(3):
            refused.note(scope_of("/v1/agent"), REFUSED, AGENT)
    assert len(logged) == 2


def test_many_names_fill_neither_the_log_nor_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_agents, "MOST", 3)
    assert len(noted(*(scope_of(f"/v1/hosts/h{number}/report") for number in range(9)))) == 3
