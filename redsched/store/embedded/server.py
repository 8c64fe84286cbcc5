"""A private redis-server or valkey-server on a unix socket, for one process and its children.

process.py manages its process, binary.py finds its binary; the other packages of `redsched.store` use it as a store.
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
    """A private server on a unix socket that only this user can reach; also a context manager that stops it.

    Nothing is evicted. Without `data_dir` nothing is written to disk and the state ends with the process; with it the
    server keeps an append-only file there, and a folder that another private server uses is refused.
    """

    def __init__(self, binary: ServerBinary, data_dir: Path | None = None) -> None:
        super().__init__(binary)
        self.data_dir = data_dir
        self.socket = self.folder / "store.sock"
        self.url = f"unix://{self.socket}"

    @classmethod
    def start(cls, binary: Path | None = None, data_dir: Path | None = None) -> Self:
        """Start a server and return it once it answers. Raises StoreUnavailable with the end of the server's log."""
        chosen = inspect(binary) if binary else pick_server()
        if chosen.problem:
            raise StoreUnavailable(f"{chosen.problem}: use another binary")
        server = cls(chosen, data_dir)
        try:
            server.launch()
        except BaseException:
            server.stop()
            raise
        return server

    def command(self) -> Sequence[str]:
        """Return the options: a socket and no port, no eviction, and an append-only file if the data is to be kept."""
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
        """Return a client that does not retry, so that a missing reply raises at once."""
        return redis.Redis(unix_socket_path=str(self.socket), protocol=2, retry=Retry(NoBackoff(), 0))

    def launch(self) -> None:
        """Start the process and return once it answers. Raises StoreUnavailable, also if the folder is in use."""
        lock = _lock(self.data_dir) if self.data_dir else None
        try:
            self._spawn(() if lock is None else (lock,))
        finally:
            if lock is not None:
                os.close(lock)
        self._await_answer()


def options(chosen: dict[str, str]) -> list[str]:
    """Return options in the form of a server's command line."""
    return [word for name, value in chosen.items() for word in (f"--{name}", value)]


def _lock(data_dir: Path) -> int:
    """Lock a data folder. The server inherits the descriptor, so the lock lasts as long as anything writes there."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(data_dir / "redsched.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"the data folder {data_dir} cannot be used: {error.strerror}: use another") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise StoreUnavailable(f"another private store uses {data_dir}: stop it, or use another folder") from error
    return lock
