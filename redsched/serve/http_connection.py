"""One HTTP connection with limits: uvicorn's protocol, which has none on headers, trailers, slow senders or readers.

A connection is in one of three phases. Waiting: no request has begun. In its head: the request line or headers are not
complete. In its body: the head is complete, and the body or its trailers are not. `close_if_late`, called once a second
for each connection of the process, ends those that take too long in a phase.
"""
# ruff: noqa: D102 - methods without a docstring are those of asyncio.Protocol and of the parser's callbacks

import asyncio
import select
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from redsched import aio, origin
from redsched.errors import Forbidden, RedschedError
from redsched.origin import Origin
from redsched.serve.exposure import Peers
from redsched.serve.problems import BadHttp, HeadersTooLarge, RequestTimeout, TooManyConnections, problem
from redsched.serve.request_head import head_without_offer, problem_of_head
from redsched.serve.request_ids import new_request_id

MAX_HEAD_BYTES = 32_768
"""The largest request line with all headers, and the largest trailers with chunk extensions."""
MAX_FRAMING = 8
"""The most bytes of chunk sizes for each byte of a chunked body, beyond MAX_HEAD_BYTES: a chunk of one byte has 5."""
MAX_PIPELINED = 16
"""The most requests of a connection that wait for the response to an earlier one."""
BEYOND = 32
"""The most connections beyond the limit: those that have been refused, and those of which the handshake still runs."""
LINGER_S = 2.0
"""How long a refused client may take to close the connection in turn."""
_CLOSED = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of one process; times in seconds.

    `head_s`: for a request line and headers. `body_s`: for a body. `reader_s`: for a client to read what was sent.
    """

    connections: int
    head_s: float
    body_s: float
    reader_s: float
    peers: Peers | None = None
    """Who may connect; None: everybody."""
    refused: dict[Any, asyncio.TimerHandle] = field(default_factory=dict, compare=False)
    """The connections that were refused and are still open, the oldest first, each with the timer that closes it."""

    def full(self) -> RedschedError:
        """Return the refusal of a connection beyond the limit."""
        return TooManyConnections(f"all {self.connections} connections are in use: try again")

    def accept(self, peer: Any) -> bool:
        """Return whether a peer may connect; `peer` is its address and port."""
        return self.peers is None or (bool(peer) and self.peers.accept(peer[0]))


class _Phase(Enum):
    WAITING = auto()
    HEAD = auto()
    BODY = auto()
    DONE = auto()
    """The request has been received. The connection is the application's until it has responded."""


class HttpConnection(HttpToolsProtocol):
    """uvicorn's protocol with limits. A request beyond one gets a problem as its response, and the connection ends."""

    def __init__(self, limits: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._phase = _Phase.WAITING
        self._since_s = aio.now_s()
        """When the phase began, by the event loop's clock."""
        self._unread_since_s: float | None = None
        """Since when the client has not read what was sent."""
        self._has_moved_on = False
        """Whether a phase has begun in the piece of data that is being read."""
        self._head_bytes = 0
        self._parsed_bytes = 0
        self._body_bytes = 0
        self._framing_bytes = 0
        self._head_again = b""
        """The head, without the offer of another protocol, that is to be parsed again."""
        self._refusal: RedschedError | None = None
        self._has_answered = False
        """Whether a request of this connection has got its response."""
        self.instead_of: Any = None
        """What has counted as this connection so far: its TLS handshake."""

    def connection_made(self, transport: Any) -> None:
        self.connections.discard(self.instead_of)
        self.instead_of = None
        super().connection_made(transport)
        if not self._limits.accept(self.client):
            self._refuse(Forbidden("connections are accepted from the proxy only: connect to that"), lingers=True)
        elif len(self.connections) > self._limits.connections and not self._has_place():
            self._refuse(self._limits.full(), lingers=True)

    def connection_lost(self, exc: Exception | None) -> None:
        if (closing := self._limits.refused.pop(self, None)) is not None:
            closing.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self._refusal is not None:
            return  # the rest of what was refused
        self._unset_keepalive_if_required()
        self._has_moved_on, before = False, self._body_bytes
        rest = data
        while rest and self._refusal is None:
            rest = self._parse(rest)
        if self._refusal is None:
            self._count(len(data), self._body_bytes - before)
        if self._refusal is not None:
            self._refuse(self._refusal)

    def _parse(self, data: bytes) -> bytes:
        """Parse data. Return what is still to be parsed if there is the head of a request that offers another protocol.

        The offer is ignored (RFC 9110, section 7.8). But the parser ends such a request with its head, and would take
        the body for what comes in that protocol. So another parser reads the head again, without the offer.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            head, self._head_again = self._head_again, b""
            self._renew_parser()
            return head + data[stopped.args[0] :]
        except httptools.HttpParserError:
            self._refusal = self._refusal or BadHttp("this is not valid HTTP/1.1: check what the client sends")
        return b""

    def _renew_parser(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it

    def _count(self, size: int, body: int) -> None:
        """Count what the parser may keep to itself. A piece in which a phase began counts nothing: it is bounded."""
        if self._has_moved_on:
            return
        if self._phase is not _Phase.BODY:
            self._head_bytes += size
            self._check_head(self._head_bytes)
        else:
            self._framing_bytes += size - body
            if self._framing_bytes > MAX_HEAD_BYTES + MAX_FRAMING * self._body_bytes:
                self._refusal = HeadersTooLarge(
                    f"trailers and chunk sizes have more than {MAX_HEAD_BYTES} bytes: send larger chunks, or fewer "
                    "trailers, which are ignored"
                )

    # The parser's callbacks. It stops at the first error that one raises, as invalid HTTP.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._parsed_bytes = self._body_bytes = self._framing_bytes = 0
        self._enter(_Phase.HEAD)

    def on_url(self, url: bytes) -> None:
        self._add_to_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is not _Phase.HEAD:
            return  # a trailer: uvicorn would add it to the headers
        self._add_to_head(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        # Here and not once the parser stops: the application begins with the head.
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._head_again = head_without_offer(version, method, self.url, self.headers)
            return
        self._refusal = problem_of_head(version, method, self.headers)
        if self._refusal is not None:
            raise self._refusal
        self._enter(_Phase.BODY)
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self._refusal = BadHttp(f"more than {MAX_PIPELINED} requests are sent ahead: wait for the responses")
            raise self._refusal

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._head_again:
            return  # it has not begun
        self._head_bytes = 0
        self._enter(_Phase.DONE if self._is_handling() else _Phase.WAITING)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._has_answered = True
        is_over = self._phase is _Phase.DONE and not self.pipeline
        self._enter(_Phase.WAITING if is_over else self._phase)  # the next request has its whole time from now on

    def pause_writing(self) -> None:
        self._unread_since_s = aio.now_s()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since_s = None
        super().resume_writing()

    # Limits of time

    @property
    def idle_since_s(self) -> float | None:
        """Since when the connection waits for its client to send; None while it is the application's turn."""
        return self._since_s if self._phase is _Phase.BODY or not self._is_handling() else None

    def close_if_late(self, now_s: float) -> None:
        """End the connection if its client is too slow, at `now_s` of the event loop's clock."""
        if self._unread_since_s is not None and now_s - self._unread_since_s > self._limits.reader_s:
            self.transport.abort()
        elif self._phase in (_Phase.WAITING, _Phase.HEAD):
            if now_s - self._since_s > self._limits.head_s and not self._is_handling():
                self._refuse(RequestTimeout(f"no request line and headers came within {self._limits.head_s:g} s"))
        elif self._phase is _Phase.BODY and now_s - self._since_s > self._limits.body_s and not self.pipeline:
            self._refuse(RequestTimeout(f"the body did not come within {self._limits.body_s:g} s: send it faster"))

    def give_way(self) -> None:
        """End the connection for another one. Its client gets a problem if it may have sent a request, or part of one.

        Between two requests it gets none: it would take that for the response to the next one.
        """
        if self._phase is _Phase.WAITING and self._has_answered:
            self.transport.abort()
        else:
            self._refuse(self._limits.full(), lingers=True)

    def fileno(self) -> int:
        """Return the file descriptor of the connection; -1 once it is closed."""
        found: int = self.transport.get_extra_info("socket").fileno()
        return found

    def _has_place(self) -> bool:
        """Return whether no more connections than the limit have ended their handshakes, or another one gave way."""
        established = [one for one in self.connections if isinstance(one, HttpConnection)]
        return len(established) <= self._limits.connections or close_idlest(self.connections, but=self)

    def _is_handling(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _enter(self, phase: _Phase) -> None:
        self._phase, self._since_s, self._has_moved_on = phase, aio.now_s(), True

    def _add_to_head(self, size: int) -> None:
        self._parsed_bytes += size
        self._check_head(self._parsed_bytes)
        if self._refusal is not None:
            raise self._refusal

    def _check_head(self, size: int) -> None:
        if size > MAX_HEAD_BYTES:
            self._refusal = HeadersTooLarge(
                f"the request line and headers have more than {MAX_HEAD_BYTES} bytes: send less"
            )

    def _refuse(self, error: RedschedError, lingers: bool = False) -> None:
        """Send a problem, unless a response has begun or the client sent nothing, and close the connection.

        `lingers`: wait for the client to close it first, because it may not have read the response yet.
        """
        self._refusal = error
        may_answer = self._phase is not _Phase.WAITING or not isinstance(error, RequestTimeout)
        if self._is_handling():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            # An earlier request is being carried out: its client would take the problem for its response.
            is_ahead = bool(self.pipeline) or self._phase is not _Phase.BODY
            may_answer = not self.cycle.response_started and not is_ahead
        elif self._phase is _Phase.BODY and self.cycle is not None:
            may_answer = False  # it was answered before its body was complete
        if may_answer and not self.transport.is_closing():
            self.transport.write(_response(error))
        if lingers and may_answer and self.transport.can_write_eof():
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Close the connection once its client does, or after a time.

        To close it while there is something to read would reset it: the client could lose the response to that.
        """
        self.connections.discard(self)
        self.transport.write_eof()
        refused = self._limits.refused
        refused[self] = self.loop.call_later(LINGER_S, self.transport.close)
        if len(refused) > BEYOND:
            oldest = next(iter(refused))
            refused.pop(oldest).cancel()
            oldest.transport.close()


def close_idlest(connections: set[Any], but: object = None) -> bool:
    """Close the connection that has waited longest for its client; return False if all others are in use.

    One whose client has sent something that is not read yet does not wait for it. The connection leaves the set at
    once: the loop closes it later, and until then others may arrive, each of which needs a place.
    """
    idle = [(one.idle_since_s, one) for one in connections if one is not but and one.idle_since_s is not None]
    busy = _with_data([one for _, one in idle])
    idle = [(since_s, one) for since_s, one in idle if one not in busy]
    if not idle:
        return False
    idlest = min(idle, key=lambda one: one[0])[1]
    connections.discard(idlest)
    idlest.give_way()
    return True


def _with_data(connections: list[Any]) -> set[Any]:
    """Return those whose clients have sent something that is not read yet, and have not closed them."""
    by_fileno = {fileno: one for one in connections if (fileno := one.fileno()) >= 0}
    poll = select.poll()
    for fileno in by_fileno:
        poll.register(fileno, select.POLLIN | select.POLLRDHUP)
    return {by_fileno[fileno] for fileno, events in poll.poll(0) if not events & _CLOSED}


def _response(error: RedschedError) -> bytes:
    request_id = new_request_id()
    caused_by = origin.enter(Origin("", request_id))
    found = problem(error, {"Connection": "close", "X-Request-Id": request_id})
    origin.leave(caused_by)
    headers = b"".join(b"%s: %s\r\n" % one for one in found.raw_headers)
    return STATUS_LINE[found.status_code] + headers + b"\r\n" + bytes(found.body)
