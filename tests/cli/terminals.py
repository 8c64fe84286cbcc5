"""Running the command line on a terminal of a given width."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping

from tests.cli.parts import COMMAND

COLUMNS = 80


def lines_of(
    store: str,
    *arguments: str,
    fails: bool = False,
    until: bytes = b"",
    columns: int = COLUMNS,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the lines, of any length, that a command prints on a terminal, without trailing spaces.

    `until`: the last output to wait for, if the command does not end by itself.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables |= {"REDSCHED_REDIS_URL": store, "TERM": "dumb", **(environment or {})}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=its, stdout=its, stderr=subprocess.DEVNULL, env=variables
    ) as ran:
        os.close(its)
        shown, waiting = b"", bool(until)
        for part in _read(ours):
            shown += part
            if waiting and until in shown:
                ran.send_signal(signal.SIGTERM)
                waiting = False  # a second signal would end it at once
        code = ran.wait()
        assert (code != 0) == fails, (code, shown)
    os.close(ours)
    return [line.rstrip() for line in shown.decode().splitlines()]


def _read(ours: int) -> Iterator[bytes]:
    try:
        while part := os.read(ours, 65_536):
            yield part
    except OSError:  # reading a terminal ends like this when its other side is closed
        pass
