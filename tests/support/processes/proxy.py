"""A proxy between a process and the server, which loses, delays and corrupts commands and replies on request.

        client --command--> [LOSE_REQUEST, LATE_REQUEST, DELAY, SPOIL_REQUEST] --> server
        client <--reply---- [LOSE_REPLY, CUT_REPLY, HOLD_REPLY, SPOIL_REPLY] <---- server

It parses just enough RESP2 to find where one command and its reply end, so a fault strikes one chosen script, also in
the middle of a pipeline: the following commands have been sent, and the fault decides whether they run. Readers pass
unaffected unless `strikes_readers`. The proxy can also be shut, so that it accepts no connection, and cut, which ends
the existing ones.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from tests.support.processes.connections import Connections

LIMIT = 1 << 22


class Fault(StrEnum):
    """The effect on one script call."""

    NONE = "none"
    LOSE_REQUEST = "lose-request"
    """The connection breaks before the server gets the call."""
    LATE_REQUEST = "late-request"
    """The writer has abandoned this connection before the server gets the call: a late copy, after the retry."""
    LOSE_REPLY = "lose-reply"
    """The server has run it, and the connection breaks."""
    CUT_REPLY = "cut-reply"
    """The server has run it, and the connection breaks in the middle of the reply."""
    HOLD_REPLY = "hold-reply"
    """The server has run it, and the reply never arrives: the writer's timeout has to detect that."""
    DELAY = "delay"
    """It arrives late, and so does everything after it on its connection."""
    SPOIL_REQUEST = "spoil-request"
    """A byte changes on the way to the server. RESP has no checksum, so it is a byte of the framing: see `_spoilt`."""
    SPOIL_REPLY = "spoil-reply"
    """The server has run it, and a byte of the reply changes likewise."""


class Moment(StrEnum):
    """The position of a command when a proxy's `watch` is called."""

    COMES = "comes"
    """Before the server gets it."""
    HAS_RUN = "has-run"
    """The server has replied, and the client does not have the reply yet."""
    ANSWERED = "answered"
    """The reply has been passed on."""


Reach = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to the server."""

Watch = Callable[[Moment, list[bytes]], None]


def _sees_nothing(_: Moment, __: list[bytes]) -> None:
    pass


class Proxy:
    """A proxy that listens where its creator chooses.

    `faults` are played in order, one for each script call; after the last one, `always`.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.url = ""
        """The URL at which it listens, for a server that is given by URL."""
        self.faults: deque[Fault] = deque()
        self.always = Fault.NONE
        self.played: Counter[Fault] = Counter()
        self.strikes: Callable[[list[bytes]], bool] = lambda command: command[0].startswith(b"EVALSHA")
        """The commands of the writer that faults apply to."""
        self.late: set[asyncio.Task[None]] = set()
        """Late copies on their way."""
        self.strikes_readers = False
        self.delay_s = 0.05
        """The delay of a delayed command."""
        self.watch: Watch = _sees_nothing
        """Called for every command; its effects happen before anything else does."""
        self.shut_by: set[object] = set()
        """The faults that have new connections rejected: the proxy accepts them again once there is none."""
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
        """Return the fault for a command of the writer."""
        if not self.strikes(command):
            return Fault.NONE
        fault = self.faults.popleft() if self.faults else self.always
        self.played[fault] += 1
        return fault

    def cut(self) -> None:
        """End all present connections."""
        self._connections.cut()

    async def stop(self, server: asyncio.Server) -> None:
        """End all connections, and wait for that; `server` is the listener."""
        await self._connections.end(server)
        await asyncio.gather(*self.late, return_exceptions=True)


@asynccontextmanager
async def proxy(upstream: Path, folder: Path, name: str = "proxy") -> AsyncIterator[Proxy]:
    """Yield a proxy for the server whose socket is `upstream`, with its own socket in `folder`."""
    socket = folder / f"{name}.sock"
    between = Proxy(lambda: asyncio.open_unix_connection(str(upstream), limit=LIMIT))
    between.url = f"unix://{socket}"
    server = await asyncio.start_unix_server(between.serve, str(socket), limit=LIMIT)
    try:
        yield between
    finally:
        await between.stop(server)


class _Relay:
    """One client's connection and the server's connection behind it."""

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
        self._sent: deque[tuple[Fault, list[bytes]]] = deque()
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
        frames = Frames(self._reader)
        while True:
            raw = await frames.next()
            command = words_of(raw)
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
            self._sent.append((fault, command))
            self._to_server.write(_spoilt(raw) if fault is Fault.SPOIL_REQUEST else raw)
            await self._to_server.drain()

    async def _hold(self, raw: bytes) -> None:
        """Hold a command until its writer has gone away, then let the server run it on a separate connection."""
        with contextlib.suppress(OSError, EOFError):
            while await self._reader.read(LIMIT):
                pass
        late = asyncio.create_task(self._proxy_late(raw))
        self._proxy.late.add(late)

    async def _proxy_late(self, raw: bytes) -> None:
        reader, writer = await self._proxy.reach()
        try:
            writer.write(raw)
            await Frames(reader).next()
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _replies(self) -> None:
        frames = Frames(self._from_server)
        while True:
            reply = await frames.next()
            fault, command = self._sent.popleft()
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
                self._writer.close()  # and not abort: written data must arrive
                await self._writer.wait_closed()
                return


def _spoilt(raw: bytes) -> bytes:
    """Return the reply with an unreadable first line.

    Nobody can detect a digit that changes inside a value: the protocol has no checksum, only TLS has. A process and a
    server can detect a broken frame, and therefore have to handle it.
    """
    return raw[:1] + b"x" + raw[2:] if raw[:1] in b"*$:" else b"x" + raw[1:]


class Frames:
    """The commands or replies of a connection, one after the other, as they are on the wire."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._read = b""
        self._at = 0
        """Where the next frame begins in what was read."""

    async def next(self) -> bytes:
        """Return the next frame. Raises EOFError if the connection ends before the frame does."""
        end, left = frame_end(self._read, self._at, 1)
        while left:
            self._read, end, self._at = self._read[self._at :] + await self._more(), end - self._at, 0
            end, left = frame_end(self._read, end, left)
        frame, self._at = self._read[self._at : end], end
        return frame

    async def _more(self) -> bytes:
        if more := await self._reader.read(LIMIT):
            return more
        raise EOFError


BULK, ARRAY = b"$*"
"""The first bytes of values that begin with a size."""


def frame_end(read: bytes, at: int, left: int) -> tuple[int, int]:
    """Return where `left` values end that begin at a position, and 0.

    If they have not all arrived, return where the first of the missing ones begins, and their number.
    """
    while left and (line := read.find(b"\r\n", at)) >= 0:
        kind, end = read[at], line + 2
        if kind == BULK and (size := int(read[at + 1 : line])) >= 0:
            end += size + 2
            if end > len(read):
                break
        elif kind == ARRAY:
            left += max(int(read[at + 1 : line]), 0)
        at, left = end, left - 1
    return at, left


def words_of(command: bytes) -> list[bytes]:
    """Return the arguments of a command."""
    words, at = [], command.index(b"\n") + 1
    while at < len(command):
        start = command.index(b"\n", at) + 1
        end = start + int(command[at + 1 : start])
        words.append(command[start:end])
        at = end + 2
    return words
