"""TLS connections of the API: accepted here, so that a handshake counts as a connection and may be late like one.

A server of the event loop would keep handshakes to itself: they would count nowhere, and all use the files that it was
started with. Here each takes the context of its moment, so that renewed certificates need no restart.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from redsched import aio, logs
from redsched.serve import BACKLOG
from redsched.serve.http_connection import BEYOND, ConnectionLimits, HttpConnection, close_idlest
from redsched.serve.tls import TlsContexts

SHUTDOWN_S = 5.0
"""How long a client may take to end TLS in turn."""
PAUSE_S = 1.0
"""How long to accept nothing once the process can open no more files."""
AT_ONCE = 100
"""The most connections that are accepted before others get their turn."""

log = logs.get_logger(__name__)


class TlsListener:
    """Accepts the connections of a listening socket. It has the methods of the event loop's servers."""

    def __init__(
        self,
        listener: socket.socket,
        limits: ConnectionLimits,
        contexts: TlsContexts,
        http: Callable[[], HttpConnection],
    ) -> None:
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self.sockets = [listener]
        self._listener, self._limits, self._contexts, self._http = listener, limits, contexts, http
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept no more connections."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return: uvicorn waits for the connections itself."""

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("accept_failed", reason=error.strerror)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(PAUSE_S, self._resume)
                return
            accepted.setblocking(False)
            if self._limits.accept(peer):
                TlsHandshake(accepted, self._limits, self._http()).begin(self._contexts)
            else:
                accepted.close()

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)


class TlsHandshake:
    """The handshake of one connection, in the place that its HttpConnection takes over."""

    def __init__(self, accepted: socket.socket, limits: ConnectionLimits, http: HttpConnection) -> None:
        self._socket, self._limits, self._http = accepted, limits, http
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False
        self.idle_since_s = aio.now_s()

    def begin(self, contexts: TlsContexts) -> None:
        """Make the handshake, unless too many others are made: without one, a refusal cannot be sent."""
        connections: set[Any] = self._http.connections
        if len(connections) >= self._limits.connections + BEYOND and not close_idlest(connections):
            self._socket.close()
            return
        connections.add(self)
        self._http.instead_of = self
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(contexts))

    def close_if_late(self, now_s: float) -> None:
        """End the connection if its handshake takes too long, at `now_s` of the event loop's clock."""
        if now_s - self.idle_since_s > self._limits.head_s:
            self.abort()

    def abort(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()
        if not self._has_begun:  # then the task never runs, and nothing else would close the socket
            self._http.connections.discard(self)
            self._socket.close()

    give_way = abort
    """What `close_idlest` calls: there is nothing that could be sent."""

    def fileno(self) -> int:
        """Return the file descriptor of the connection; -1 once it is closed."""
        return self._socket.fileno()

    shutdown = abort
    """What uvicorn calls when it stops."""

    async def _shake_hands(self, contexts: TlsContexts) -> None:
        self._has_begun = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._http,
                self._socket,
                ssl=contexts.current,
                ssl_handshake_timeout=self._limits.head_s,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
        except OSError as error:  # one of OpenSSL, or of the connection
            # The reason is shown on demand only: strangers could fill the log.
            log.debug("tls_handshake_failed", reason=str(error) or type(error).__name__)
        finally:
            self._http.connections.discard(self)
