"""Refusals before the body is read, over real sockets: what follows on the connection is never taken for a request."""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from redsched.serve.supervisor import Workers
from tests.api.access.parts import token_file
from tests.auth.parts import token
from tests.support.waiting import patience_s

SMUGGLED = (
    b"DELETE /v1/claims/web-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token("operator").encode() + b"\r\n\r\n"
)
NEXT = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def port(clean_store: str, tmp_path: Path) -> Iterator[int]:
    """Yield the port of a worker with authentication."""
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store, "REDSCHED_AUTH": os.fspath(token_file(tmp_path))})
        yield int(workers.url.rpartition(":")[2])


async def answers(port: int, *pieces: bytes) -> list[bytes]:
    """Send pieces, each after the response to the one before, until the server closes; return the status lines."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found: list[bytes] = []
    try:
        async with asyncio.timeout(patience_s(20)):
            for piece in pieces[:-1]:
                writer.write(piece)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                found += [head.split(b"\r\n")[0], *([b"closes"] if b"connection: close" in head.lower() else [])]
                await reader.readexactly(length)
            writer.write(pieces[-1])
            rest = await reader.read()
    except ConnectionError:
        rest = b""
    finally:
        writer.close()
    return [*found, *re.findall(rb"HTTP/1\.1 [0-9]+ [A-Za-z]+(?=\r\n)", rest)]


def post(body: bytes, *headers: bytes) -> bytes:
    """Return the head of a request without a token whose body looks like a request."""
    given = b"".join(one + b"\r\n" for one in (b"Host: x", b"Content-Type: application/json", *headers))
    return b"POST /v1/selections HTTP/1.1\r\n" + given + b"\r\n" + body


async def test_the_body_of_a_refused_request_is_skipped(port: int) -> None:
    """Its declared length is, whenever it arrives; the next request is answered on the same connection."""
    length = b"Content-Length: %d" % len(SMUGGLED)
    assert await answers(port, post(SMUGGLED, length) + NEXT) == [b"HTTP/1.1 401 Unauthorized", b"HTTP/1.1 200 OK"]
    assert await answers(port, post(b"", length), SMUGGLED + NEXT) == [
        b"HTTP/1.1 401 Unauthorized",
        b"HTTP/1.1 200 OK",
    ]


async def test_a_refused_body_in_chunks_is_skipped(port: int) -> None:
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
    found = await answers(port, post(b"", b"Transfer-Encoding: chunked"), chunked + NEXT)
    assert found == [b"HTTP/1.1 401 Unauthorized", b"HTTP/1.1 200 OK"]


async def test_who_waits_for_100_continue_is_refused_and_the_connection_closed(port: int) -> None:
    """It may or may not send its body then: nothing that it sends is read."""
    head = post(b"", b"Content-Length: %d" % len(SMUGGLED), b"Expect: 100-continue")
    assert await answers(port, head, SMUGGLED) == [b"HTTP/1.1 401 Unauthorized", b"closes"]
    assert await answers(port, head, NEXT) == [b"HTTP/1.1 401 Unauthorized", b"closes"]


async def test_a_forbidden_request_keeps_the_connection_as_well(port: int) -> None:
    head = post(b"", b"Content-Length: %d" % len(SMUGGLED), b"Authorization: Bearer " + token("of-h1").encode())
    assert await answers(port, head, SMUGGLED + NEXT) == [b"HTTP/1.1 403 Forbidden", b"HTTP/1.1 200 OK"]
