"""A private redis-server or valkey-server: started on a unix socket, and ended with its parent.

Here lives the life of one process. The search for its binary is in `redsched.store.binary`; what is said to the server
as a store is in the other modules of `redsched.store`.

A server must never outlive the process that started it, however that one dies. A parent-death signal would follow the
*thread* that started the server, so the end of a worker thread would take the store away. Instead a guard, a shell of
one line, waits for the end of a pipe that only the parent holds: the kernel closes it even when the parent is killed.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from redsched.errors import StoreUnavailable
from redsched.store.binary import ServerBinary, find_servers, inspect, pick_server

__all__ = ["PrivateServer", "ServerBinary", "find_servers", "pick_server"]

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0

_LONGEST_FOLDER = 80  # a unix socket's path may have 104 bytes (macOS; Linux 108), the file's name included
_GUARD = 'read -r _; kill -9 "$1"; rm -rf -- "$2"'


class PrivateServer:
    """A server of one's own, on a unix socket only this user can reach; also a context manager that stops it.

    Nothing is evicted. Without `data_dir` nothing is written to disk and the state ends with the process; with it the
    server keeps an append-only file there, and refuses a folder that another private server uses.
    """

    def __init__(self, binary: ServerBinary, data_dir: Path | None = None) -> None:
        self.binary = binary.path
        self.kind = binary.kind
        self.version = binary.version
        self.data_dir = data_dir
        self._folder = _make_folder()
        self.socket = self._folder / "store.sock"
        self.url = f"unix://{self.socket}"
        self._log = self._folder / "store.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, binary: Path | None = None, data_dir: Path | None = None) -> Self:
        """Start a server and return when it answers. Raises StoreUnavailable with the server's last words."""
        chosen = inspect(binary) if binary else pick_server()
        if chosen.problem:
            raise StoreUnavailable(f"{chosen.problem}: give another binary")
        server = cls(chosen, data_dir)
        try:
            server._launch()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def pid(self) -> int:
        """The server's process id. Raises StoreUnavailable when it does not run."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process exists (it may be paused)."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the server in good order, or by force where it takes too long, and remove its folder."""
        self._end(signal.SIGTERM)
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End the server at once, as a crash would. `restart` brings it back."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze the server: it keeps its connections and answers nothing."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        self._running().send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop the server if it runs and start it on the same socket; without `data_dir` its data is gone."""
        self._end(signal.SIGTERM)
        self._launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise StoreUnavailable(f"the private store does not run any more{self._last_words()}: start it again")
        return self._process

    def _launch(self) -> None:
        lock = _lock(self.data_dir) if self.data_dir else None
        try:
            self._spawn(() if lock is None else (lock,))
        finally:
            if lock is not None:
                os.close(lock)
        self._await_answer()

    def _spawn(self, kept: Sequence[int]) -> None:
        command = [str(self.binary), *_options(self.socket, self._folder, self.data_dir)]
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches the parent alone, which then ends its store last.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=kept,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "redsched-guard", str(self._process.pid), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        with redis.Redis(unix_socket_path=str(self.socket), protocol=2, retry=Retry(NoBackoff(), 0)) as client:
            while time.monotonic() < deadline:
                self._running()
                try:
                    client.ping()
                    return
                except exceptions.BusyLoadingError:
                    deadline = time.monotonic() + START_TIMEOUT_S  # a large file takes its time, and it does answer
                except (exceptions.ConnectionError, exceptions.TimeoutError):
                    pass
                time.sleep(0.005)
        raise StoreUnavailable(f"{self.binary} gave no answer for {START_TIMEOUT_S:g} s{self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return f" (its log ends: {' | '.join(line.strip() for line in lines[-5:])})" if lines else ""

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.send_signal(signal.SIGCONT)  # a paused server cannot act on SIGTERM
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._dismiss_guard()
        self._process = None

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self._guard = None


def _make_folder() -> Path:
    parent = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="redsched-", dir=parent if len(parent) <= _LONGEST_FOLDER else "/tmp"))


def _options(socket: Path, folder: Path, data_dir: Path | None) -> list[str]:
    kept = {"dir": str(data_dir or folder), "appendonly": "yes" if data_dir else "no", "save": ""}
    chosen = {"port": "0", "unixsocket": str(socket), "unixsocketperm": "700", "maxmemory-policy": "noeviction", **kept}
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
