"""Running the command line as a user does: in its own process, with its two outputs and its exit code."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis

from tests.cli import in_process, warm
from tests.support import evidence, secret_watch
from tests.support.waiting import wait_until_sync

COMMAND = (sys.executable, "-m", "redsched.cli")
SERVES = ("up", "api", "agent", "run")
"""Commands that handle signals, and so need a process."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    exit_code: int
    output: str
    errors: str

    def __post_init__(self) -> None:
        """Look for secrets in what it printed."""
        secret_watch.look("output of the command", self.output)
        secret_watch.look("errors of the command", self.errors)

    def json(self) -> dict[str, Any]:
        """Return the output of a command that ran with --json."""
        return dict(json.loads(self.output))

    def check(self, exit_code: int = 0) -> "Ran":
        """Check that it succeeded, or reported what this exit code says, without errors on stderr."""
        assert (self.exit_code, self.errors) == (exit_code, ""), self
        return self

    def check_failed(self, exit_code: int, *words: str) -> str:
        """Check that it failed with one line on stderr that has these words, and no output; return the line."""
        assert (self.exit_code, self.output) == (exit_code, ""), self
        lines = self.errors.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("redsched: ")
        assert all(word in lines[0] for word in words), self
        return lines[0]


def run(*arguments: str, environment: Mapping[str, str] | None = None) -> Ran:
    """Run a command to its end, in this process if it serves nothing."""
    runner = warm if arguments and arguments[0] in SERVES else in_process
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        exit_code = runner.run(arguments, {**os.environ, **(environment or {})}, output, errors)
        return Ran(exit_code, output.read_text(), errors.read_text())


class Running:
    """A command that runs, as a fork of the fork server or of its own; its two outputs are files in a folder."""

    def __init__(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], forked: bool) -> None:
        self._output, self._errors = folder / "output", folder / "errors"
        everything = {**os.environ, **environment}
        self._process: ForkServerProcess | subprocess.Popen[bytes]
        if forked:
            self._process = warm.begin(arguments, everything, self._output, self._errors)
            return
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(arguments, stdout=output, stderr=errors, env=everything)

    @property
    def pid(self) -> int:
        """Return its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._process.poll() if isinstance(self._process, subprocess.Popen) else self._process.exitcode

    @property
    def lines(self) -> list[str]:
        """Return the lines of its output so far."""
        text = self._output.read_text() if self._output.exists() else ""
        return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]

    @property
    def error_lines(self) -> list[str]:
        """Return the lines of its stderr so far."""
        return self._errors.read_text().splitlines() if self._errors.exists() else []

    def wait(self) -> Ran:
        """Wait until it ends, and return its outputs."""
        wait_until_sync(lambda: self.exit_code is not None, timeout=60)
        return Ran(self.exit_code or 0, self._output.read_text(), self._errors.read_text())

    def end(self, how: signal.Signals) -> Ran:
        """Send a signal, and wait until it has ended."""
        os.kill(self.pid, how)
        return self.wait()

    def written(self) -> str:
        """Return what it has written so far, to both outputs."""
        return "".join(evidence.file_of(one) for one in (self._output, self._errors))

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self.exit_code is None:
            self.end(signal.SIGKILL)


@contextmanager
def running(*arguments: str, environment: Mapping[str, str] | None = None, forked: bool = True) -> Iterator[Running]:
    """Run a command until the block ends. `arguments`: those of `redsched`, or a whole command if it is not forked."""
    with TemporaryDirectory() as folder:
        process = Running(Path(folder), arguments, environment or {}, forked)
        evidence.note(f"`{' '.join(arguments)}`", process.written)
        try:
            yield process
        finally:
            process.kill()
            text = process.written()
            evidence.note(f"`{' '.join(arguments)}`", lambda: text)


@dataclass(frozen=True, slots=True)
class Up:
    """A running `redsched up`: its process, and the lines that it printed."""

    process: Running
    said: Mapping[str, str]

    @property
    def api(self) -> str:
        """Return the URL of its API."""
        return self.said["API"].split()[0]

    @property
    def store(self) -> str:
        """Return the URL of its store, taken from the line for the shell."""
        return self.said["shell"].removeprefix("export REDSCHED_REDIS_URL=")

    def end(self, how: signal.Signals) -> Ran:
        """Send a signal, wait until the process ends, and return the result."""
        return self.process.end(how)


@contextmanager
def up(*arguments: str, environment: Mapping[str, str] | None = None, command: Sequence[str] = ()) -> Iterator[Up]:
    """Run `redsched up` on a free port; yield it once it has printed that it is up.

    `command`: what to execute instead of forking, such as `scripts/up` or COMMAND.
    """
    words = (*(command or ("up",)), "--port", "0", *arguments)
    with running(*words, environment=environment, forked=not command) as process:
        wait_until_sync(lambda: _is_up(process.lines) or process.exit_code is not None, timeout=60)
        if not _is_up(process.lines):
            raise AssertionError(f"it did not come up: {process.wait()}")
        yield Up(process, _said(process.lines))


def _said(lines: Sequence[str]) -> dict[str, str]:
    """Return the texts of the summary by name, each in one line, as a shell reads it."""
    found, name = dict[str, str](), ""
    for line in lines:
        if not line.startswith(" " * 9):
            name, _, line = line.strip().partition(" ")
        found[name] = " ".join(filter(None, (found.get(name), line.strip().removesuffix("\\").strip())))
    return found


def _is_up(lines: Sequence[str]) -> bool:
    """Return whether the summary is complete: the command to try ends it."""
    return "try" in _said(lines) and not lines[-1].endswith("\\\n")


def ask(url: str) -> dict[str, object]:
    """Return the JSON that a URL of the API returns."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return dict(json.load(answer))


def curl(line: str, token: str = "") -> dict[str, object]:
    """Send the request of a printed curl line, with the token as its file of headers, and return the JSON response."""
    words = shlex.split(line.replace("@me.header", f"'Authorization: Bearer {token}'"))
    method, url, body = words[words.index("-X") + 1], words[3], words[-1]
    pairs = (words[number + 1].partition(": ") for number, word in enumerate(words) if word == "-H")
    headers = {name: value for name, _, value in pairs}
    request = urllib.request.Request(url, body.encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status in (200, 201)
        return dict(json.load(answer))


def announce(raw: redis.Redis, number: int = 1) -> None:
    """Announce schedulers, for an hour."""
    for one in range(number):
        fields: dict[str, str | int] = {
            "at_ms": int(time.time() * 1000) + 3_600_000,
            "version": "1.2.3",
            "node": "node",
            "pid": one,
        }
        raw.hset("rs:{c1}:schedulers", mapping={f"{name}.id{one}": value for name, value in fields.items()})


def check_nothing_left(started: Up, processes: set[int]) -> None:
    """Check that an `up` that ended has left no process, and no socket of its store."""
    wait_until_sync(lambda: not any(map(runs, processes)), what=f"{processes} have ended")
    assert not Path(started.store.removeprefix("unix://")).exists()


def descendants(pid: int) -> set[int]:
    """Return the pids of all processes that `pid` started, directly or indirectly."""
    children: dict[int, set[int]] = {}
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            children.setdefault(_parent(one), set()).add(int(one.name))
    found, new = set[int](), {pid}
    while new:
        new = set().union(*(children.get(one, set()) for one in new))
        found |= new
    return found


def runs(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    return _stat(Path(f"/proc/{pid}"))[:1] not in ([], ["Z"])


def _parent(process: Path) -> int:
    return int((_stat(process) or ["", "0"])[1])


def _stat(process: Path) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on; nothing if the process has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
