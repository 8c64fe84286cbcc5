"""Heads that RFC 9112 refuses: each is answered 400, ends the connection, and is not carried out."""

import pytest

from tests.serve.test_connection_limits import GET, PATIENT, exchange, of_problem, served

POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
LENGTH = b"content-length: 5\r\n\r\nhello"

REFUSED = {
    "tunnel": b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
    "gzip, chunked": POST + b"transfer-encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "gzip and chunked": POST + b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "chunked, gzip": POST + b"transfer-encoding: chunked, gzip\r\n\r\n" + CHUNKS,
    "chunked twice": POST + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "identity": POST + b"transfer-encoding: identity\r\n\r\n" + CHUNKS,
    "unknown coding": POST + b"transfer-encoding: xchunked\r\n\r\n" + CHUNKS,
    "length after coding": POST + b"transfer-encoding: chunked\r\n" + LENGTH,
    "coding after length": POST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "two lengths": POST + b"content-length: 5\r\n" + LENGTH,
    "list of lengths": POST + b"content-length: 5, 5\r\n\r\nhello",
    "signed length": POST + b"content-length: +5\r\n\r\nhello",
    "chunked in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "HTTP/2.0": GET.replace(b"1.1", b"2.0"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/1.2": GET.replace(b"1.1", b"1.2"),
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "folded header": POST + b"x: a\r\n b: c\r\n" + LENGTH,
    "space before the colon": POST + b"x : a\r\n" + LENGTH,
    "bare line feeds": POST.replace(b"\r\n", b"\n") + LENGTH.replace(b"\r\n", b"\n"),
    "no host": GET.replace(b"host: a\r\n", b""),
    "two hosts": POST + b"host: b\r\n" + LENGTH,
    "bad host": GET.replace(b"host: a", b"host: a/b"),
    "user in the host": GET.replace(b"host: a", b"host: a@b"),
}


@pytest.mark.parametrize("sent", REFUSED.values(), ids=list(REFUSED))
async def test_a_head_with_two_readings_is_refused_and_not_carried_out(sent: bytes) -> None:
    async with served(PATIENT) as (_, app, port):
        answer = await exchange(port, sent)
        assert of_problem(answer) == (400, "/problems/bad-http")
        assert answer.count(b"HTTP/1.1 4") == 1
        assert b"\r\nconnection: close\r\n" in answer.lower()
        assert app.calls == 0


@pytest.mark.parametrize(
    "sent",
    [
        GET,
        GET.replace(b"1.1", b"1.0").replace(b"host: a\r\n", b""),
        GET.replace(b"host: a", b"host: [::1]:8080"),
        GET.replace(b"host: a", b"host:"),
        GET.replace(b"GET /", b"GET http://b/"),
        POST + b"upgrade: h2c\r\n" + LENGTH,  # without Connection: upgrade it asks for nothing
        POST + b"transfer-encoding: Chunked\r\n\r\n" + CHUNKS,
    ],
)
async def test_other_heads_are_carried_out(sent: bytes) -> None:
    async with served(PATIENT) as (_, app, port):
        closing = sent.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        assert (await exchange(port, closing)).startswith(b"HTTP/1.1 200 ")
        assert app.calls == 1


OFFER = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n"
OFFERS = {
    "h2c": POST + OFFER + LENGTH,
    "h2c, chunked": POST + OFFER + b"transfer-encoding: chunked\r\n\r\n" + CHUNKS,
    "websocket": POST + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" + LENGTH,
    "no body": GET.replace(b"\r\n\r\n", b"\r\n" + OFFER + b"\r\n"),
    "an empty body": POST + OFFER + b"content-length: 0\r\n\r\n",
    "the last request": POST + OFFER.replace(b"upgrade, ", b"upgrade, close, ") + LENGTH,
    "HTTP/1.0": (POST + OFFER + LENGTH).replace(b"1.1", b"1.0"),
}
LAST = POST + b"connection: close\r\ncontent-length: 4\r\n\r\nlast"


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("sent", OFFERS.values(), ids=list(OFFERS))
async def test_an_offer_of_another_protocol_is_ignored(sent: bytes, in_pieces: bool) -> None:
    """The request is carried out once, with its whole body, and so is what follows on the connection.

    `Upgrade: h2c` was once answered 400 and carried out all the same, and was refused since.
    """
    async with served(PATIENT) as (_, app, port):
        # What comes after the last request resets the connection, and the client could lose the response to that.
        is_last = b"HTTP/1.0" in sent or b"close" in sent
        whole = sent if is_last else sent + LAST
        parts = [bytes((one,)) for one in whole] if in_pieces else [whole]
        answer = await exchange(port, *parts)
        body = b"" if b"length: 0" in sent else b"y" if sent.startswith(b"GET") else b"hello"
        heads = [one.partition(b"\r\n\r\n") for one in answer.split(b"HTTP/1.1 ")[1:]]
        rest = [] if is_last else [(b"200", b"last")]
        assert [(head[:3], found) for head, _, found in heads] == [(b"200", body), *rest]
        assert app.calls == len(heads)
        assert b"upgrade" not in answer.lower()


async def test_many_offers_are_carried_out_in_order() -> None:
    """However many come in one piece: the client has sent them ahead."""
    async with served(PATIENT) as (_, app, port):
        asked = [OFFERS["h2c"].replace(b"hello", f"no {number:2}".encode()) for number in range(10)]
        answer = await exchange(port, b"".join(asked) + LAST)
        assert [one.rpartition(b"\r\n")[2] for one in answer.split(b"HTTP/1.1 ")[1:-1]] == [
            f"no {number:2}".encode() for number in range(10)
        ]
        assert app.calls == 11


async def test_what_follows_an_offer_is_http_1() -> None:
    """The preface of HTTP/2, of a client that takes its offer for accepted, carries out nothing."""
    async with served(PATIENT) as (_, app, port):
        answer = await exchange(port, OFFERS["no body"].replace(b"GET /", b"GET /wait"), REFUSED["preface of HTTP/2"])
        assert app.calls == 1
        assert b" 101 " not in answer


async def test_a_bad_request_sent_ahead_is_not_the_response_to_the_first() -> None:
    """The first is carried out, so its client must not read that it was refused."""
    async with served(PATIENT) as (_, app, port):
        answer = await exchange(port, GET.replace(b"GET /", b"GET /wait") + REFUSED["two hosts"])
        assert answer == b""
        assert app.calls <= 1
