"""A command that draws on a terminal, its keys, and what can be seen on its screen."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pyte

from tests.cli import warm

WAIT_S = 60.0
LEFT = b"\x1b[?1049l"
"""Returns a terminal to the screen that it had before."""


class _Process:
    """A whole command as a process on a terminal, with what a fork of the fork server has."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], terminal: int) -> None:
        self._process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
        self.pid: int | None = self._process.pid
        self.kill, self.join = self._process.kill, self._process.wait

    @property
    def exitcode(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._process.poll()


class Terminal:
    """A terminal of a size, with a command that draws on it."""

    def __init__(self, ours: int, process: ForkServerProcess | _Process, columns: int, lines: int) -> None:
        self._ours, self._process = ours, process
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""

    @property
    def lines(self) -> list[str]:
        """Return the lines of the screen, without trailing spaces."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """Return the screen as one text."""
        return "\n".join(self.lines)

    def until(self, shown: Callable[[str], bool], what: str) -> str:
        """Wait until the screen is as `shown` wants it, and return its text.

        A screen may be read while it is half drawn: whatever must be on it belongs into `shown`.
        """
        deadline = time.monotonic() + WAIT_S
        while not shown(self.text):
            assert time.monotonic() < deadline, f"not seen: {what}\n{self.text}"
            self._read(0.1)
        return self.text

    def until_seen(self, *words: str) -> str:
        """Wait until all of these words are on the screen, and return its text."""
        return self.until(lambda text: all(word in text for word in words), ", ".join(words))

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._screen.resize(lines, columns)
        _set_size(self._ours, columns, lines)
        self.signal(signal.SIGWINCH)  # what the kernel does for a terminal that controls the command

    def signal(self, number: signal.Signals) -> None:
        """Send the command a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Wait until the command has ended, and return its exit code."""
        deadline = time.monotonic() + WAIT_S
        while self._process.exitcode is None:
            assert time.monotonic() < deadline, f"it still runs\n{self.text}"
            self._read(0.1)
        self._read(0.1)
        return self._process.exitcode

    def _read(self, within_s: float) -> None:
        readable, _, _ = select.select([self._ours], [], [], within_s)
        try:
            part = os.read(self._ours, 65_536) if readable else b""
        except OSError:  # reading a terminal ends like this when its other side is closed
            return
        self.written += part
        self._stream.feed(part)


@contextmanager
def drawn(
    environment: Mapping[str, str], *arguments: str, columns: int = 80, lines: int = 24, forked: bool = True
) -> Iterator[Terminal]:
    """Run a command on a terminal until the block ends. `arguments`: a whole command if it is not forked."""
    ours, its = pty.openpty()
    _set_size(its, columns, lines)
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables |= {"TERM": "xterm-256color", **environment}
    name = Path(os.ttyname(its))
    process: ForkServerProcess | _Process
    if forked:
        process = warm.begin(arguments, variables, name, name, typed=name)
    else:
        process = _Process(arguments, variables, its)
    try:
        yield Terminal(ours, process, columns, lines)
    finally:
        process.kill()
        process.join()
        os.close(its)
        os.close(ours)


def _set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
