"""One worker process of an application, forked by redsched/serve/supervisor.py.

Settings come from the environment. A worker records an error that keeps it from starting in its registry, for the
parent, which reports it once for all workers.
"""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI
from prometheus_client import values

from redsched import aio, logs, pacing, tracing
from redsched.errors import RedschedError
from redsched.serve import BACKLOG
from redsched.serve.exposure import peers
from redsched.serve.http_connection import BEYOND, ConnectionLimits, HttpConnection
from redsched.serve.registry import WorkerRegistry
from redsched.serve.tls import TlsContexts, TlsFiles
from redsched.serve.tls_handshake import TlsListener
from redsched.settings import Settings, load

CreateApp = Callable[[Settings, WorkerRegistry], FastAPI]

GRACE_S = 5
READER_S = 30.0
"""How long a client may leave a response unread."""
SPARE_FILES = 64 + BEYOND
"""File descriptors besides clients' connections up to the limit: those beyond it, the store's, metrics, the log."""
TICKS_A_SECOND = 10
"""How often uvicorn calls `on_tick`."""


class LimitedServer(uvicorn.Server):
    """uvicorn's server with the limits of connections, and with TLS if it gets `tls`."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits, tls: TlsContexts | None) -> None:
        super().__init__(config)
        self._limits, self._tls = limits, tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        if self._tls is None:
            return await super().startup(sockets)
        await super().startup([])  # it would keep TLS handshakes to itself
        given = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        http = partial(HttpConnection, self._limits, **given)
        self.servers = [TlsListener(one, self._limits, self._tls, http) for one in sockets or ()]  # type: ignore[misc]  # called like servers
        return None

    async def on_tick(self, counter: int) -> bool:
        """Once a second, end the connections that are late, and load TLS files that have changed."""
        if counter % TICKS_A_SECOND == 0:
            close_late(self.server_state.connections)
            if self._tls is not None:
                self._tls.renew()
        return await super().on_tick(counter)


class _Server(LimitedServer):
    """Announces to the parent that it listens, and ends open event streams before it waits for connections to close."""

    def __init__(
        self,
        config: uvicorn.Config,
        limits: ConnectionLimits,
        tls: TlsContexts | None,
        closing: asyncio.Event,
        registry: WorkerRegistry,
    ) -> None:
        super().__init__(config, limits, tls)
        self._closing, self._registry = closing, registry

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._registry.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own method raises the signal again after stopping, which would cut off the end of the lifespan.
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self.handle_exit, one, None)
        yield


async def _serve(create_app: CreateApp, settings: Settings, registry: WorkerRegistry, listener: socket.socket) -> None:
    files = TlsFiles.of(settings)
    tls = None if files is None else TlsContexts(files)
    app = create_app(settings, registry)
    # The lifespan runs here and not in uvicorn, which would turn an error at startup into a traceback.
    async with app.router.lifespan_context(app):
        pacing.freeze_existing_objects()
        limits = connection_limits(settings)
        await _Server(_config(app, limits), limits, tls, app.state.closing, registry).serve([listener])


def close_late(connections: set[Any]) -> None:
    """End the connections whose clients are too slow."""
    now_s = aio.now_s()
    for one in list(connections):
        one.close_if_late(now_s)


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits of this process: the settings', and no more connections than it may open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + SPARE_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    connections = max(1, min(settings.max_connections, soft - SPARE_FILES))
    return ConnectionLimits(
        connections, settings.head_timeout_s, settings.body_timeout_s, READER_S, peers=peers(settings)
    )


def _config(app: FastAPI, limits: ConnectionLimits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        http=partial(HttpConnection, limits),  # type: ignore[arg-type]  # called like a class
        ws="none",
        access_log=False,
        proxy_headers=False,  # nothing reads the caller's address
        log_config=None,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
    )


def share_metrics() -> None:
    """Keep the metrics that this process creates from now on in files, which the other workers read.

    prometheus-client chooses between memory and files when it is imported, which is before a worker is forked.
    """
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]


def serve(create_app: CreateApp, registry: WorkerRegistry, listener: socket.socket) -> int:
    """Serve an application until SIGTERM and return the exit code."""
    share_metrics()
    try:
        settings = load()
        logs.configure(settings.log_level, settings.log_format == "json")
        if settings.tracing:
            tracing.start("redsched-api")  # in the worker: its thread would not survive the fork
        uvloop.run(_serve(create_app, settings, registry, listener))
    except RedschedError as error:
        registry.fail(error)
        return error.exit_code
    finally:
        tracing.stop()
        listener.close()
    return 0
