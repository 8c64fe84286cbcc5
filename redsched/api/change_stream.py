"""Server-sent events of changes: their bytes, and the response that sends them to one client."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from redsched import aio
from redsched.api.disconnect import gone
from redsched.model.record import adapter
from redsched.model.records.changes import Change, Reset
from redsched.operate.observe.change_log import ChangeReader

PING_S = 15.0
"""A comment is sent after this time without events: proxies close silent connections."""
PING = b": ping\n\n"
VALID_EVERY_S = 1.0
"""How often an idle stream checks that its caller's token has neither expired nor been revoked."""


def event_of(one: Change | Reset) -> bytes:
    """Return the server-sent event for a change or a reset. Its id is its last line."""
    if isinstance(one, Reset):
        return _event(b"reset", to_json({"cell": one.cell}), one.id)
    return _event(b"change", adapter(Change).dump_json(one), one.id)


def _event(kind: bytes, data: bytes, event_id: str) -> bytes:
    return b"event: %b\ndata: %b\nid: %b\n\n" % (kind, data, event_id.encode())


class ChangeStream(Response):
    """Sends what a reader gets, until the client disconnects, its token is no longer valid, or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, reader: ChangeReader, closing: asyncio.Event, is_valid: Callable[[], bool]) -> None:
        # `x-accel-buffering`: nginx would otherwise keep events back until its buffer is full.
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._reader = reader
        self._closing = closing
        self._is_valid = is_valid

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        ends = [self._end_after(one) for one in (gone(receive), self._closing.wait(), self._invalid())]
        try:
            async with self._reader as reader:
                while not reader.is_ended:
                    events = await reader.next(PING_S)
                    if self._is_valid() and (events or not reader.is_ended):
                        await send({"type": "http.response.body", "body": events or PING, "more_body": True})
        finally:
            await aio.end_all(ends)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _invalid(self) -> None:
        while self._is_valid():  # noqa: ASYNC110 - a token ends by its time or by a change of a file
            await asyncio.sleep(VALID_EVERY_S)

    def _end_after(self, what: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(what)
        task.add_done_callback(lambda _: self._reader.end())
        return task
