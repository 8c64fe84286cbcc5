"""Connections with limits: what a client sends too much of, too slowly or too often ends its connection, and no other.

Each server here runs the protocol of the API with an application of its own, over a real socket.
"""

import asyncio
import dataclasses
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from redsched.api.request_body import read_bytes
from redsched.errors import RedschedError
from redsched.serve import http_connection
from redsched.serve.exposure import Peers
from redsched.serve.http_connection import (
    BEYOND,
    MAX_HEAD_BYTES,
    MAX_PIPELINED,
    ConnectionLimits,
    HttpConnection,
    _Phase,
    close_idlest,
)
from redsched.serve.problems import problem
from redsched.serve.tls import TlsContexts
from redsched.serve.worker import SPARE_FILES, LimitedServer, close_late, connection_limits
from redsched.settings import Settings
from tests.support.waiting import patience_s, wait_until

PROMPT = ConnectionLimits(connections=1000, head_s=0.2, body_s=0.2, reader_s=0.2)
PATIENT = ConnectionLimits(connections=1000, head_s=60, body_s=60, reader_s=60)
MEGABYTE = 1 << 20
HALF_A_BODY = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n1"
OF_NO_TYPE = b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n1"
"""It is refused before its body has come."""
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 200000\r\n\r\n"


class _App:
    """Responds with the headers and body of the request, or waits at /wait until it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.calls = 0
        self.scheme = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.settings = Settings(redis_url="redis://localhost")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        self.calls += 1
        self.scheme = scope["scheme"]
        request = Request(scope, receive)
        try:
            if scope["path"] == "/wait":
                await self.released.wait()
            body = await read_bytes(request) if scope["method"] == "POST" else b"y" * int(scope["query_string"] or 1)
        except RedschedError as error:
            return await problem(error)(scope, receive, send)
        self.headers = scope["headers"]
        return await Response(body)(scope, receive, send)

    @property
    def state(self) -> Any:
        return self


class _Server(LimitedServer):
    async def on_tick(self, counter: int) -> bool:
        close_late(self.server_state.connections)
        return await super().on_tick(counter)


@asynccontextmanager
async def served(limits: ConnectionLimits, tls: TlsContexts | None = None) -> AsyncIterator[tuple[_Server, _App, int]]:
    """Yield a server, its application and its port."""
    app = _App()
    config = uvicorn.Config(
        app,
        http=partial(HttpConnection, limits),  # type: ignore[arg-type]  # called like a class
        lifespan="off",
        log_config=None,
        timeout_keep_alive=3600,  # so that it is the limits that close connections
        timeout_graceful_shutdown=1,
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = _Server(config, limits, tls)
        serving = asyncio.create_task(server._serve([listener]))
        await wait_until(lambda: server.started)
        try:
            yield server, app, listener.getsockname()[1]
        finally:
            app.released.set()
            server.should_exit = True
            await serving


@asynccontextmanager
async def opened(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def exchange(port: int, *parts: bytes) -> bytes:
    """Send parts, each once the one before has left, and return all that comes until the server closes."""
    async with asyncio.timeout(patience_s(20)), opened(port) as (reader, writer):
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            pass  # the server has ended the connection, maybe with a response
        try:
            return await reader.read()
        except ConnectionError:
            return b""


def of_problem(answer: bytes) -> tuple[int, str]:
    """Return the status and the type of a problem."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head, answer
    found = json.loads(body)
    assert found["status"] == int(head.split()[1])
    return found["status"], found["type"]


LONG = b"x" * MAX_HEAD_BYTES
TOO_LARGE = (431, "/problems/headers-too-large")


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET /" + LONG + b" HTTP/1.1\r\nhost: a\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nhost: a\r\na: " + LONG + b"\r\n\r\n"],
        [b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: %s\r\n" % (n, b"x" * 1000) for n in range(40)) + b"\r\n"],
    ],
    ids=["URL", "header", "headers"],
)
async def test_a_large_head_is_refused(parts: list[bytes]) -> None:
    async with served(PATIENT) as (_, _, port):
        assert of_problem(await exchange(port, *parts)) == TOO_LARGE


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nhost: a\r\na: ",
        b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: ",
        b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1;a=",
    ],
    ids=["URL", "header", "trailer", "chunk extension"],
)
async def test_an_endless_head_or_trailer_is_cut_off_early(start: bytes) -> None:
    """100 MB took 1.3 GB of memory, as the parser collects what has no end. Here the connection ends long before."""
    async with served(PATIENT) as (_, _, port), opened(port) as (reader, writer):
        writer.write(start)
        sent = 0
        try:
            async with asyncio.timeout(patience_s(20)):
                while not reader.at_eof() and sent < 100 * MEGABYTE:
                    writer.write(b"x" * 65_536)
                    await writer.drain()
                    sent += 65_536
        except ConnectionError:
            pass
        # What the buffers of both sockets take is sent before the end is seen.
        assert sent < 20 * MEGABYTE


async def test_heads_below_the_limit_pass_however_they_are_split() -> None:
    """Neither many packets, nor a body and the next head in one, make a head look larger than it is."""
    head = b"GET / HTTP/1.1\r\nhost: a\r\na: " + b"x" * (MAX_HEAD_BYTES - 2000) + b"\r\n"
    body = b'{"a": "' + b"y" * 100_000 + b'"}'
    post = b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with served(PATIENT) as (_, _, port):
        steps = [head[at : at + 1500] for at in range(0, len(head), 1500)]
        answer = await exchange(port, *steps, b"\r\n", post + body + head + b"connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 3


async def test_small_chunks_are_not_taken_for_trailers() -> None:
    body = b"".join(b"1\r\ny\r\n" for _ in range(3 * MAX_HEAD_BYTES)) + b"0\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
    async with served(PATIENT) as (_, _, port):
        answer = await exchange(port, head + b"connection: close\r\n\r\n", body)
    assert answer.endswith(b"y" * 3 * MAX_HEAD_BYTES)


async def test_trailers_do_not_become_headers() -> None:
    head = b"POST / HTTP/1.1\r\nhost:a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
    async with served(PATIENT) as (_, app, port):
        await exchange(port, head + b"connection: close\r\n\r\n1\r\ny\r\n0\r\nsecret: 1\r\n\r\n")
        assert app.headers
        assert b"secret" not in dict(app.headers)


async def test_what_is_not_http_gets_a_problem() -> None:
    async with served(PATIENT) as (_, _, port):
        assert of_problem(await exchange(port, b"\x16\x03\x01\x00\xa5")) == (400, "/problems/bad-http")


async def test_a_connection_that_sends_nothing_is_closed() -> None:
    async with served(PROMPT) as (server, _, port):
        assert await exchange(port) == b""
        await wait_until(lambda: not server.server_state.connections)


@pytest.mark.parametrize(
    ("sent", "phase", "expected"),
    [
        (b"GET / HTTP/1.1\r\nhost", _Phase.HEAD, b"HTTP/1.1 408 "),
        (HALF_A_BODY, _Phase.BODY, b"HTTP/1.1 408 "),
        (OF_NO_TYPE, _Phase.BODY, b"HTTP/1.1 415 "),
    ],
    ids=["half a head", "half a body", "half a body after the response"],
)
async def test_a_connection_that_stops_sending_is_closed(sent: bytes, phase: _Phase, expected: bytes) -> None:
    """They were all kept for ever. There is one response at most. Its time is up once all that is sent has arrived."""
    async with served(PATIENT) as (server, _, port), opened(port) as (reader, writer):
        writer.write(sent)
        await wait_until(lambda: [one._phase for one in server.server_state.connections] == [phase])  # type: ignore[union-attr]
        before = await reader.readuntil(b"\r\n\r\n") if sent is OF_NO_TYPE else b""
        await wait_until(lambda: bool(server.server_state.tasks) == (sent is HALF_A_BODY))
        an_hour_passes(server)
        async with asyncio.timeout(patience_s(20)):
            answer = before + await reader.read()
        assert answer.startswith(expected)
        assert answer.count(b"HTTP/1.1") == 1
        await wait_until(lambda: not server.server_state.connections)


def an_hour_passes(server: _Server) -> None:
    """Have the only connection check its limits as if an hour had passed."""
    (connection,) = server.server_state.connections
    connection.close_if_late(asyncio.get_running_loop().time() + 3600)  # type: ignore[union-attr]


async def test_a_request_that_takes_long_is_not_late() -> None:
    """The limits are those of the client, not of the application."""
    async with served(PATIENT) as (server, app, port), opened(port) as (reader, writer):
        writer.write(GET.replace(b"GET /", b"GET /wait"))
        await wait_until(lambda: bool(server.server_state.tasks))
        an_hour_passes(server)
        app.released.set()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_a_client_that_does_not_read_is_closed() -> None:
    impatient = dataclasses.replace(PATIENT, reader_s=0.2)
    async with served(impatient) as (server, app, port), opened(port) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GET.replace(b"GET /", b"GET /?100000000"))
        await wait_until(lambda: app.calls == 1)
        await wait_until(lambda: not server.server_state.connections)


async def test_a_new_connection_takes_the_place_of_the_idlest() -> None:
    """400 idle connections shut everybody out. Connections that are in use stay."""
    few = ConnectionLimits(connections=20, head_s=60, body_s=60, reader_s=60)
    async with served(few) as (server, app, port):
        used = await asyncio.open_connection("127.0.0.1", port)
        used[1].write(GET.replace(b"GET /", b"GET /wait"))
        await wait_until(lambda: bool(server.server_state.tasks))
        halves = [b"", b"GET / HT", HALF_A_BODY]
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for number, (_, writer) in enumerate(idle):
            writer.write(halves[number % 3])
        for _ in range(5):
            answer = await exchange(port, GET.replace(b"host: a", b"host: a\r\nconnection: close"))
            assert answer.startswith(b"HTTP/1.1 200")
        assert len(server.server_state.connections) <= 21
        app.released.set()
        assert (await used[0].readline()).startswith(b"HTTP/1.1 200")
        for _, writer in (used, *idle):
            writer.close()


async def test_more_requests_in_progress_than_connections_are_refused() -> None:
    few = ConnectionLimits(connections=3, head_s=60, body_s=60, reader_s=60)
    async with served(few) as (server, app, port):
        waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in waiting:
            writer.write(GET.replace(b"GET /", b"GET /wait"))
        await wait_until(lambda: len(server.server_state.tasks) == 3)
        answer = await exchange(port)
        assert of_problem(answer) == (503, "/problems/too-many-connections")
        assert b"\r\nretry-after: 1\r\n" in answer
        app.released.set()
        for reader, writer in waiting:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()


WAIT = GET.replace(b"GET /", b"GET /wait")
FULL = (503, "/problems/too-many-connections")


@contextmanager
def at_once(port: int, *sent: bytes) -> Iterator[list[socket.socket]]:
    """Open a connection for each of these texts, and send it, while the event loop cannot accept any."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in sent]
        for one, text in zip(opened, sent, strict=True):
            one.sendall(text)
            one.setblocking(False)
        yield opened


async def received(client: socket.socket) -> bytes:
    """Return all that comes until the server closes. Raises ConnectionResetError if it resets the connection."""
    loop, found = asyncio.get_running_loop(), b""
    async with asyncio.timeout(patience_s(20)):
        while more := await loop.sock_recv(client, 65_536):
            found += more
    return found


@pytest.mark.parametrize("has_sent", [True, False], ids=["requests sent", "nothing sent yet"])
async def test_every_connection_beyond_the_limit_gets_a_problem_at_once(has_sent: bool) -> None:
    """Ten of 30 requests that wait were closed without a response, to make room for others."""
    few = ConnectionLimits(connections=20, head_s=60, body_s=60, reader_s=60)
    waiting = WAIT.replace(b"host: a", b"host: a\r\nconnection: close")
    async with served(few) as (_, app, port):
        with at_once(port, *([waiting if has_sent else b""] * 30)) as clients:
            answers = [asyncio.create_task(received(one)) for one in clients]
            await wait_until(lambda: sum(one.done() for one in answers) == 10)
            if not has_sent:
                for client, answer in zip(clients, answers, strict=True):
                    if not answer.done():
                        client.sendall(waiting)
            await wait_until(lambda: app.calls == 20)
            refused = [one.result() for one in answers if one.done()]
            assert [of_problem(one) for one in refused] == [FULL] * 10
            assert all(b"\r\nretry-after: 1\r\n" in one for one in refused)
            app.released.set()
            served_ones = [one for one in await asyncio.gather(*answers) if one.startswith(b"HTTP/1.1 200")]
            assert len(served_ones) == 20
        await wait_until(lambda: not few.refused)


async def test_a_refused_connection_is_not_reset_before_its_response_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client sends meanwhile is read: a reset could take the response from it. It ends with the client's."""
    monkeypatch.setattr(http_connection, "LINGER_S", 3600.0)
    none = ConnectionLimits(connections=0, head_s=60, body_s=60, reader_s=60)
    async with served(none) as (_, app, port):
        with at_once(port, POST + b"x" * 100_000) as (client,):
            assert of_problem(await received(client)) == FULL
            client.sendall(b"x" * 100_000)
            assert none.refused
        await wait_until(lambda: not none.refused)
        assert app.calls == 0


async def test_refused_connections_that_stay_open_are_few() -> None:
    none = ConnectionLimits(connections=0, head_s=60, body_s=60, reader_s=60)
    async with served(none) as (_, _, port):
        with at_once(port, *[GET] * (BEYOND + 5)) as clients:
            for one in clients:
                assert of_problem(await received(one)) == FULL
            assert len(none.refused) <= BEYOND


async def test_a_connection_between_two_requests_gives_way_without_a_response() -> None:
    """Its client would take a problem for the response to its next request."""
    few = ConnectionLimits(connections=1, head_s=60, body_s=60, reader_s=60)
    async with served(few) as (_, _, port), opened(port) as (reader, writer):
        writer.write(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        await reader.readexactly(1)
        async with opened(port) as (other, to_other):
            to_other.write(GET)
            assert (await other.readline()).startswith(b"HTTP/1.1 200")
            with suppress(ConnectionError):
                assert await reader.read() == b""


async def test_a_connection_whose_next_request_is_on_its_way_does_not_give_way() -> None:
    """The request would be lost: it is sent, and the server has not read it yet."""
    loop = asyncio.get_running_loop()
    async with served(PATIENT) as (server, _, port):
        with at_once(port, GET) as (client,):
            assert (await loop.sock_recv(client, 65_536)).startswith(b"HTTP/1.1 200")
            (kept,) = server.server_state.connections
            assert isinstance(kept, HttpConnection)
            await wait_until(lambda: kept.idle_since_s is not None)
            client.sendall(GET.replace(b"host: a", b"host: a\r\nconnection: close"))
            assert not close_idlest(server.server_state.connections)
            assert b"HTTP/1.1 200" in await received(client)


async def test_others_than_the_proxy_are_refused() -> None:
    nobody = ConnectionLimits(connections=20, head_s=60, body_s=60, reader_s=60, peers=_Nobody(()))
    async with served(nobody) as (_, app, port):
        assert of_problem(await exchange(port, GET)) == (403, "/problems/forbidden")
        assert app.calls == 0


class _Nobody(Peers):
    def accept(self, text: str) -> bool:
        assert text == "127.0.0.1"
        return False


async def test_requests_sent_ahead_of_a_slow_one_are_limited() -> None:
    async with served(PATIENT) as (_, _, port):
        ahead = GET.replace(b"GET /", b"GET /wait") + GET * (MAX_PIPELINED + 1)
        assert await exchange(port, ahead) == b""  # the slow one is carried out: a problem would be its response


async def test_an_aborted_body_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """1,000 of them were 2,000 tracebacks, 4 MB of log."""
    async with served(PATIENT) as (server, _, port):
        async with opened(port) as (_, writer):
            writer.write(HALF_A_BODY)
            await wait_until(lambda: bool(server.server_state.tasks))
        await wait_until(lambda: not server.server_state.tasks)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_process_takes_no_more_connections_than_it_may_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises its limit of open files as far as it may."""
    now = (300, 300)
    monkeypatch.setattr("redsched.serve.worker.resource.getrlimit", lambda _: now)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr("redsched.serve.worker.resource.setrlimit", lambda _, limits: asked.append(limits))
    assert connection_limits(Settings(redis_url="redis://a")).connections == 300 - SPARE_FILES
    now = (300, 100_000)
    assert connection_limits(Settings(redis_url="redis://a")).connections == 1000
    assert asked[-1] == (1000 + SPARE_FILES, 100_000)
