"""Both clients with a served API: every call of the table, lost replies, errors, pages and tokens."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, assert_type

import httpx
import pytest
from pydantic_core import to_json

from redsched.auth.authenticator import Authenticator
from redsched.auth.watched_file import WatchedTokenFile
from redsched.client import AsyncClient, ClaimedPlaces, Client, Event
from redsched.errors import (
    ClaimIdReused,
    InvalidRequest,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    StaleToken,
    StoreUnavailable,
    Unauthenticated,
)
from redsched.model import Claim, ClaimStatus, ReasonCount, Request
from redsched.model.filters import ClaimFilter
from redsched.model.records.changes import Change
from redsched.model.records.service import About
from redsched.settings import Settings
from tests.api.parts import put_host
from tests.auth.parts import authenticator, document, entry, token, write
from tests.client.relay import Relay
from tests.support.certificates import Authority
from tests.support.processes.connections import Connections
from tests.support.processes.served_api import serving
from tests.support.waiting import patience_s

T = TypeVar("T")
TWO = Request({"VCPU": 2}, project="web")


async def blocked(url: str, work: Callable[[Client], T], **options: Any) -> T:
    """Return what work with a blocking client returns, in a thread: the API is served by this one."""

    def run() -> T:
        with Client(url, **options) as client:
            return work(client)

    return await asyncio.to_thread(run)


def life_of_a_claim(client: Client) -> list[ClaimStatus]:
    """Use each verb once, and return the states seen."""
    made = client.select(TWO)
    assert_type(made, ClaimedPlaces)
    chosen = made.selections[0]
    states = [client.claims.renew(chosen.claim_id, chosen.token, lease_s=600).state]
    states.append(client.claims.confirm(chosen.claim_id, chosen.token).state)
    moved = client.claims.move(chosen.claim_id, chosen.token, hosts=[{"h1": "h2", "h2": "h1"}[chosen.host]])
    assert_type(moved, Claim)
    assert moved.host != chosen.host
    assert len(moved.placements) == 2
    stays = client.claims.fail(chosen.claim_id, moved.token, alternates=())
    assert (stays.host, stays.state) == (chosen.host, ClaimStatus.ACTIVE)
    states.append(client.claims.shelve(chosen.claim_id, chosen.token).state)
    kinds = [one.kind for one in client.events.of_claim(chosen.claim_id)]
    assert kinds == [] or "claimed" in kinds
    is_over = client.claims.release(chosen.claim_id)
    assert_type(is_over, bool)
    return states


async def test_every_verb_of_a_claim(served: str) -> None:
    assert await blocked(served, life_of_a_claim) == ["claimed", "active", "ending"]


async def test_a_claim_is_resized_released_and_shelved(served: str) -> None:
    async with AsyncClient(served) as client:
        chosen = (await client.select(TWO)).selections[0]
        grown = await client.claims.resize(chosen.claim_id, chosen.token, {"VCPU": 3})
        assert grown.slots == {"VCPU": 3}
        shelved = await client.claims.shelve(chosen.claim_id, grown.token)
        assert (shelved.state, shelved.end_reason) == ("ended", "shelved")
        placed = await client.claims.unshelve(chosen.claim_id)
        assert placed.state is ClaimStatus.CLAIMED
        assert await client.claims.release(chosen.claim_id, force=True)
        assert (await client.claims.get(chosen.claim_id)).state is ClaimStatus.ENDED


async def test_what_there_is_to_read(served: str) -> None:
    async with AsyncClient(served) as client, httpx.AsyncClient(base_url=served, timeout=patience_s(20)) as operator:
        await operator.put("/v1/quotas/web", json={"limits": {"VCPU": 10}})
        await client.select(TWO)
        assert (await client.about()).name == "redsched"
        assert [one.name async for one in client.hosts.list(status="enabled")] == ["h1", "h2"]
        assert (await client.hosts.get("h1")).slots["VCPU"].capacity == 8
        assert [one.project async for one in client.quotas.list()] == ["web"]
        assert (await client.quotas.get("web")).used["VCPU"] == 2
        [row] = await client.usage(("class", "project"))
        assert (row.project, row.used) == ("web", {"VCPU": 2, "claims": 1})
        explained = await client.explain(Request({"VCPU": 9}), hosts="h1")
        assert (explained.fits, [one.host for one in explained.checks]) == (0, ["h1"])
        for event in await client.events.newest():
            assert_type(event, Event)


async def test_changes_are_followed_and_resumed(served: str) -> None:
    def follow(client: Client) -> list[str]:
        with client.changes() as changes:
            client.select(TWO)
            client.select(TWO)
            first = next(changes)
        assert first.change is not None
        assert_type(first.change, Change)
        with client.changes(first.id) as changes:
            second = next(changes)
        return [first.id, second.id]

    first, second = await blocked(served, follow)
    assert [one.partition(":")[0] for one in (first, second)] == ["c1", "c1"]
    assert int(first.rpartition(":")[2]) + 1 == int(second.rpartition(":")[2])
    async with AsyncClient(served) as client:
        async with client.changes(first) as changes:
            async for event in changes:
                assert event.id == second
                break
        with pytest.raises(NotFound):
            async with client.changes("elsewhere:1"):
                pass


async def test_a_closed_client_says_so() -> None:
    with Client("http://127.0.0.1:1") as client:
        pass
    async with AsyncClient("http://127.0.0.1:1") as other:
        pass
    with pytest.raises(InvalidRequest, match="closed: open another"):
        client.about()
    with pytest.raises(InvalidRequest, match="closed: open another"), client.changes():
        pass
    with pytest.raises(InvalidRequest, match="closed: open another"):
        await other.about()


@pytest.mark.parametrize("bad", [-1, 0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_refuses_durations_that_are_none(kind: type[Client] | type[AsyncClient], bad: float) -> None:
    with pytest.raises(InvalidRequest, match=r"timeout_s is .*: give seconds above 0"):
        kind("http://127.0.0.1:1", timeout_s=bad)
    if not bad >= 0:
        with pytest.raises(InvalidRequest, match=r"retry_s is .*: give seconds"):
            kind("http://127.0.0.1:1", retry_s=bad)


async def test_a_stream_that_breaks_is_an_error(before: Relay) -> None:
    async with AsyncClient(before.url) as client, client.changes() as changes:
        before.connections.cut()
        with pytest.raises(OutcomeUnknown):
            await anext(changes)


async def test_lists_go_on_over_pages(served: str) -> None:
    def listed(client: Client) -> list[str]:
        client.select(Request({"VCPU": 1}, count=5, project="web"))
        client.select(Request({"VCPU": 1}, project="ops"))
        return [one.claim_id for one in client.claims.list(project="web", state=["claimed", "active"], limit=2)]

    found = await blocked(served, listed)
    assert len(set(found)) == len(found) == 5


async def test_a_lost_reply_to_a_blocking_client_claims_once(before: Relay) -> None:
    def select(client: Client) -> tuple[ClaimedPlaces, list[Claim]]:
        before.lost = 2
        made = client.select(TWO)
        return made, list(client.claims.list())

    made, claims = await blocked(before.url, select)
    assert before.dropped == 2
    assert [one.claim_id for one in claims] == [made.selections[0].claim_id]


async def test_a_lost_reply_to_an_asynchronous_client_claims_once(before: Relay) -> None:
    async with AsyncClient(before.url) as client:
        before.lost = 2
        made = await client.select(TWO)
        assert before.dropped == 2
        assert [one.claim_id async for one in client.claims.list()] == [made.selections[0].claim_id]


async def test_a_verb_whose_reply_is_lost_has_its_first_outcome(before: Relay) -> None:
    async with AsyncClient(before.url) as client:
        chosen = (await client.select(TWO)).selections[0]
        before.lost = 1
        grown = await client.claims.resize(chosen.claim_id, chosen.token, {"VCPU": 3})
        assert (before.dropped, grown.slots) == (1, {"VCPU": 3})
        before.lost = 1
        target = await client.claims.move(chosen.claim_id, grown.token)
        again = await client.claims.move(chosen.claim_id, grown.token)
        assert (before.dropped, again.token) == (2, target.token)
        before.lost = 1
        await client.claims.release(chosen.claim_id)
        assert (await client.claims.get(chosen.claim_id)).end_reason == "released"


async def test_a_call_given_up_can_be_repeated_with_its_key(before: Relay) -> None:
    async with AsyncClient(before.url, retry_s=0) as client:
        before.lost = 1
        with pytest.raises(OutcomeUnknown) as lost:
            await client.select(TWO)
        made = await client.select(TWO, idempotency_key=lost.value.facts.idempotency_key)
        assert [one.claim_id async for one in client.claims.list()] == [made.selections[0].claim_id]


async def test_refusals_are_the_errors_of_the_library(served: str) -> None:
    async with AsyncClient(served) as client:
        with pytest.raises(NoValidHost) as full:
            await client.select(Request({"VCPU": 9}))
        assert full.value.facts.reasons == (ReasonCount("VCPU", 2),)
        with pytest.raises(NotFound):
            await client.claims.get("nobody")
        with pytest.raises(InvalidRequest, match="state"):
            [one async for one in client.claims.list(state="ended")]
        await client.select(Request({"VCPU": 1}, claim_ids=("a",)))
        with pytest.raises(ClaimIdReused):
            await client.select(Request({"VCPU": 2}, claim_ids=("a",)))
        with pytest.raises(StaleToken):
            await client.claims.confirm("a", "1-a.1")


async def test_a_lease_of_no_time_is_refused_for_its_value(served: str) -> None:
    """Not as a field that is missing."""
    async with AsyncClient(served) as client:
        with pytest.raises(InvalidRequest, match=r"lease_s.*greater than or equal to 1"):
            await client.bulk.renew(ClaimFilter(project="web"), 0)


@pytest.mark.parametrize("name", ["", "a/b", "../hosts", "a?force=true"])
async def test_a_name_is_no_way_to_another_route(name: str) -> None:
    async with AsyncClient("http://127.0.0.1:1") as client:
        with pytest.raises(InvalidRequest, match="is not a name"):
            await client.claims.release(name)
        with pytest.raises(InvalidRequest, match="is not a name"):
            await client.hosts.get(name)


async def test_a_dry_run_has_no_claim_and_writes_nothing(served: str) -> None:
    async with AsyncClient(served) as client:
        with pytest.raises(InvalidRequest, match="use dry_run"):
            await client.select(Request({"VCPU": 1}, claim=False))
        found = await client.dry_run(Request({"VCPU": 1}))
        assert found.selections[0].claim_id is None
        assert [one async for one in client.claims.list()] == []


async def test_no_api_is_an_error_after_the_deadline() -> None:
    async with AsyncClient("http://127.0.0.1:1", retry_s=0.3) as client:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await client.about()


async def test_a_token_that_is_replaced_goes_on_working(settings: Settings, tmp_path: Path) -> None:
    """The new token is in the client's file before the old one is revoked, as when both are renewed."""
    tokens, own = tmp_path / "tokens.yaml", tmp_path / "token"
    first, second = token("web", 1), token("web-2")
    allowed = {"role": "tenant", "projects": ["web"], "sees_hosts": True}
    write(tokens, document(entry(first, **allowed), entry(token("me"))))
    write(own, first)
    known = WatchedTokenFile(tokens)
    async with serving(settings, Authenticator(known)) as url:
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token('me')}"}, timeout=patience_s(20)
        ) as operator:
            await put_host(operator, "h1")
        async with AsyncClient(url) as anonymous:
            with pytest.raises(Unauthenticated):
                await anonymous.select(TWO)
        async with AsyncClient(url, token_file=str(own)) as client:
            made = await client.select(TWO)
            write(tokens, document(entry(second, **allowed)))
            known.look()
            write(own, second)
            assert [one.claim_id async for one in client.claims.list()] == [made.selections[0].claim_id]


async def test_the_api_is_verified_by_the_authorities_given(tmp_path: Path) -> None:
    """An API that is not trusted is an error at once, although connection failures are retried."""
    authority = Authority(tmp_path)
    own = authority.sign("api")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.cert, own.key)
    connections = Connections()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.begin(reply(reader, writer), writer)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = to_json(dict.fromkeys((one.name for one in fields(About)), "x") | {"role": None})
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    try:
        async with AsyncClient(url, ca=str(authority.ca)) as client:
            assert (await client.about()).name == "x"
        async with AsyncClient(url, retry_s=3600) as client:
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                await client.about()
    finally:
        await connections.end(server)


async def test_a_tenant_with_a_prefix_needs_no_ids(settings: Settings, tmp_path: Path) -> None:
    """The ids come from a key, so the client need not know with what a tenant's ids have to begin."""
    tokens = write(
        tmp_path / "tokens.yaml",
        document(
            entry(token("web"), role="tenant", projects=["web"], claim_prefix="web-"),
            entry(token("me")),
        ),
    )
    async with serving(settings, authenticator(tokens)) as url:
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token('me')}"}, timeout=patience_s(20)
        ) as operator:
            await put_host(operator, "h1")
        async with AsyncClient(url, token=token("web")) as client:
            made = await client.select(TWO)
            assert made.selections[0].claim_id.startswith("web-key-")


async def test_claims_are_listed_by_owner(settings: Settings, tmp_path: Path) -> None:
    """An operator names the owner of what it claims, and `@me` is the caller."""
    tokens = write(tmp_path / "tokens.yaml", document(entry(token("me")), entry(token("boss"))))

    def by_owner(client: Client) -> list[list[str]]:
        client.select(replace(TWO, owner="ann", claim_ids=("b",)))
        return [[one.claim_id for one in client.claims.list(owner=owner)] for owner in ("ann", "@me")]

    async with serving(settings, authenticator(tokens)) as url:
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token('me')}"}, timeout=patience_s(20)
        ) as operator:
            await put_host(operator, "h1")
        async with AsyncClient(url, token=token("me")) as client:
            await client.select(replace(TWO, claim_ids=("a",)))
            assert await blocked(url, by_owner, token=token("boss")) == [["b"], []]
            found = [one async for one in client.claims.list(owner=["ann", "@me"])]
            assert [(one.claim_id, one.owner) for one in found] == [("a", "me"), ("b", "ann")]


def test_other_urls_and_two_tokens_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"plain http.*insecure=True"):
        Client("http://api.example")
    with pytest.raises(InvalidRequest, match="give one of them"):
        Client("https://api.example", token="a", token_file=str(tmp_path / "token"))
    with pytest.raises(InvalidRequest, match="one line") as refused:
        Client("https://api.example", token="secret\n")
    assert "secret" not in str(refused.value)


PROGRAM = """
import sys
for name in ({blocked}):
    sys.modules[name] = None
import redsched.client
"""


def imported_without(*blocked: str) -> "subprocess.CompletedProcess[str]":
    code = PROGRAM.format(blocked=", ".join(map(repr, (*blocked, ""))))
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_it_needs_no_packages_of_a_scheduler() -> None:
    ran = imported_without("redis", "hiredis", "uvloop", "psutil", "numpy", "fastapi", "uvicorn", "prometheus_client")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_it_loads_nothing_that_a_caller_does_not_use() -> None:
    """Records, operations, what reads and sends them, and who may do what: no part of the scheduler or its store."""
    show = "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('redsched.')}))"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys, redsched.client; {show}"], check=True, capture_output=True, text=True
    )
    own = {"aio", "errors", "exports", "extras", "logs", "origin", "release", "tracing"}
    assert set(ran.stdout.split()) == own | {"auth", "client", "model", "operations", "rest"}
