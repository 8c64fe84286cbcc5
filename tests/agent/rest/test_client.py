"""Requests to an API that a test plays: problems become the errors that the agent's loops know."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest

from redsched import aio
from redsched.agent.backoff import AgentRefused
from redsched.agent.rest.client import ApiClient
from redsched.agent.rest.heartbeats import HeartbeatBatcher
from redsched.agent.rest.link import RestCellLink
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
from redsched.model import AgentStamp
from redsched.rest.endpoint import TokenFile
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult
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
            await aio.gather(client.call("GET", path) for path in ("/a", "/b"))
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
        await client_of(problem(status, kind)).call("POST", "/v1/agent/claims", {})
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
    with pytest.raises(StoreUnavailable, match="is not redsched"):
        await client_of(lambda _: httpx.Response(200, content=content)).call("GET", "/v1/agent")
    with pytest.raises(StoreUnavailable, match="502"):
        await client_of(lambda _: httpx.Response(502, content=content)).call("GET", "/v1/agent")


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
        await client_of(fail).call("POST", "/v1/agent/claims", {})
    assert type(raised.value) is error


async def test_the_token_is_sent_in_the_header_and_nowhere_else(tmp_path: Path) -> None:
    path, seen = tmp_path / "token", list[httpx.Request]()
    path.touch(0o600)
    path.write_text("rst_a_secret\n")

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(401, json={"type": "/problems/unauthenticated", "detail": "why"})

    with pytest.raises(StoreUnavailable) as raised:
        await client_of(reply, str(path)).call("POST", "/v1/agent/claims", {"hosts": []}, [("cell", "c1")])
    assert seen[0].headers["authorization"] == "Bearer rst_a_secret"
    assert "secret" not in str(seen[0].url)
    assert "secret" not in str(raised.value)


async def test_heartbeats_that_are_due_together_are_one_request() -> None:
    sent = list[list[str]]()

    async def send(beats: Mapping[str, object]) -> Mapping[str, ScriptResult]:
        sent.append(sorted(beats))
        return {host: ScriptResult(Outcome.OK, "1-a", 1) for host in beats if host != "h2"}

    batcher, stamp = HeartbeatBatcher(send), AgentStamp("j", "n", 1)
    results = await aio.gather(batcher.beat(host, 30, stamp) for host in ("h1", "h3"))
    assert [one.outcome for one in results] == [Outcome.OK, Outcome.OK]
    with pytest.raises(StoreUnavailable, match="lacks host h2"):
        await batcher.beat("h2", 30, stamp)
    assert sent == [["h1", "h3"], ["h2"]]


async def test_a_claim_that_has_left_the_host_is_not_in_the_reply() -> None:
    link = RestCellLink(client_of(lambda _: httpx.Response(200, json={"claims": {}})), "c1")
    assert await link.claims(["h1"], ["a"]) == {}
    assert await link.claims(["h1"], []) == {}
