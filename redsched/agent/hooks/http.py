"""A hook that is a URL: the claim is sent by POST."""

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from urllib.parse import SplitResult, quote, urlsplit

from redsched.agent.hooks.base import HookFailed, HookNotRun, HookRequest, Output
from redsched.errors import InvalidRequest

THREADS = 16
CONNECT_S = 10.0
"""Timeout for connecting: a connect cannot be interrupted, and one that takes longer is unlikely to succeed."""


_PLAIN = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}~ "
"""What an actor in a header has as it is, besides letters and digits. All else, and %, is percent-encoded."""


class UrlHook:
    """Sends each request by POST; any 2xx means success. Follows no redirects and uses no proxy."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = _check(url)
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hook")

    async def run(self, order: HookRequest) -> bytes:
        """Send a request and return the body of the response. Raises HookFailed."""
        connection, given_up = self._connection(), threading.Event()
        sending = asyncio.get_running_loop().run_in_executor(self._threads, self._send, connection, order, given_up)
        try:
            return await asyncio.wait_for(asyncio.shield(sending), self._timeout_s)
        except TimeoutError:
            raise HookFailed(f"{self._describe(order)} took longer than {self._timeout_s:g} s") from None
        finally:
            if not sending.done():
                # The thread blocks in a read, which ends only when its socket is closed. If it has no socket yet, it
                # must not send: a second cancellation ends the wait below, and the request could start work that is
                # being stopped.
                given_up.set()
                _abort(connection)
                sending.add_done_callback(lambda done: done.cancelled() or done.exception())
                await asyncio.wait([sending])

    def _send(self, connection: http.client.HTTPConnection, order: HookRequest, given_up: threading.Event) -> bytes:
        headers = {
            "Content-Type": "application/json",
            "Redsched-Verb": order.verb.value,
            "Redsched-Claim-Id": order.work.id,
            "Redsched-Token": order.work.token,
            "Redsched-Placed": order.work.placed,
            "Redsched-Actor": quote(order.work.origin.actor, _PLAIN),
            "Redsched-Request-Id": order.work.origin.request_id,
            **({"traceparent": order.traceparent} if order.traceparent else {}),
        }
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        deadline = monotonic() + self._timeout_s
        try:
            with contextlib.closing(connection):
                self._connect(connection, order)
                if given_up.is_set():
                    raise HookNotRun(f"{self._describe(order)} was given up")
                connection.sock.settimeout(self._timeout_s)
                connection.request("POST", target, order.body(), headers)
                with contextlib.closing(connection.getresponse()) as response:
                    body = _read(response, deadline)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # AttributeError: http.client raises it when its socket is closed during a call.
            raise HookFailed(f"{self._describe(order)} failed: {error or type(error).__name__}") from error
        if not 200 <= response.status < 300:
            refused = f"{self._describe(order)} answered {response.status} {response.reason}"[:300]
            raise HookFailed(refused, body.reason(refused))
        return bytes(body.first)

    def _connect(self, connection: http.client.HTTPConnection, order: HookRequest) -> None:
        try:
            connection.connect()
        except OSError as error:
            raise HookNotRun(f"{self._describe(order)} cannot be reached: {error}") from error

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        patience_s = min(CONNECT_S, self._timeout_s)
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=patience_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=patience_s)

    def _describe(self, order: HookRequest) -> str:
        return f"hook {self._url.scheme}://{self._url.hostname} {order.verb} for {order.work.id}"


def _check(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise InvalidRequest(f"hook {url[:200]!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise InvalidRequest(f"hook {url[:200]!r} is not a URL of a server: use http://host:port/path or https://...")
    if parts.username or parts.password:
        raise InvalidRequest(
            "a hook's URL must not contain a user name, which would appear in logs: use an https server of your own"
        )
    return parts


def _read(response: http.client.HTTPResponse, deadline: float) -> Output:
    """Read the body to its end or until `deadline`: with a socket timeout alone, a slow server could send for ever."""
    body = Output()
    while part := response.read1(65_536):
        body.add(part)
        if monotonic() > deadline:
            raise TimeoutError("its response does not end")
    return body


def _abort(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
