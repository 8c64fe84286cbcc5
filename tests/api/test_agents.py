"""/v1/agent: what an agent may call, and what the API does not take from a host."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from redsched import aio
from redsched.api.app import create_app
from redsched.auth.authenticator import Authenticator
from redsched.auth.caller import Caller, Role
from redsched.errors import Unauthenticated
from redsched.model.tokens import Token
from redsched.scheduler.agents import service
from redsched.settings import Settings
from tests.api.parts import check_problem, select
from tests.support.waiting import patience_s, wait_until

AGENT = {"journal": "j", "nonce": "n", "number": 1}
REPORT = {"inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16384}}, "agent": AGENT, "lease_s": 3600}
OPERATOR, H1 = (
    Caller("operator", Role.OPERATOR),
    Caller("agent", Role.AGENT, frozenset({"web"}), hosts=frozenset({"h1"})),
)
ELSEWHERE = Caller("elsewhere", Role.AGENT, hosts=frozenset({"h1"}), cell="c2")


class Names(Authenticator):
    """An authenticator whose tokens are the callers' ids. `revoked`: those that are not valid any more."""

    def __init__(self) -> None:
        self.revoked = set[str]()

    async def identify(self, token: str) -> Caller:
        for one in (OPERATOR, H1, ELSEWHERE):
            if one.id == token:
                return one
        raise Unauthenticated("no")

    async def watch_file(self, stop: asyncio.Event) -> None:
        await stop.wait()

    def still_valid(self, caller: Caller) -> bool:
        return caller.id not in self.revoked


class Api:
    """Clients of one app, as its operator and as the agent of h1."""

    def __init__(self, app: Any, names: Names) -> None:
        self.app, self.names = app, names
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def of(self, caller: Caller) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {caller.id}"}
        return httpx.AsyncClient(transport=self._transport, base_url="http://127.0.0.1", headers=headers)

    async def attested(self) -> str:
        """Report h1 and attest; return the epoch."""
        async with self.of(H1) as agent:
            answer = await agent.put("/v1/agent/hosts/h1/report", json=REPORT)
            assert answer.status_code == 200, answer.text
            epoch = answer.json()["epoch"]
            answer = await agent.post("/v1/agent/hosts/h1/attest", json={"epoch": epoch, "agent": AGENT})
            assert answer.json()["outcome"] in ("OK", "ALREADY_DONE"), answer.text
            return str(epoch)


@asynccontextmanager
async def api_over(url: str) -> AsyncIterator[Api]:
    names = Names()
    app = create_app(Settings(redis_url=url, poll_s=0.01), authenticator=names)
    async with app.router.lifespan_context(app):
        await app.state.scheduler.init()
        yield Api(app, names)


@pytest.fixture
async def api(clean_store: str) -> AsyncIterator[Api]:
    async with api_over(clean_store) as found:
        yield found


async def test_an_agent_acts_for_its_own_hosts_and_cell_only(api: Api) -> None:
    """Also in the calls whose hosts are in the body, which the gate does not see."""
    await api.attested()
    beat = {"lease_s": 30, "agent": AGENT}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", "/v1/agent/hosts/{}/report", REPORT),
        ("POST", "/v1/agent/heartbeats", {"hosts": {"h1": beat, "{}": beat}}),
        ("POST", "/v1/agent/inboxes", {"after": {"h1": "", "{}": ""}}),
        ("POST", "/v1/agent/claim-ids", {"hosts": ["h1", "{}"]}),
        ("POST", "/v1/agent/claims", {"hosts": ["h1", "{}"], "ids": ["a"]}),
        ("GET", "/v1/agent/hosts/{}/devices", {}),
        ("POST", "/v1/agent/hosts/{}/raise-epoch", {"above": "1-a"}),
        ("PUT", "/v1/agent/hosts/{}/claims/a/local", {"amounts": {"VCPU": 1}, "project": "web"}),
    ]
    async with api.of(H1) as agent, api.of(ELSEWHERE) as elsewhere:
        for method, path, body in calls:
            foreign = {
                name: {one.format("h2"): what for one, what in value.items()}
                if isinstance(value, dict) and "{}" in value
                else [one.format("h2") for one in value]
                if isinstance(value, list)
                else value
                for name, value in body.items()
            }
            check_problem(await agent.request(method, path.format("h2"), json=foreign), 403, "forbidden")
            if "{}" in path:
                check_problem(await elsewhere.request(method, path.format("h1"), json=body), 403, "forbidden")


async def test_local_claims_are_for_the_projects_of_the_token(api: Api) -> None:
    epoch = await api.attested()
    async with api.of(H1) as agent:
        local = {"amounts": {"VCPU": 1}, "project": "bank"}
        check_problem(await agent.put("/v1/agent/hosts/h1/claims/a/local", json=local), 403, "forbidden")
        held = {"id": "a", "token": f"{epoch}.1", "record": {"digest": "local", "project": "bank", "amount.VCPU": "1"}}
        attesting = {"epoch": epoch, "agent": AGENT, "held": [held]}
        check_problem(await agent.post("/v1/agent/hosts/h1/attest", json=attesting), 403, "forbidden")
        answer = await agent.put("/v1/agent/hosts/h1/claims/a/local", json={**local, "project": "web"})
        assert answer.json()["outcome"] == "OK"


async def test_claims_on_other_hosts_are_not_shown(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        await operator.put("/v1/agent/hosts/h2/report", json=REPORT)
        epoch = (await operator.get("/v1/hosts/h2")).json()
        assert epoch["cell"] == "c1"
        claim = await select(operator, hosts=["h1"])
        asked = {"hosts": ["h1"], "ids": [claim["claim_id"], "unknown"]}
        found = (await agent.post("/v1/agent/claims", json=asked)).json()["claims"]
        assert found.keys() == {claim["claim_id"]}
        assert "call_id" not in found[claim["claim_id"]]
        other = {"hosts": ["h2"], "ids": [claim["claim_id"]]}
        assert (await operator.post("/v1/agent/claims", json=other)).json() == {"claims": {}}


async def test_the_devices_of_a_host_are_those_of_its_last_report(api: Api) -> None:
    await api.attested()
    async with api.of(H1) as agent:
        assert (await agent.get("/v1/agent/hosts/h1/devices")).json() == {"devices": {}}
        pools = {"gpu0": {"device": "GPU-aaaa"}, "numa0": {}}
        report = {**REPORT, "pools": pools, "agent": {**AGENT, "number": 9}}
        assert (await agent.put("/v1/agent/hosts/h1/report", json=report)).json()["outcome"] == "OK"
        assert (await agent.get("/v1/agent/hosts/h1/devices")).json() == {"devices": {"gpu0": "GPU-aaaa"}}


async def test_a_text_has_to_be_the_one_that_was_lost(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        claim = await select(operator)
        path = f"/v1/agent/hosts/h1/claims/{claim['claim_id']}/texts"
        store = api.app.state.scheduler.agents.store("c1")
        digest = (await store.claims.read([claim["claim_id"]]))[claim["claim_id"]].digest
        name = f"request:{digest}"
        text = (await agent.get(path, params={"name": name})).json()["texts"][name]
        forged = text.replace("4096", "1")
        check_problem(await agent.put(path, json={"name": name, "text": forged}), 422, "invalid-request")
        check_problem(await agent.put(path, json={"name": name, "text": "[" * 60_000}), 422, "invalid-request")
        assert (await agent.put(path, json={"name": name, "text": text})).status_code == 204
        # Of a claim that is not on the host, nothing is read or written.
        elsewhere = "/v1/agent/hosts/h1/claims/unknown/texts"
        assert (await agent.get(elsewhere, params={"name": name})).json() == {"texts": {}}
        assert (await agent.put(elsewhere, json={"name": name, "text": forged})).status_code == 204
        assert await store.texts.get(name) == text


async def test_a_host_raises_the_epoch_seldom_and_never_into_the_future(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await api.attested()
    path, now_ms = "/v1/agent/hosts/h1/raise-epoch", Token.parse(f"{epoch}.0").epoch_ms
    async with api.of(H1) as agent:
        far = {"above": f"{now_ms + 2 * service.AHEAD_MS}-a"}
        check_problem(await agent.post(path, json=far), 409, "claim-state")
        first = (await agent.post(path, json={"above": epoch})).json()
        assert first["outcome"] == "OK"
        check_problem(await agent.post(path, json={"above": first["epoch"]}), 503, "settling")
        assert (await agent.post(path, json={"above": epoch})).json()["outcome"] == "ALREADY_DONE"
        monkeypatch.setattr(service, "RAISE_PAUSE_S", 0.0)
        assert (await agent.post(path, json={"above": first["epoch"]})).json()["outcome"] == "OK"


async def test_who_raises_epochs_again_and_again_waits_longer_each_time_whichever_host_it_names(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new epoch stops the whole cell until its hosts have attested."""
    epoch, now_s = await api.attested(), 1000.0
    monkeypatch.setattr(service, "aio", SimpleNamespace(now_s=lambda: now_s, gather=aio.gather))

    async def raise_it(who: Caller, host: str) -> httpx.Response:
        nonlocal epoch
        async with api.of(who) as client:
            answer = await client.post(f"/v1/agent/hosts/{host}/raise-epoch", json={"above": epoch})
        epoch = answer.json().get("epoch", epoch)
        return answer

    for times in range(3):
        assert (await raise_it(OPERATOR, f"h{times}")).json()["outcome"] == "OK"
        now_s += service.RAISE_PAUSE_S * 2**times - 1
        check_problem(await raise_it(OPERATOR, "another"), 503, "settling")
        now_s += 1
    assert (await raise_it(H1, "h1")).json()["outcome"] == "OK"
    now_s += 2 * service.MAX_RAISE_PAUSE_S + 1
    assert (await raise_it(OPERATOR, "h1")).json()["outcome"] == "OK"
    now_s += service.RAISE_PAUSE_S
    assert (await raise_it(OPERATOR, "h1")).json()["outcome"] == "OK"


async def test_reasons_cannot_write_on_terminals(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        claim = await select(operator)
        path = f"/v1/agent/hosts/h1/claims/{claim['claim_id']}/fail"
        body = {"token": claim["token"], "is_gone": True, "reason": "no disk\x1b]0;owned\x07\x9b2J\nline 2"}
        assert (await agent.post(path, json=body)).json()["outcome"] == "OK"
        found = (await operator.get(f"/v1/claims/{claim['claim_id']}")).json()
        assert found["reason"]["text"] == "no disk ]0;owned  2J\nline 2"


async def test_a_wait_ends_with_a_notification_with_the_token_and_with_the_process(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:

        def wait(after: str = "") -> "asyncio.Task[httpx.Response]":
            asked = {"after": {"h1": after}, "timeout_s": 60}
            return asyncio.create_task(agent.post("/v1/agent/inboxes", json=asked, timeout=patience_s(60)))

        first = wait()
        feeds = api.app.state.scheduler.agents._feeds
        await wait_until(lambda: any(one._waiters for one in feeds.values()))
        claim = await select(operator)
        found = (await first).json()
        assert [one["claim_id"] for one in found["entries"]["h1"]] == [claim["claim_id"]]
        last = found["entries"]["h1"][-1]["entry_id"]
        # Revoked while it waits: what comes then is not shown.
        second = wait(last)
        await wait_until(lambda: any(one._waiters for one in feeds.values()))
        api.names.revoked.add(H1.id)
        await select(operator)
        check_problem(await second, 401, "unauthenticated")
        api.names.revoked.clear()
        newest = (await agent.post("/v1/agent/inboxes", json={"after": {"h1": last}})).json()["entries"]["h1"][-1]
        third = wait(newest["entry_id"])
        await wait_until(lambda: any(one._waiters for one in feeds.values()))
        api.app.state.closing.set()
        assert (await third).json()["entries"] == {}


async def test_reported_claims_are_checked_the_same_on_both_routes(api: Api) -> None:
    epoch = await api.attested()
    async with api.of(OPERATOR) as operator:
        token = f"{epoch}.5"
        late = f"{Token.parse(f'{epoch}.0').epoch_ms + 1}-a.1"
        for placed, held in ((token, f"{epoch}.4"), ("", late)):
            claim = {"id": "a", "token": held, "placed": placed}
            body = {
                "epoch": epoch,
                "claims": [{**claim, "slots": {"VCPU": 1}}],
                **{k: REPORT[k] for k in ("inventories",)},
            }
            check_problem(await operator.put("/v1/hosts/h1/report", json=body), 422, "invalid-request")
            attesting = {"epoch": epoch, "agent": AGENT, "held": [{**claim, "record": {"amount.VCPU": "1"}}]}
            check_problem(await operator.post("/v1/agent/hosts/h1/attest", json=attesting), 422, "invalid-request")
