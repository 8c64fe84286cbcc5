"""Calls between the processes of a run: lines of JSON over a unix socket, many at once on one connection.

This replaces the peers' message bus (RabbitMQ) and HTTP. It is faster than both, which favours the models that call
hosts or a service more often.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

LINE_LIMIT = 2**24
CONNECT_TIMEOUT_S = 30.0
Message = dict[str, Any]
Handle = Callable[[Message], Awaitable[Message]]


class CallFailed(Exception):
    """The other process raised an error, which this describes."""


class Caller:
    """One connection. Replies arrive in any order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._sent = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, path: str) -> AsyncIterator[Self]:
        """Connect to a server that may still be starting."""
        reader, writer = await _opened(path)
        caller = cls(reader, writer)
        reading = asyncio.create_task(caller._read())
        try:
            yield caller
        finally:
            reading.cancel()
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await asyncio.gather(reading, writer.wait_closed(), return_exceptions=True)

    async def call(self, op: str, **fields: Any) -> Message:
        """Send a message and return its reply. Raises ConnectionError (the server is gone) or CallFailed."""
        self._sent += 1
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._sent] = reply
        self._writer.write(json.dumps({"op": op, "id": self._sent, **fields}).encode() + b"\n")
        return await reply

    async def _read(self) -> None:
        with contextlib.suppress(OSError):
            while line := await self._reader.readline():
                reply = json.loads(line)
                waiting = self._waiting.pop(reply["id"])
                if "error" in reply:
                    waiting.set_exception(CallFailed(reply["error"]))
                else:
                    waiting.set_result(reply)
        for one in self._waiting.values():
            if not one.done():
                one.set_exception(ConnectionError("the server closed the connection"))


async def _opened(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        while True:
            try:
                return await asyncio.open_unix_connection(path, limit=LINE_LIMIT)
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(path: str, handle: Handle) -> AsyncIterator[None]:
    """Serve: every message is handled in a task of its own, so that one that waits delays no other."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                task = asyncio.create_task(_answer(handle, json.loads(line), writer))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        writer.close()

    server = await asyncio.start_unix_server(connected, path, limit=LINE_LIMIT)
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*tasks)


async def _answer(handle: Handle, message: Message, writer: asyncio.StreamWriter) -> None:
    try:
        reply = await handle(message)
    except Exception as error:  # it must reach the caller, who would wait forever
        reply = {"error": repr(error)}
    if not writer.is_closing():
        writer.write(json.dumps({**reply, "id": message["id"]}).encode() + b"\n")
