"""Client disconnects: cancel, and so undo, work that waits on behalf of a disconnected client."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from redsched import aio
from redsched.api.access.in_progress import waiting
from redsched.api.problems import TooManyRequests
from redsched.errors import NotConfirmed

T = TypeVar("T")

RELEASED = "its claims are released"


async def unless_gone(request: Request, work: Coroutine[Any, Any, T], then: str = RELEASED) -> T:
    """Return the result of `work`, or cancel it when the client disconnects. The body must have been read.

    `then` says what becomes of it.

    Raises NotConfirmed when the client disconnected first, TooManyRequests if its caller has too many that wait.
    """
    try:
        with waiting(request.scope):
            return await _unless_gone(request, work, then)
    except TooManyRequests:
        work.close()  # it has not begun
        raise


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T], then: str) -> T:
    doing = asyncio.ensure_future(work)
    going = asyncio.ensure_future(gone(request.receive))
    try:
        await asyncio.wait((doing, going), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise NotConfirmed(f"the client disconnected before the response: {then}")
        return doing.result()
    finally:
        await aio.end_all((doing, going))


async def gone(receive: Receive) -> None:
    """Wait until the client disconnects. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
