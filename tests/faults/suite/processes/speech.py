"""Messages between a process and the suite: JSON lines on its standard input and its standard output.

One call writes a whole line before anything else happens, so a message survives the SIGKILL of its sender. A
process ends with its input, so no process outlives the suite, however the suite ends.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

STDIN, STDOUT = 0, 1


def say(said: str, **words: Any) -> None:
    """Send the suite a message, with the machine's monotonic time. The line is in the pipe when this returns."""
    line = json.dumps({"said": said, "at_s": time.monotonic(), **words}).encode() + b"\n"
    while line:
        line = line[os.write(STDOUT, line) :]


class Ear:
    """The messages from the suite to this process."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader()

    async def open(self) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin)

    async def hear(self) -> dict[str, Any]:
        """Return the next message. Exits the process at the end of the input."""
        line = await self._reader.readline()
        if not line:
            os._exit(0)
        words: dict[str, Any] = json.loads(line)
        return words


def shift_clock(seconds: float) -> None:
    """Set this process's clock wrong from now on, as on a machine without time synchronisation."""
    right = time.time
    right_ns = time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)


def go_by(ways: Mapping[str, int]) -> None:
    """Redirect connections from one port to another from now on, as a firewall rule of the machine does."""
    direct = asyncio.open_connection

    async def open_connection(
        host: str, port: int, **options: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await direct(host, ways.get(str(port), port), **options)

    asyncio.open_connection = open_connection  # type: ignore[assignment]
