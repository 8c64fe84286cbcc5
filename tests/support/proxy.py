"""A proxy between a process and the server, which loses, holds up and spoils what it is told to.

        client --command--> [LOSE_REQUEST, LATE_REQUEST, DELAY, SPOIL_REQUEST] --> server
        client <--reply---- [LOSE_REPLY, CUT_REPLY, HOLD_REPLY, SPOIL_REPLY] <---- server

It speaks just enough RESP2 to know where one command and its reply end, so a fault strikes one chosen script, also in
the middle of a pipeline: what follows on the wire has been sent, and is run or not as the fault has it. Readers pass
untouched unless `strikes_readers`. It can also be shut, so that nobody gets a connection, and cut, which ends those
there are.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from tests.support.connections import Connections

LIMIT = 1 << 22


class Fault(StrEnum):
    """What happens to one script call."""

    NONE = "none"
    LOSE_REQUEST = "lose-request"
    """The connection breaks before the server has it."""
    LATE_REQUEST = "late-request"
    """The writer has given this connection up before the server gets it: a late copy, after the one sent again."""
    LOSE_REPLY = "lose-reply"
    """The server has run it, and the connection breaks."""
    CUT_REPLY = "cut-reply"
    """The server has run it, and the connection breaks in the middle of the reply."""
    HOLD_REPLY = "hold-reply"
    """The server has run it, and the reply never comes: the writer's timeout has to notice."""
    DELAY = "delay"
    """It comes late, and so does all that follows on its connection."""
    SPOIL_REQUEST = "spoil-request"
    """A byte changes on the way to the server. RESP has no checksum, so it is one that frames: see `_spoilt`."""
    SPOIL_REPLY = "spoil-reply"
    """The server has run it, and a byte changes on the way back, likewise."""


class Moment(StrEnum):
    """Where a command is when a proxy's `watch` is told of it."""

    COMES = "comes"
    """Before the server gets it."""
    HAS_RUN = "has-run"
    """The server has answered, and the client does not have the answer yet."""
    ANSWERED = "answered"
    """The answer has been passed on."""


Reach = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to the server."""

Watch = Callable[[Moment, list[bytes]], None]


def _sees_nothing(_: Moment, __: list[bytes]) -> None:
    pass


class Proxy:
    """Listens where whoever made it has it listen.

    `faults` are played in order, one for each script call; when there are none left, `always`.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.url = ""
        """The URL of where it listens, for a server that is given by one."""
        self.faults: deque[Fault] = deque()
        self.always = Fault.NONE
        self.played: Counter[Fault] = Counter()
        self.strikes: Callable[[list[bytes]], bool] = lambda command: command[0].startswith(b"EVALSHA")
        """Which of the writer's commands faults are for."""
        self.late: set[asyncio.Task[None]] = set()
        """Late copies on their way."""
        self.strikes_readers = False
        self.delay_s = 0.05
        """How late a delayed command is."""
        self.watch: Watch = _sees_nothing
        """Told of every command; what it does happens before anything else does."""
        self.shut_by: set[object] = set()
        """Whoever has new connections refused now: they are let through again once nobody has."""
        self._connections = Connections()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to relay a connection."""
        self._connections.begin(self._relay(reader, writer), writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = None
        try:
            if self.shut_by:
                raise EOFError
            upstream = await self.reach()
            await _Relay(self, reader, writer, *upstream).run()
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, *(upstream[1:] if upstream else ())):
                end.transport.abort()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()

    def next_fault(self, command: list[bytes]) -> Fault:
        """The fault for a command of the writer."""
        if not self.strikes(command):
            return Fault.NONE
        fault = self.faults.popleft() if self.faults else self.always
        self.played[fault] += 1
        return fault

    def cut(self) -> None:
        """End all connections that there are now."""
        self._connections.cut()

    async def stop(self, server: asyncio.Server) -> None:
        """End all connections, and wait for that; `server` is what listens for it."""
        await self._connections.end(server)
        await asyncio.gather(*self.late, return_exceptions=True)


@asynccontextmanager
async def proxy(upstream: Path, folder: Path, name: str = "proxy") -> AsyncIterator[Proxy]:
    """A proxy before the server whose socket is `upstream`, with its own socket in `folder`."""
    socket = folder / f"{name}.sock"
    between = Proxy(lambda: asyncio.open_unix_connection(str(upstream), limit=LIMIT))
    between.url = f"unix://{socket}"
    server = await asyncio.start_unix_server(between.serve, str(socket), limit=LIMIT)
    try:
        yield between
    finally:
        await between.stop(server)


class _Relay:
    """One client's connection and the server's behind it."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._from_server, self._to_server = from_server, to_server
        self._sent: asyncio.Queue[tuple[Fault, list[bytes]]] = asyncio.Queue()
        self._is_writer = False

    async def run(self) -> None:
        """Relay both ways until one of them ends."""
        ways = [asyncio.ensure_future(self._commands()), asyncio.ensure_future(self._replies())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _commands(self) -> None:
        while True:
            raw, command = await read_command(self._reader)
            if [word.upper() for word in command[:2]] == [b"CLIENT", b"SETNAME"]:
                self._is_writer = command[2] == b"redsched-writer"
            self._proxy.watch(Moment.COMES, command)
            is_struck = self._is_writer or self._proxy.strikes_readers
            fault = self._proxy.next_fault(command) if is_struck else Fault.NONE
            if fault is Fault.LOSE_REQUEST:
                return
            if fault is Fault.LATE_REQUEST:
                await self._hold(raw)
                return
            if fault is Fault.DELAY:
                await asyncio.sleep(self._proxy.delay_s)
            self._sent.put_nowait((fault, command))
            self._to_server.write(_spoilt(raw) if fault is Fault.SPOIL_REQUEST else raw)
            await self._to_server.drain()

    async def _hold(self, raw: bytes) -> None:
        """Keep a command until its writer has gone away, then let the server run it on a connection of its own."""
        with contextlib.suppress(OSError, EOFError):
            while await self._reader.read(LIMIT):
                pass
        late = asyncio.create_task(self._proxy_late(raw))
        self._proxy.late.add(late)

    async def _proxy_late(self, raw: bytes) -> None:
        reader, writer = await self._proxy.reach()
        try:
            writer.write(raw)
            await read_reply(reader)
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _replies(self) -> None:
        while True:
            reply = await read_reply(self._from_server)
            fault, command = self._sent.get_nowait()
            self._proxy.watch(Moment.HAS_RUN, command)
            if fault is Fault.LOSE_REPLY:
                return
            if fault is Fault.HOLD_REPLY:
                await asyncio.Event().wait()
            if fault is Fault.SPOIL_REPLY:
                reply = _spoilt(reply)
            self._writer.write(reply[: len(reply) // 2] if fault is Fault.CUT_REPLY else reply)
            await self._writer.drain()
            self._proxy.watch(Moment.ANSWERED, command)
            if fault is Fault.CUT_REPLY:
                self._writer.close()  # and not abort: what was written is to arrive
                await self._writer.wait_closed()
                return


def _spoilt(raw: bytes) -> bytes:
    """With the first line made unreadable.

    A digit that changes inside a value is seen by nobody: the protocol carries no checksum, and only TLS does. What a
    process and a server can notice, and so have to live with, is a frame that is broken.
    """
    return raw[:1] + b"x" + raw[2:] if raw[:1] in b"*$:" else b"x" + raw[1:]


async def read_command(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """One command as it is on the wire, and its words."""
    raw = head = await _line(reader)
    words = []
    for _ in range(int(head[1:])):
        length = await _line(reader)
        word = await reader.readexactly(int(length[1:]) + 2)
        raw += length + word
        words.append(word[:-2])
    return raw, words


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """One reply of RESP2 as it is on the wire."""
    head = await _line(reader)
    size = int(head[1:]) if head[:1] in b"$*" else -1
    if head[:1] == b"$" and size >= 0:
        return head + await reader.readexactly(size + 2)
    parts = [head]
    if head[:1] == b"*":
        for _ in range(size):
            parts.append(await read_reply(reader))  # noqa: PERF401 - an await in a comprehension would not be read so
    return b"".join(parts)


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line
