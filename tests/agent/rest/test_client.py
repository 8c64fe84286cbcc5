"""Requests to an API that a test plays: problems become the errors that the agent's loops know."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from redsched import aio
from redsched.agent.backoff import AgentRefused
from redsched.agent.rest.client import ApiClient
from redsched.agent.rest.heartbeats import HeartbeatBatcher
from redsched.agent.rest.link import RestCell, RestLink
from redsched.errors import (
    ClaimState,
    InvalidRequest,
    OutcomeUnknown,
    RedschedError,
    Settling,
    StoreUnavailable,
    Unauthenticated,
    Unavailable,
)
from redsched.model import MAX_HOST_CLAIMS, AgentStamp
from redsched.model.limits import MAX_REASON
from redsched.rest import TokenFile
from redsched.settings import Settings
from redsched.store.agent_calls import (
    AgentCall,
    AttestCall,
    Beat,
    ClaimsCall,
    FailCall,
    HeartbeatReplies,
    HeartbeatsCall,
    RenewCall,
    ResizedCall,
    RestoreTextCall,
)
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import EndedPlacement, ScriptResult
from tests.auth.parts import write
from tests.support.waiting import wait_until

Reply = Callable[[httpx.Request], httpx.Response]


def client_of(reply: Reply, token: str = "") -> ApiClient:
    transport = httpx.MockTransport(reply)
    return ApiClient(httpx.AsyncClient(transport=transport, base_url="http://api"), "http://api", TokenFile(token), 5.0)


def problem(status: int, kind: str) -> Reply:
    return lambda _: httpx.Response(status, json={"type": f"/problems/{kind}", "detail": "why", "status": status})


async def test_closing_ends_every_connection_though_it_is_cancelled_again() -> None:
    """Several times, as agents do with what does not end at once."""
    connected, ended = list[asyncio.StreamWriter](), list[asyncio.StreamWriter]()
    both, opened = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        connected.append(writer)
        if len(connected) == 2:
            both.set()
        await both.wait()  # so that each call has a connection of its own
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()
        ended.append(writer)
        writer.close()

    async def use(url: str) -> None:
        async with ApiClient.connect(Settings(api=url)) as client:
            await aio.gather(client.call(name, b"{}", "c1") for name in ("accept", "renew"))
            opened.set()
            await asyncio.Event().wait()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        task = asyncio.create_task(use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        await opened.wait()
        for _ in range(10):
            task.cancel()
            await asyncio.sleep(0)
        await wait_until(lambda: len(ended) == 2, what="both connections have ended")


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (503, "store-unavailable", StoreUnavailable),
        (503, "settling", Settling),
        (503, "outcome-unknown", OutcomeUnknown),
        (503, "too-many-connections", StoreUnavailable),
        (500, "internal-error", StoreUnavailable),
        (401, "unauthenticated", AgentRefused),
        (403, "forbidden", AgentRefused),
        (404, "not-found", AgentRefused),
        (429, "too-many-requests", StoreUnavailable),
        (409, "claim-state", ClaimState),
        (422, "invalid-request", InvalidRequest),
        (413, "body-too-large", InvalidRequest),
    ],
)
async def test_problems_are_the_errors_of_the_store(status: int, kind: str, error: type[RedschedError]) -> None:
    with pytest.raises(error) as raised:
        await client_of(problem(status, kind)).call("claims", b"{}", "c1")
    assert type(raised.value) is error


async def test_at_the_start_a_refused_token_is_said_plainly(tmp_path: Path) -> None:
    file = write(tmp_path / "token", "secret")
    with pytest.raises(Unauthenticated, match="why"):
        await client_of(problem(401, "unauthenticated"), str(file)).first()


async def test_a_missing_token_is_named_by_its_setting() -> None:
    with pytest.raises(Unauthenticated, match="has none: name the file with its token by --token-file or REDSCHED"):
        await client_of(problem(401, "unauthenticated")).first()


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'"x"'])
async def test_what_is_no_redsched_is_an_outage(content: bytes) -> None:
    client = client_of(lambda _: httpx.Response(200, content=content))
    with pytest.raises(StoreUnavailable, match="is not redsched"):
        await client.first()
    calls: tuple[AgentCall[Any], ...] = (RenewCall("h1", "a", "1-a.1", 30), ClaimsCall(("h1",), ("a",)))
    for call in (*calls, RestoreTextCall("h1", "a", "b", "c")):
        with pytest.raises(StoreUnavailable, match="is not redsched"):
            await RestCell(client, "c1").call(call)
    with pytest.raises(StoreUnavailable, match="502"):
        await client_of(lambda _: httpx.Response(502, content=content)).first()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (httpx.ConnectError("refused"), StoreUnavailable),
        (httpx.ConnectTimeout("late"), StoreUnavailable),
        (httpx.ReadTimeout("late"), OutcomeUnknown),
        (httpx.RemoteProtocolError("cut"), OutcomeUnknown),
        (httpx.WriteError("cut"), OutcomeUnknown),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_a_lost_reply_is_told_from_a_call_that_was_never_sent(
    failure: Exception, error: type[Unavailable]
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(error) as raised:
        await client_of(fail).call("claims", b"{}", "c1")
    assert type(raised.value) is error


async def test_the_token_is_sent_in_the_header_and_nowhere_else(tmp_path: Path) -> None:
    path, seen = tmp_path / "token", list[httpx.Request]()
    path.touch(0o600)
    path.write_text("rst_a_secret\n")

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(401, json={"type": "/problems/unauthenticated", "detail": "why"})

    with pytest.raises(StoreUnavailable) as raised:
        await client_of(reply, str(path)).call("claims", b"{}", "c1")
    assert seen[0].headers["authorization"] == "Bearer rst_a_secret"
    assert "secret" not in str(seen[0].url)
    assert "secret" not in str(raised.value)


async def test_heartbeats_that_are_due_together_are_one_request() -> None:
    sent = list[list[str]]()

    async def send(call: HeartbeatsCall) -> HeartbeatReplies:
        sent.append(sorted(call.hosts))
        return HeartbeatReplies({host: ScriptResult(Outcome.OK, "1-a", 1) for host in call.hosts if host != "h2"})

    def beat(host: str) -> HeartbeatsCall:
        return HeartbeatsCall({host: Beat(30, AgentStamp("j", "n", 1))})

    batcher = HeartbeatBatcher(send)
    results = await aio.gather(batcher.send(beat(host)) for host in ("h1", "h3"))
    assert [one.hosts.keys() for one in results] == [{"h1"}, {"h3"}]
    with pytest.raises(StoreUnavailable, match="lacks host h2"):
        await batcher.send(beat("h2"))
    assert sent == [["h1", "h3"], ["h2"]]


async def test_a_claim_that_has_left_the_host_is_not_in_the_reply() -> None:
    cell = RestCell(client_of(lambda _: httpx.Response(200, json={"claims": {}})), "c1")
    assert await cell.call(ClaimsCall(("h1",), ("a",))) == {}


async def test_a_call_sends_no_more_than_the_api_takes() -> None:
    """The newest of the ended placements, and the beginning of a reason."""
    sent = list[Any]()

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        return httpx.Response(200, json={"outcome": "OK", "epoch": "1-a", "now_ms": 1, "details": []})

    cell, stamp = RestCell(client_of(reply), "c1"), AgentStamp("j", "n", 1)
    await cell.call(FailCall("h1", "a", "1-a.1", "x" * (MAX_REASON + 1), is_gone=True))
    ended = tuple(EndedPlacement("a", f"1-a.{number}") for number in range(MAX_HOST_CLAIMS + 1))
    await cell.call(AttestCall("h1", "1-a", stamp, (), ended))
    assert (len(sent[0]["reason"]), len(sent[1]["ended"])) == (MAX_REASON, MAX_HOST_CLAIMS)
    assert sent[1]["ended"][-1]["token"] == ended[-1].token


async def test_names_of_keys_are_not_sent() -> None:
    """What counts a claim is for the store alone: the API takes no names of keys from a host."""
    sent = list[httpx.Request]()

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"outcome": "OK", "epoch": "1-a", "now_ms": 1, "details": []})

    await RestCell(client_of(reply), "c1").call(ResizedCall("h1", "a", "1-a.1", {"VCPU": 1}), ["server-group:web"])
    assert b"server-group" not in sent[0].content


async def test_an_api_that_does_not_relay_the_calls_is_said_to_be_of_another_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That of the release before has routes of their own for them: agents are upgraded after it."""
    client = client_of(lambda _: httpx.Response(200, json={"cells": ["c1"]}))

    @asynccontextmanager
    async def connect(*_: object) -> AsyncIterator[ApiClient]:
        yield client

    monkeypatch.setattr(ApiClient, "connect", connect)
    with pytest.raises(StoreUnavailable, match="upgrade the API first"):
        async with RestLink.connect(Settings(api="http://api"), ["c1"]):
            pass
