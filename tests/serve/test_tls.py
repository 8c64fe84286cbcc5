"""TLS of the API, over real sockets: who is let in, what ends the connection, and renewal without a restart."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from redsched.errors import InvalidRequest
from redsched.serve.http_connection import BEYOND, ConnectionLimits
from redsched.serve.tls import TlsContexts, TlsFiles
from redsched.settings import Settings
from tests.serve.test_connection_limits import GET, PATIENT, PROMPT, exchange, of_problem, served
from tests.support.certificates import Authority, Pair
from tests.support.waiting import patience_s, wait_until

CLOSING = GET.replace(b"host: a", b"host: a\r\nconnection: close")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def files_of(pair: Pair, ca: Path | None = None) -> TlsFiles:
    return TlsFiles(pair.cert, pair.key, ca)


def trusting(ca: Path, own: Pair | None = None) -> ssl.SSLContext:
    """Return the context of a client."""
    context = ssl.create_default_context(cafile=ca)
    if own is not None:
        context.load_cert_chain(own.cert, own.key)
    return context


@asynccontextmanager
async def connected(
    port: int, context: ssl.SSLContext
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def ask(port: int, context: ssl.SSLContext, request: bytes = CLOSING) -> bytes:
    """Send a request over TLS, and return all that comes until the server closes. Raises ssl.SSLError."""
    async with asyncio.timeout(patience_s(20)), connected(port, context) as (reader, writer):
        writer.write(request)
        return await reader.read()


async def test_https_is_served_with_all_of_http(authority: Authority) -> None:
    """The request that comes with the end of the handshake is not lost, and large bodies pass both ways."""
    body = b'{"a": "' + b"y" * 500_000 + b'"}'
    head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\n"
    async with served(PATIENT, TlsContexts(files_of(authority.sign("api")))) as (server, app, port):
        context = trusting(authority.ca)
        for _ in range(5):
            assert (await ask(port, context)).startswith(b"HTTP/1.1 200 ")
        answer = await ask(port, context, head + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert answer.endswith(body)
        assert app.scheme == "https"
        await wait_until(lambda: not server.server_state.connections)


async def test_old_versions_of_tls_are_refused(authority: Authority) -> None:
    old = trusting(authority.ca)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    async with served(PATIENT, TlsContexts(files_of(authority.sign("api")))) as (_, app, port):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await ask(port, old)
        assert app.calls == 0


async def test_clients_need_a_certificate_of_the_authority(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    contexts = TlsContexts(files_of(authority.sign("api"), authority.ca))
    async with served(PATIENT, contexts) as (server, app, port):
        for own in (None, other.sign("stranger")):
            # With TLS 1.3, the client's side of the handshake is complete before the server refuses it.
            with suppress(ssl.SSLError, ConnectionError):
                assert await ask(port, trusting(authority.ca, own)) == b""
        assert app.calls == 0
        await wait_until(lambda: not server.server_state.connections)
        answer = await ask(port, trusting(authority.ca, authority.sign("client", "h1")))
        assert answer.startswith(b"HTTP/1.1 200 ")


async def test_plain_http_on_a_tls_port_is_closed(
    authority: Authority, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with served(PATIENT, TlsContexts(files_of(authority.sign("api")))) as (server, app, port):
        assert b"HTTP/1.1" not in await exchange(port, GET)
        await wait_until(lambda: not server.server_state.connections)
        assert app.calls == 0
    assert not caplog.records
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00"], ids=["nothing", "half a record"])
async def test_a_handshake_that_does_not_end_is_late(authority: Authority, sent: bytes) -> None:
    async with served(PROMPT, TlsContexts(files_of(authority.sign("api")))) as (server, _, port):
        assert await exchange(port, sent) == b""
        await wait_until(lambda: not server.server_state.connections)


async def test_idle_handshakes_count_as_connections(authority: Authority) -> None:
    """They give way to a new connection, as idle connections do."""
    few = ConnectionLimits(connections=20, head_s=60, body_s=60, reader_s=60)
    async with served(few, TlsContexts(files_of(authority.sign("api")))) as (server, _, port):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for _ in range(5):
            assert (await ask(port, trusting(authority.ca))).startswith(b"HTTP/1.1 200 ")
        assert len(server.server_state.connections) <= 21 + BEYOND
        for _, writer in idle:
            writer.close()


async def test_every_tls_connection_beyond_the_limit_gets_a_problem(authority: Authority) -> None:
    """Nothing can be sent without a handshake: some are made beyond the limit."""
    few = ConnectionLimits(connections=20, head_s=60, body_s=60, reader_s=60)
    waiting = b"GET /wait HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    async with served(few, TlsContexts(files_of(authority.sign("api")))) as (_, app, port):
        asked = [asyncio.create_task(ask(port, trusting(authority.ca), waiting)) for _ in range(30)]
        await wait_until(lambda: sum(one.done() for one in asked) == 10)
        await wait_until(lambda: app.calls == 20)
        assert [of_problem(one.result())[0] for one in asked if one.done()] == [503] * 10
        app.released.set()
        served_ones = [one for one in await asyncio.gather(*asked) if one.startswith(b"HTTP/1.1 200")]
        assert len(served_ones) == 20


@contextmanager
def at_once(port: int, count: int) -> Iterator[None]:
    """Open connections while the event loop cannot accept any."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield


async def test_handshakes_that_arrive_together_take_no_more_places_than_there_are(authority: Authority) -> None:
    """One that gives way before it has begun leaves its place and its socket too."""
    few = ConnectionLimits(connections=5, head_s=60, body_s=60, reader_s=60)
    async with served(few, TlsContexts(files_of(authority.sign("api")))) as (server, _, port):
        with at_once(port, 40 + BEYOND):
            assert (await ask(port, trusting(authority.ca))).startswith(b"HTTP/1.1 200 ")
            assert len(server.server_state.connections) <= 6 + BEYOND


async def test_a_server_that_stops_waits_for_no_handshake(authority: Authority) -> None:
    async with (
        asyncio.timeout(patience_s(20)),
        served(PATIENT, TlsContexts(files_of(authority.sign("api")))) as (server, _, port),
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await wait_until(lambda: bool(server.server_state.connections))
    writer.close()


async def serial(port: int, context: ssl.SSLContext) -> object:
    """Return the serial number of the certificate that the server shows."""
    async with connected(port, context) as (_, writer):
        return writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]


async def test_a_renewed_certificate_is_used_without_a_restart(authority: Authority) -> None:
    """Half of a renewal, or a file that is no certificate, leaves the former one in use. Connections stay."""
    pair = authority.sign("api")
    contexts, context = TlsContexts(files_of(pair)), trusting(authority.ca)
    async with served(PATIENT, contexts) as (_, _, port), connected(port, context) as (reader, writer):
        first = await serial(port, context)
        renewed = authority.sign("renewed")
        for half in (renewed.cert.read_bytes(), b"no certificate"):
            pair.cert.write_bytes(half)
            contexts.renew()
            assert await serial(port, context) == first
        pair.cert.write_bytes(renewed.cert.read_bytes())
        pair.key.write_bytes(renewed.key.read_bytes())
        contexts.renew()
        assert await serial(port, context) != first
        writer.write(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


def test_files_are_read_again_only_when_they_change(authority: Authority) -> None:
    contexts = TlsContexts(files_of(authority.sign("api")))
    before = contexts.current
    contexts.renew()
    assert contexts.current is before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_refused(authority: Authority, mode: int) -> None:
    pair = authority.sign("api")
    pair.key.chmod(mode)
    with pytest.raises(InvalidRequest, match=f"api.key has mode {mode:04o}.*chmod 600"):
        files_of(pair).context()


def test_files_that_cannot_be_used_are_named(authority: Authority, tmp_path: Path) -> None:
    pair, other = authority.sign("api"), authority.sign("other")
    for files, word in (
        (TlsFiles(pair.cert, other.key, None), "MISMATCH"),
        (TlsFiles(tmp_path / "nix.pem", pair.key, None), "No such file"),
        (TlsFiles(pair.cert, tmp_path / "nix.key", None), "No such file"),
        (TlsFiles(pair.cert, pair.key, tmp_path / "nix.pem"), "nix.pem"),
        (TlsFiles(pair.cert, pair.key, pair.key), "api.key"),
    ):
        with pytest.raises(InvalidRequest, match=word):
            files.context()


@pytest.mark.parametrize("given", [{"tls_cert": "a"}, {"tls_key": "a"}, {"tls_ca": "a"}])
def test_a_certificate_needs_a_key(given: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="--tls-key"):
        TlsFiles.of(Settings(**given))
