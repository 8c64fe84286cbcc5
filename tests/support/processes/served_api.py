"""An API that this process serves on a port of the loopback address, for clients with real connections."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI

from redsched.aio import end
from redsched.api.app import create_app
from redsched.auth.access_token import new_token
from redsched.auth.authenticator import Authenticator
from redsched.auth.caller import UNRESTRICTED, Caller
from redsched.auth.watched_file import WatchedTokenFile
from redsched.serve import worker
from redsched.serve.registry import WorkerRegistry
from redsched.settings import Settings
from tests.auth.parts import document, entry, write


class _QuietServer(worker._Server):
    """Leaves the signals of this process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _ReplaceableAuthenticator(Authenticator):
    """An authenticator that stands for another one, so that an app can be used again with other tokens."""

    def __init__(self) -> None:
        self.replacement: Authenticator | None = None

    async def identify(self, token: str) -> Caller:
        return await self.replacement.identify(token) if self.replacement is not None else UNRESTRICTED

    def still_valid(self, caller: Caller) -> bool:
        return self.replacement.still_valid(caller) if self.replacement is not None else True

    async def watch_file(self, stop: asyncio.Event) -> None:
        await stop.wait()


_APPS: dict[str, tuple[FastAPI, _ReplaceableAuthenticator]] = {}
"""Apps by their settings: FastAPI compiles an app's routes on its first requests, slower than most tests."""


@asynccontextmanager
async def serving(settings: Settings, authenticator: Authenticator | None = None, port: int = 0) -> AsyncIterator[str]:
    """Serve the API with these settings, and yield its URL. Without an authenticator, requests need no token."""
    name = repr((settings, authenticator is None))
    if name not in _APPS:
        replaceable = _ReplaceableAuthenticator()
        app = create_app(settings, authenticator=replaceable if authenticator else None)
        _APPS[name] = app, replaceable
    app, replaceable = _APPS[name]
    replaceable.replacement, app.state.closing = authenticator, asyncio.Event()
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
                await _abort(server)


async def _abort(server: worker._Server) -> None:
    """Close connections whose other side does not read the rest: the loop may end next, and would find them open."""
    for connection in list(server.server_state.connections):
        if connection.transport is not None:
            connection.transport.abort()
    await asyncio.sleep(0)


@dataclass
class AgentToken:
    """An agent's token: the file that the agent reads, and the authenticator's file with its digest."""

    folder: Path
    hosts: Collection[str]
    projects: Collection[str] = ("",)
    path: Path = field(init=False)
    watched: WatchedTokenFile = field(init=False)

    def __post_init__(self) -> None:
        self.path, self._tokens = self.folder / "token", self.folder / "tokens.yaml"
        self.write("agent")
        self.allow("agent")
        self.watched = WatchedTokenFile(self._tokens)

    @property
    def authenticator(self) -> Authenticator:
        return Authenticator(self.watched)

    def write(self, token_id: str) -> None:
        """Write a new token into the agent's file. The API does not know it yet."""
        write(self.path, new_token(token_id))

    def allow(self, *token_ids: str) -> None:
        """Make the API accept the token in the agent's file if it is named, and no other."""
        fields = {"role": "agent", "hosts": list(self.hosts), "projects": list(self.projects)}
        entries = [entry(self.path.read_text(), **fields | {"id": one}) for one in token_ids]
        write(self._tokens, document(*entries))
