"""An API that this process serves on a port of the loopback address, for clients with real connections."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from redsched.aio import end
from redsched.api import worker
from redsched.server.registry import WorkerRegistry
from redsched.settings import Settings
from tests.api.parts import app_of


class _QuietServer(worker._Server):
    """Leaves the signals of this process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(settings: Settings, port: int = 0) -> AsyncIterator[str]:
    """Serve the API with these settings, and yield its URL."""
    app = app_of(settings)
    with socket.create_server(("127.0.0.1", port)) as listener:
        async with app.router.lifespan_context(app):
            limits = worker.connection_limits(settings)
            config = worker._config(app, limits)
            server = _QuietServer(config, limits, None, app.state.closing, WorkerRegistry())
            task = asyncio.create_task(server.serve([listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                await asyncio.wait([task], timeout=10)
                await end(task)
