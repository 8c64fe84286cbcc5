"""The routes of agents of the release before the relay: each is a call of it, with its checks and its reply."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from redsched.api import examples
from redsched.api.former_agent_calls import FORMER, Former
from redsched.store.agent_calls import NAMES, InboxesCall, ReportCall, TextsCall
from tests.api.parts import check_problem, select
from tests.api.test_agents import AGENT, ELSEWHERE, H1, OPERATOR, Api, api_over, call

CLOCK = ("now_ms", "version")
"""Members of replies that differ between two calls."""


@pytest.fixture
async def api(clean_store: str) -> AsyncIterator[Api]:
    async with api_over(clean_store) as found:
        await found.attested()
        yield found


def body_of(former: Former, hosts: Sequence[str] = ("h1",), **about: str) -> dict[str, Any]:
    """Return the example of a call, about these hosts, a claim and its token, and without a wait."""
    found = {**examples.CALLS[NAMES[former.call]], **({"timeout_s": 0} if former.call is InboxesCall else {})}
    for name in ("hosts", "after"):
        if isinstance(known := found.get(name), dict):
            found[name] = dict.fromkeys(hosts, known["h17"])
        elif known is not None:
            found[name] = [*hosts]
    about["name" if former.call is ReportCall else "host"] = hosts[-1]
    return found | {name: value for name, value in about.items() if name in found}


async def send(client: httpx.AsyncClient, former: Former, fields: dict[str, Any], query: str = "") -> httpx.Response:
    """Send a call as agents of the release before do."""
    path, given = former.path, dict(fields)
    for name, field in former.in_path.items():
        path = path.replace(f"{{{name}}}", given.pop(field))
    if former.call is TextsCall:
        return await client.get(path, params={"name": given["names"]})
    more: dict[str, Any] = {} if former.method == "GET" else {"json": given}
    return await client.request(former.method, f"{path}{query}", **more)


@pytest.mark.parametrize("former", FORMER, ids=lambda one: f"{one.method} {one.path}")
async def test_a_route_gives_the_reply_of_its_call(api: Api, former: Former) -> None:
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        claim = await select(operator, project="web")
        given = body_of(former, claim_id=claim["claim_id"], token=claim["token"])
        first, again = await send(agent, former, given), await call(agent, NAMES[former.call], given)
        assert first.is_success, first.text
        assert first.status_code == again.status_code
        if first.content:
            assert settled(first.json()) == settled(again.json())


def settled(reply: dict[str, Any]) -> Any:
    """Return what a repeated call answers with as well: it is OK, or has been done."""
    if "hosts" in reply:
        return {host: settled(one) for host, one in reply["hosts"].items()}
    known = {name: value for name, value in reply.items() if name not in CLOCK}
    if "details" in known:  # the time of a lease differs
        known["details"] = ["a time" if one.isdecimal() else one for one in known["details"]]
    return known | ({"outcome": "OK"} if known.get("outcome") == "ALREADY_DONE" else {})


@pytest.mark.parametrize("former", FORMER, ids=lambda one: f"{one.method} {one.path}")
async def test_a_route_is_for_the_hosts_and_the_cell_of_the_token(api: Api, former: Former) -> None:
    given = body_of(former, ("h1", "h2"), claim_id="a")
    async with api.of(H1) as agent, api.of(ELSEWHERE) as elsewhere:
        check_problem(await send(agent, former, given), 403, "forbidden")
        own = body_of(former, claim_id="a")
        check_problem(await send(elsewhere, former, own), 403, "forbidden")


async def test_what_the_path_says_is_not_in_the_body(api: Api) -> None:
    """The host in the path is checked before the body is read, so no other one may take its place."""
    async with api.of(H1) as agent:
        path = "/v1/agent/hosts/h1/claims/a"
        for more in ({"host": "h2"}, {"host": "h1"}, {"claim_id": "b"}):
            answer = await agent.post(f"{path}/renew", json={"token": "1-a.1", "lease_s": 30, **more})
            check_problem(answer, 422, "invalid-request")
        report = {**examples.CALLS["report"], "agent": AGENT}
        check_problem(await agent.put("/v1/agent/hosts/h1/report", json=report), 422, "invalid-request")
        check_problem(await agent.post(f"{path}/renew?name=x", json={}), 422, "invalid-request")
        check_problem(await agent.get(f"{path}/texts?host=h2"), 422, "invalid-request")
