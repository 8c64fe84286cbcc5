"""A private redis-server or valkey-server on a unix socket, for one process and what it starts.

The life of its process is in process.py, the search for its binary in binary.py; what is said to the server as a store
is in the other packages of `redsched.store`.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redsched.errors import StoreUnavailable
from redsched.store.embedded.binary import ServerBinary, find_servers, inspect, pick_server
from redsched.store.embedded.process import ServerProcess

__all__ = ["PrivateServer", "ServerBinary", "find_servers", "pick_server"]


class PrivateServer(ServerProcess):
    """A server of one's own, on a unix socket only this user can reach; also a context manager that stops it.

    Nothing is evicted. Without `data_dir` nothing is written to disk and the state ends with the process; with it the
    server keeps an append-only file there, and refuses a folder that another private server uses.
    """

    def __init__(self, binary: ServerBinary, data_dir: Path | None = None) -> None:
        super().__init__(binary)
        self.data_dir = data_dir
        self.socket = self.folder / "store.sock"
        self.url = f"unix://{self.socket}"

    @classmethod
    def start(cls, binary: Path | None = None, data_dir: Path | None = None) -> Self:
        """Start a server and return when it answers. Raises StoreUnavailable with the server's last words."""
        chosen = inspect(binary) if binary else pick_server()
        if chosen.problem:
            raise StoreUnavailable(f"{chosen.problem}: give another binary")
        server = cls(chosen, data_dir)
        try:
            server.launch()
        except BaseException:
            server.stop()
            raise
        return server

    def command(self) -> Sequence[str]:
        """A socket and no port, nothing evicted, and an append-only file where the data is to be kept."""
        return options(
            {
                "port": "0",
                "unixsocket": str(self.socket),
                "unixsocketperm": "700",
                "maxmemory-policy": "noeviction",
                "dir": str(self.data_dir or self.folder),
                "appendonly": "yes" if self.data_dir else "no",
                "save": "",
            }
        )

    def client(self) -> Any:
        """A client that says at once when it gets no answer."""
        return redis.Redis(unix_socket_path=str(self.socket), protocol=2, retry=Retry(NoBackoff(), 0))

    def launch(self) -> None:
        """Start the process and return when it answers. Raises StoreUnavailable; also for a folder that is in use."""
        lock = _lock(self.data_dir) if self.data_dir else None
        try:
            self._spawn(() if lock is None else (lock,))
        finally:
            if lock is not None:
                os.close(lock)
        self._await_answer()


def options(chosen: dict[str, str]) -> list[str]:
    """Options as a server's command line takes them."""
    return [word for name, value in chosen.items() for word in (f"--{name}", value)]


def _lock(data_dir: Path) -> int:
    """Lock a data folder. The server inherits the descriptor, so the lock lasts as long as anything writes there."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(data_dir / "redsched.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"the data folder {data_dir} cannot be used: {error.strerror}: give another") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise StoreUnavailable(
            f"another private store uses {data_dir}: stop that one or give another folder"
        ) from error
    return lock
