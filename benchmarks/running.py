"""`redsched up` as a process of its own: start it, wait for it, measure its processor time by role, end it."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

READY_TIMEOUT_S = 180.0
END_TIMEOUT_S = 60.0
ROLES = {"redsched-api": "API", "redsched-agent": "agents", "redsched-fleet": "agents", "-server": "store"}
"""The part of a child's name that identifies its role."""


class Up:
    """A context manager around `redsched up --no-agent --port 0 ...`; raises SystemExit if it does not start."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="redsched-benchmark-")
        self._log = Path(self._folder.name) / "up.log"
        self._command = [sys.executable, "-m", "redsched.cli", "up", "--no-agent", "--port", "0", *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self.url = self.store = ""

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            # A session of its own: a Ctrl-C in the terminal ends the benchmark, which then ends this.
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._await_ready()
        except BaseException:
            self._process.terminate()
            self._process.wait(END_TIMEOUT_S)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._folder.cleanup()

    def end(self) -> list[str]:
        """Interrupt it, as Ctrl-C would; return the errors of its end. Does nothing once it has ended."""
        if self._process.poll() is not None:
            return []
        children = self._children()
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(END_TIMEOUT_S)
        wrong = [f"`redsched up` ended with exit code {code}"] if code else []
        wrong += [f"`redsched up` left its process {one.pid} behind" for one in children if one.is_running()]
        return wrong + [f"`redsched up` said: {line}" for line in self._said() if "Traceback" in line]

    @property
    def workers(self) -> list[int]:
        """Return the pids of the API's processes."""
        return [one.pid for one in self._children() if role_of(one) == "API"]

    def cpu_s(self) -> dict[str, float]:
        """Return the processor time so far in seconds, by role."""
        spent = dict.fromkeys(ROLES.values(), 0.0)
        for one in self._children():
            times = one.cpu_times()
            spent[role_of(one)] = spent.get(role_of(one), 0.0) + times.user + times.system
        return spent

    def complaints(self) -> list[str]:
        """Return its warnings and errors from the log."""
        return [line for line in self._said() if re.search(r"\[(warning|error)", line)]

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children()

    def _said(self) -> list[str]:
        return self._log.read_text(errors="replace").splitlines()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.store:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("`redsched up` did not start:\n" + "\n".join(self._said()[-10:]))
            time.sleep(0.05)
            said = "\n".join(self._said())
            self.url = _first(r"API +(http://\S+)", said)
            self.store = _first(r"REDSCHED_REDIS_URL=(\S+)\n", said)
        with urllib.request.urlopen(f"{self.url}/readyz", timeout=10):
            pass  # anything but 200 raises


def end_in_order() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that its children end with it."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))


def role_of(process: psutil.Process) -> str:
    """Return the role of a child of `up`; `other` if it has none (or has just ended)."""
    try:
        name = process.name()
    except psutil.Error:
        return "other"
    return next((role for word, role in ROLES.items() if word in name), "other")


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""
