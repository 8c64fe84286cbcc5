"""Hooks that are URLs, against a server in this process."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from redsched.agent.hooks.base import MAX_OUTPUT_BYTES, MAX_TAIL, HookFailed, HookNotRun, HookRequest, Verb
from redsched.agent.hooks.http import UrlHook
from redsched.agent.run import hook_of
from redsched.aio import end
from redsched.origin import Origin
from redsched.settings import Settings
from tests.agent.conftest import held_work
from tests.support.waiting import patience_s, wait_until

WORK = held_work("c1.a", "1-a.7", {"VCPU": 2}, placed="1-a.5", origin=Origin("ci/münchen", "r-1"))
START, STOP = HookRequest(Verb.START, "c1", "h1", WORK), HookRequest(Verb.STOP, "c1", "h1", WORK)

Answering = Callable[[BaseHTTPRequestHandler], None]
Serve = Callable[[Answering], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server, whose POST requests `answer` handles, and returns its URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answering) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/hook?key=1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def answering(status: int, body: bytes = b"", **headers: str) -> Answering:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers["Content-Length"]))
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


async def test_a_url_gets_the_claim_as_a_post(serve: Serve) -> None:
    seen: list[tuple[str, dict[str, str], bytes]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        seen.append((handler.path, dict(handler.headers), body))
        handler.send_response(204)
        handler.end_headers()

    hook = hook_of(Settings(hook=serve(answer)))
    assert isinstance(hook, UrlHook)
    assert await hook.run(START) == b""
    path, headers, body = seen[0]
    assert path == "/hook?key=1"
    assert json.loads(body) == json.loads(START.body())
    assert headers["Content-Type"] == "application/json"
    own = {name: value for name, value in headers.items() if name.startswith("Redsched-")}
    assert own == {
        "Redsched-Verb": "start",
        "Redsched-Claim-Id": "c1.a",
        "Redsched-Token": "1-a.7",
        "Redsched-Placed": "1-a.5",
        "Redsched-Actor": "ci/m%C3%BCnchen",
        "Redsched-Request-Id": "r-1",
    }


async def test_its_answer_may_name_the_work(serve: Serve) -> None:
    assert await UrlHook(serve(answering(200, b'{"domain": "vm"}')), 20).run(START) == b'{"domain": "vm"}'


async def test_a_large_answer_is_cut(serve: Serve) -> None:
    assert await UrlHook(serve(answering(200, b"x" * 3_000_000)), 20).run(START) == b"x" * MAX_OUTPUT_BYTES


async def test_the_reason_of_a_failure_has_the_status_and_the_end_of_the_body(serve: Serve) -> None:
    body = b"x" * 100_000 + b"\x1b no more disks"
    with pytest.raises(HookFailed) as failed:
        await UrlHook(serve(answering(503, body)), 20).run(START)
    what, _, said = failed.value.reason.partition("\n")
    assert what.endswith("start for c1.a answered 503 Service Unavailable")
    assert said == "x" * (MAX_TAIL - 15) + "  no more disks"


@pytest.mark.parametrize("status", [301, 302, 400, 404, 500, 503])
async def test_anything_but_a_2xx_fails(serve: Serve, status: int) -> None:
    """Redirects fail too: if they were followed, the POST would become a GET of something else."""
    with pytest.raises(HookFailed, match=f"start for c1.a answered {status}"):
        await UrlHook(serve(answering(status, Location="/elsewhere")), 20).run(START)


async def test_a_server_that_is_not_there_fails(serve: Serve) -> None:
    with pytest.raises(HookNotRun, match="refused"):
        await UrlHook("http://127.0.0.1:1/", 20).run(START)


async def test_an_answer_that_is_not_http_fails(serve: Serve) -> None:
    with pytest.raises(HookFailed, match="failed"):
        await UrlHook(serve(lambda handler: handler.connection.sendall(b"garbage\r\n\r\n")), 20).run(START)


async def test_a_server_that_never_answers_is_given_up(serve: Serve) -> None:
    never = threading.Event()

    def keep_silent(_: BaseHTTPRequestHandler) -> None:
        never.wait(30)

    with pytest.raises(HookFailed, match=r"longer than 0\.2 s|timed out"):
        await UrlHook(serve(keep_silent), 0.2).run(START)
    never.set()


async def test_a_server_that_drips_is_given_up(serve: Serve) -> None:
    never = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not never.wait(0.02):
            handler.wfile.write(b".")
            handler.wfile.flush()

    with pytest.raises(HookFailed, match=r"longer than|does not end"):
        await UrlHook(serve(drip), 0.3).run(START)
    never.set()


async def test_a_cancelled_call_hangs_up(serve: Serve) -> None:
    arrived, hung_up = threading.Event(), threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers["Content-Length"]))
        arrived.set()
        if handler.connection.recv(1) == b"":
            hung_up.set()

    running = asyncio.create_task(UrlHook(serve(answer), 600).run(START))
    assert await asyncio.to_thread(arrived.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(hung_up.wait, 10)


async def test_a_call_that_is_cancelled_before_it_is_connected_is_never_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine its thread may not have run yet: a start sent after the stop would run work without a claim."""
    seen: list[str] = []
    is_connecting, may_connect = threading.Event(), threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["Redsched-Verb"])
        answering(204)(handler)

    hook = UrlHook(serve(answer), 30.0)
    connect = hook._connect

    def connect_late(connection: http.client.HTTPConnection, order: HookRequest) -> None:
        if order is START:
            is_connecting.set()
            may_connect.wait(patience_s(30))
        connect(connection, order)

    monkeypatch.setattr(hook, "_connect", connect_late)
    starting = asyncio.create_task(hook.run(START))
    await wait_until(is_connecting.is_set)
    await end(starting, again_after_s=0.01)  # cancelled more than once, as the agent does
    await hook.run(STOP)
    may_connect.set()
    await asyncio.to_thread(hook._threads.shutdown)
    assert seen == ["stop"]
