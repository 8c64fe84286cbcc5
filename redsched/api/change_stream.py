"""Server-sent events of changes: their bytes, and the response that sends them to one client."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from redsched import aio
from redsched.api.disconnect import gone
from redsched.scheduler import Change, Reset
from redsched.scheduler.observe.change_log import ChangeReader
from redsched.schema.responses import ChangeAnswer

PING_S = 15.0
"""A comment is sent after this time without events: proxies close silent connections."""
PING = b": ping\n\n"


def event_of(one: Change | Reset) -> bytes:
    """Return the server-sent event for a change or a reset."""
    if isinstance(one, Reset):
        return _event(b"reset", one, {"cell": one.cell})
    return _event(b"change", one, ChangeAnswer.of(one))


def _event(kind: bytes, one: Change | Reset, data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\nid: %b:%d\n\n" % (kind, to_json(data), one.cell.encode(), one.seq)


class ChangeStream(Response):
    """Sends what a reader gets, until the client disconnects or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, reader: ChangeReader, closing: asyncio.Event) -> None:
        # `x-accel-buffering`: nginx would otherwise keep events back until its buffer is full.
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._reader = reader
        self._closing = closing

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        ends = [self._end_after(gone(receive)), self._end_after(self._closing.wait())]
        try:
            async with self._reader as reader:
                while not reader.is_ended:
                    events = await reader.next(PING_S)
                    if events or not reader.is_ended:
                        await send({"type": "http.response.body", "body": events or PING, "more_body": True})
        finally:
            await aio.end_all(ends)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _end_after(self, what: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(what)
        task.add_done_callback(lambda _: self._reader.end())
        return task
