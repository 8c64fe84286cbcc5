"""How a process and the suite talk: JSON lines, its standard input one way and its standard output the other.

A line is written by one call before anything else happens, so what was said survives the SIGKILL of who said it. The
end of the input is the end of the process: none survives the suite, however that one ends.
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
    """Tell the suite, with the time by the machine's monotonic clock. The line is in the pipe when this returns."""
    line = json.dumps({"said": said, "at_s": time.monotonic(), **words}).encode() + b"\n"
    while line:
        line = line[os.write(STDOUT, line) :]


class Ear:
    """What the suite says to this process."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader()

    async def open(self) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin)

    async def hear(self) -> dict[str, Any]:
        """The next thing said. Ends the process at the end of the input."""
        line = await self._reader.readline()
        if not line:
            os._exit(0)
        words: dict[str, Any] = json.loads(line)
        return words


def shift_clock(seconds: float) -> None:
    """Let this process' clock be wrong from now on, as that of a machine is where nobody keeps it right."""
    right = time.time
    right_ns = time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)


def go_by(ways: Mapping[str, int]) -> None:
    """Let connections to a port land on another one from now on, as by a rule of this machine's network."""
    direct = asyncio.open_connection

    async def open_connection(
        host: str, port: int, **options: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await direct(host, ways.get(str(port), port), **options)

    asyncio.open_connection = open_connection  # type: ignore[assignment]
