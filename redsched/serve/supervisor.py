"""The parent of the workers: it binds the port, starts the workers, restarts those that die, and stops them.

Each worker has its own listening socket on the same port (SO_REUSEPORT), so that the kernel spreads connections over
them evenly. The parent holds the sockets: a connection made while a worker restarts waits and is not refused.

The parent imports the application before it forks the workers, by name: it is above this package.
"""

import importlib
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from redsched import logs
from redsched.errors import InvalidRequest, RedschedError, StoreUnavailable
from redsched.serve import BACKLOG, processes
from redsched.serve.exposure import check_exposure
from redsched.serve.processes import ChildProcess
from redsched.serve.registry import WorkerRegistry
from redsched.serve.tls import TlsFiles
from redsched.settings import Settings

APPLICATION = "redsched.api.app"
"""The module of `create_app`. It imports all that its workers use, since these are forks."""
START_TIMEOUT_S = 60.0
RESTART_PAUSE_S = 1.0

log = logs.get_logger(__name__)


class Workers:
    """`count` API processes on one port; a context manager that stops them."""

    def __init__(
        self,
        host: str,
        port: int,
        count: int,
        hosts: int = 0,
        settings: Settings | None = None,
        insecure: bool = False,
    ) -> None:
        """Bind the port, if the API may be exposed there as `settings` protect it. Raises InvalidRequest.

        `hosts`: how many hosts must have reported before /readyz is ready. `insecure`: it may, however exposed.
        """
        settings = settings or Settings()
        check_exposure(host, settings, insecure)
        files = TlsFiles.of(settings)
        if files is not None:
            files.context()  # each worker makes its own: a file that is wrong is reported here, once
        self._scheme = "http" if files is None else "https"
        self._sockets = _bind(host, port, count)
        try:  # what a name stands for may have changed since it was checked
            check_exposure(self._sockets[0].getsockname()[0], settings, insecure)
        except InvalidRequest:
            self.close_sockets()
            raise
        self.host, self.port = host, int(self._sockets[0].getsockname()[1])
        self._hosts = hosts
        self.folder = Path(tempfile.mkdtemp(prefix="redsched-api-"))
        self._environment: Mapping[str, str] = {}
        self._processes: list[ChildProcess] = []
        self._started_at: list[float] = []

    @property
    def url(self) -> str:
        """The URL of the API."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{name}:{self.port}"

    @property
    def pids(self) -> list[int]:
        """The workers' process ids."""
        return [one.pid for one in self._processes]

    def start(self, environment: Mapping[str, str]) -> None:
        """Start all workers, with `environment` added to this process', and return when each of them listens.

        Raises the error that kept a worker from starting, StoreUnavailable after START_TIMEOUT_S.
        """
        self._environment = {**environment, "PROMETHEUS_MULTIPROC_DIR": str(self.folder)}
        for number in range(len(self._sockets)):
            self._started_at.append(time.monotonic())
            self._launch(number, self._processes.append)
        registry, deadline = self.registry, time.monotonic() + START_TIMEOUT_S
        while not registry.listens():
            self._raise_failure(registry)
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"the API did not start within {START_TIMEOUT_S:g} s: check the store")
            time.sleep(0.01)

    def revive(self) -> None:
        """Restart workers that have died, each at most once a second. Call it periodically."""
        # Here, because `redsched api --help` imports this module, and is installed without the extra too.
        from prometheus_client.multiprocess import mark_process_dead

        for number, process in enumerate(self._processes):
            if process.exit_code is None or time.monotonic() - self._started_at[number] < RESTART_PAUSE_S:
                continue
            log.warning("worker exited, restarting it", worker=number, pid=process.pid, exit_code=process.exit_code)
            mark_process_dead(process.pid, str(self.folder))  # type: ignore[no-untyped-call]
            WorkerRegistry(self.folder, number).forget()
            self._started_at[number] = time.monotonic()
            self._launch(number, partial(self._processes.__setitem__, number))

    def stop(self) -> None:
        """Stop all workers, close the port and remove the shared directory."""
        processes.stop(self._processes)
        self.close_sockets()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def registry(self) -> WorkerRegistry:
        """The state that the workers share with this process."""
        return WorkerRegistry(self.folder, workers=len(self._sockets))

    def close_sockets(self, but: socket.socket | None = None) -> None:
        """Close the port, in a fork that does not serve it; `but`: the socket that the fork serves."""
        for one in self._sockets:
            if one is not but:
                one.close()

    def _launch(self, number: int, started: Callable[[ChildProcess], None]) -> None:
        registry = WorkerRegistry(self.folder, number, len(self._sockets), self._hosts, self.host)
        # Here, because `redsched api --help` imports this module, and is installed without the extra too.
        from redsched.serve import worker

        create_app = importlib.import_module(APPLICATION).create_app
        listener = self._sockets[number]

        def serve() -> int:
            self.close_sockets(but=listener)
            return worker.serve(create_app, registry, listener)

        processes.start(f"redsched-api{number}", serve, self._environment, started)

    def _raise_failure(self, registry: WorkerRegistry) -> None:
        ended = [one for one in self._processes if one.exit_code is not None]
        if ended:
            message = f"an API worker exited with code {ended[0].exit_code} at startup: see its log above"
            raise registry.failure() or RedschedError(message)


def _bind(host: str, port: int, count: int) -> list[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # First without SO_REUSEPORT: with it, a port in use by another server of the same user would be shared silently.
    first = _bound(family, host, port, reuse_port=False)
    found = first.getsockname()[1]
    first.close()
    return [_bound(family, host, found, reuse_port=True) for _ in range(count)]


def _bound(family: socket.AddressFamily, host: str, port: int, reuse_port: bool) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((host, port))
        if reuse_port:
            one.listen(BACKLOG)  # already here, so that no other process can take the port before the workers start
    except OSError as error:
        one.close()
        raise InvalidRequest(
            f"cannot listen on {host} port {port}: {error.strerror}: choose another with --port"
        ) from None
    return one
