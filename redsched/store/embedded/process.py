"""One private server process, which can be started, paused, killed and restarted, and which ends with its parent.

Subclasses define the kind of server and where it listens: `redsched.store.embedded.server`.

A server must never outlive the process that started it, however that process dies. A parent-death signal would follow
the *thread* that started the server, so the end of a worker thread would kill the store. Instead a guard, a one-line
shell script, waits for the end of a pipe that only the parent holds: the kernel closes it even when the parent is
killed.
"""

import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis import exceptions

from redsched.errors import StoreUnavailable
from redsched.store.embedded.binary import ServerBinary

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0

_LONGEST_FOLDER = 80  # a unix socket's path may have 104 bytes (macOS; Linux 108), the file's name included
_GUARD = 'read -r _; kill -9 "$1"; rm -rf -- "$2"'


class ServerProcess(ABC):
    """A server process with a folder of its own; also a context manager that stops it."""

    def __init__(self, binary: ServerBinary) -> None:
        self.binary = binary.path
        self.kind = binary.kind
        self.version = binary.version
        self.folder = _make_folder()
        self._log = self.folder / "store.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the arguments after the binary's path."""

    @abstractmethod
    def client(self) -> Any:
        """Return a client for this server, which the caller closes."""

    @property
    def pid(self) -> int:
        """The server's process id. Raises StoreUnavailable if it is not running."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process exists (it may be paused)."""
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process and return once it answers. Raises StoreUnavailable with the end of the server's log."""
        self._spawn(())
        self._await_answer()

    def stop(self) -> None:
        """Shut the server down, by force if it takes too long, and remove its folder."""
        self._end(signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the server at once, as a crash would. `restart` starts it again."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Pause the server: it keeps its connections but does not reply."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server continue."""
        self._running().send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop the server if it runs and start it again in the same place, with the data that it finds on disk."""
        self._end(signal.SIGTERM)
        self.launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise StoreUnavailable(f"the private store is no longer running{self._log_tail()}: start it again")
        return self._process

    def _spawn(self, kept: Sequence[int]) -> None:
        with self._log.open("ab") as log:
            # In a session of its own: Ctrl-C in the terminal reaches only the parent, which then stops its store last.
            self._process = subprocess.Popen(
                [str(self.binary), *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=kept,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "redsched-guard", str(self._process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _await_answer(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        with self.client() as client:
            while time.monotonic() < deadline:
                self._running()
                try:
                    client.ping()
                    return
                except exceptions.BusyLoadingError:
                    deadline = time.monotonic() + START_TIMEOUT_S  # it answers, and loading a large file takes time
                except (exceptions.ConnectionError, exceptions.TimeoutError):
                    pass
                time.sleep(0.005)
        raise StoreUnavailable(f"{self.binary} did not respond within {START_TIMEOUT_S:g} s{self._log_tail()}")

    def _log_tail(self) -> str:
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
