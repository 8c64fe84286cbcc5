"""/v1/agent: what the API relays for an agent, and what it does not take from a host."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import redis

from redsched import aio
from redsched.api.app import create_app
from redsched.auth.authenticator import Authenticator
from redsched.auth.caller import Caller
from redsched.errors import Unauthenticated
from redsched.model.role import Role
from redsched.model.tokens import Token
from redsched.scheduler.agents import calls as agent_calls
from redsched.settings import Settings
from tests.api.parts import check_problem, select
from tests.support.waiting import patience_s, wait_until

AGENT = {"journal": "j", "nonce": "n", "number": 1}
INVENTORIES = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16384}}
REPORT = {"name": "h1", "inventories": INVENTORIES, "agent": AGENT, "lease_s": 3600}
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
            answer = await call(agent, "report", REPORT)
            assert answer.status_code == 200, answer.text
            epoch = answer.json()["epoch"]
            answer = await call(agent, "attest", {"host": "h1", "epoch": epoch, "agent": AGENT})
            assert answer.json()["outcome"] in ("OK", "ALREADY_DONE"), answer.text
            return str(epoch)


async def call(client: httpx.AsyncClient, name: str, body: Any, **more: Any) -> httpx.Response:
    return await client.post(f"/v1/agent/calls/{name}", json=body, **more)


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


async def test_local_claims_are_for_the_projects_of_the_token(api: Api) -> None:
    epoch = await api.attested()
    async with api.of(H1) as agent:
        local = {"host": "h1", "claim_id": "a", "amounts": {"VCPU": 1}, "project": "bank"}
        check_problem(await call(agent, "local", local), 403, "forbidden")
        held = {"id": "a", "token": f"{epoch}.1", "record": {"digest": "local", "project": "bank", "amount.VCPU": "1"}}
        attesting = {"host": "h1", "epoch": epoch, "agent": AGENT, "held": [held]}
        check_problem(await call(agent, "attest", attesting), 403, "forbidden")
        answer = await call(agent, "local", {**local, "project": "web"})
        assert answer.json()["outcome"] == "OK"


async def test_claims_on_other_hosts_are_not_shown(api: Api, clean_store: str) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        await call(operator, "report", {**REPORT, "name": "h2"})
        epoch = (await operator.get("/v1/hosts/h2")).json()
        assert epoch["cell"] == "c1"
        claim = await select(operator, hosts=["h1"])
        key = api.app.state.scheduler.agents.store("c1").keys.claim(claim["claim_id"])
        with redis.Redis.from_url(clean_store, protocol=2) as client:
            client.hset(key, "call_id", "of the caller")  # who has it could undo the call
        asked = {"hosts": ["h1"], "ids": [claim["claim_id"], "unknown"]}
        found = (await call(agent, "claims", asked)).json()["claims"]
        assert found.keys() == {claim["claim_id"]}
        assert "call_id" not in found[claim["claim_id"]]
        other = {"hosts": ["h2"], "ids": [claim["claim_id"]]}
        assert (await call(operator, "claims", other)).json() == {"claims": {}}


async def test_the_devices_of_a_host_are_those_of_its_last_report(api: Api) -> None:
    await api.attested()
    async with api.of(H1) as agent:
        assert (await call(agent, "devices", {"host": "h1"})).json() == {"devices": {}}
        pools = {"gpu0": {"device": "GPU-aaaa"}, "numa0": {}}
        report = {**REPORT, "pools": pools, "agent": {**AGENT, "number": 9}}
        assert (await call(agent, "report", report)).json()["outcome"] == "OK"
        assert (await call(agent, "devices", {"host": "h1"})).json() == {"devices": {"gpu0": "GPU-aaaa"}}


async def test_a_text_has_to_be_the_one_that_was_lost(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        claim = await select(operator)
        of = {"host": "h1", "claim_id": claim["claim_id"]}
        store = api.app.state.scheduler.agents.store("c1")
        digest = (await store.claims.read([claim["claim_id"]]))[claim["claim_id"]].digest
        name = f"request:{digest}"
        text = (await call(agent, "texts", {**of, "names": [name]})).json()["texts"][name]
        forged = text.replace("4096", "1")
        for wrong in (forged, "[" * 60_000):
            refused = await call(agent, "restore-text", {**of, "name": name, "text": wrong})
            check_problem(refused, 422, "invalid-request")
        assert (await call(agent, "restore-text", {**of, "name": name, "text": text})).status_code == 204
        # Of a claim that is not on the host, nothing is read or written.
        of = {"host": "h1", "claim_id": "unknown"}
        assert (await call(agent, "texts", {**of, "names": [name]})).json() == {"texts": {}}
        assert (await call(agent, "restore-text", {**of, "name": name, "text": forged})).status_code == 204
        assert await store.texts.get(name) == text


async def test_a_host_raises_the_epoch_seldom_and_never_into_the_future(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = await api.attested()
    now_ms = Token.parse(f"{epoch}.0").epoch_ms
    async with api.of(H1) as agent:

        async def raise_above(above: str) -> httpx.Response:
            return await call(agent, "raise-epoch", {"host": "h1", "above": above})

        check_problem(await raise_above(f"{now_ms + 2 * agent_calls.AHEAD_MS}-a"), 409, "claim-state")
        first = (await raise_above(epoch)).json()
        assert first["outcome"] == "OK"
        check_problem(await raise_above(first["epoch"]), 503, "settling")
        assert (await raise_above(epoch)).json()["outcome"] == "ALREADY_DONE"
        monkeypatch.setattr(agent_calls, "RAISE_PAUSE_S", 0.0)
        assert (await raise_above(first["epoch"])).json()["outcome"] == "OK"


async def test_who_raises_epochs_again_and_again_waits_longer_each_time_whichever_host_it_names(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new epoch stops the whole cell until its hosts have attested."""
    epoch, now_s = await api.attested(), 1000.0
    monkeypatch.setattr(agent_calls, "aio", SimpleNamespace(now_s=lambda: now_s, gather=aio.gather))

    async def raise_it(who: Caller, host: str) -> httpx.Response:
        nonlocal epoch
        async with api.of(who) as client:
            answer = await call(client, "raise-epoch", {"host": host, "above": epoch})
        epoch = answer.json().get("epoch", epoch)
        return answer

    for times in range(3):
        assert (await raise_it(OPERATOR, f"h{times}")).json()["outcome"] == "OK"
        now_s += agent_calls.RAISE_PAUSE_S * 2**times - 1
        check_problem(await raise_it(OPERATOR, "another"), 503, "settling")
        now_s += 1
    assert (await raise_it(H1, "h1")).json()["outcome"] == "OK"
    now_s += 2 * agent_calls.MAX_RAISE_PAUSE_S + 1
    assert (await raise_it(OPERATOR, "h1")).json()["outcome"] == "OK"
    now_s += agent_calls.RAISE_PAUSE_S
    assert (await raise_it(OPERATOR, "h1")).json()["outcome"] == "OK"


async def test_reasons_cannot_write_on_terminals(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:
        claim = await select(operator)
        of = {"host": "h1", "claim_id": claim["claim_id"], "token": claim["token"]}
        body = {**of, "is_gone": True, "reason": "no disk\x1b]0;owned\x07\x9b2J\nline 2"}
        assert (await call(agent, "fail", body)).json()["outcome"] == "OK"
        found = (await operator.get(f"/v1/claims/{claim['claim_id']}")).json()
        assert found["reason"]["text"] == "no disk ]0;owned  2J\nline 2"


async def test_a_wait_ends_with_a_notification_with_the_token_and_with_the_process(api: Api) -> None:
    await api.attested()
    async with api.of(OPERATOR) as operator, api.of(H1) as agent:

        def wait(after: str = "") -> "asyncio.Task[httpx.Response]":
            asked = {"after": {"h1": after}, "timeout_s": 60}
            return asyncio.create_task(call(agent, "inboxes", asked, timeout=patience_s(60)))

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
        newest = (await call(agent, "inboxes", {"after": {"h1": last}})).json()["entries"]["h1"][-1]
        third = wait(newest["entry_id"])
        await wait_until(lambda: any(one._waiters for one in feeds.values()))
        api.app.state.closing.set()
        assert (await third).json()["entries"] == {}


async def test_reported_claims_are_checked_the_same_on_both_routes(api: Api) -> None:
    epoch = await api.attested()
    async with api.of(OPERATOR) as operator:
        token = f"{epoch}.5"
        late = f"{Token.parse(f'{epoch}.0').epoch_ms + 1}-a.1"
        for placed, reported in ((token, f"{epoch}.4"), ("", late)):
            claim = {"id": "a", "token": reported, "placed": placed}
            body = {
                "epoch": epoch,
                "claims": [{**claim, "slots": {"VCPU": 1}}],
                **{k: REPORT[k] for k in ("inventories",)},
            }
            check_problem(await operator.put("/v1/hosts/h1/report", json=body), 422, "invalid-request")
            held = {**claim, "record": {"amount.VCPU": "1"}}
            attesting = {"host": "h1", "epoch": epoch, "agent": AGENT, "held": [held]}
            check_problem(await call(operator, "attest", attesting), 422, "invalid-request")
