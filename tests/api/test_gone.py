"""A client that closes the connection cancels the work that waits for it; nothing else cancels it."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from redsched.api.disconnect import unless_gone
from redsched.api.routes.plans import PLAN_GONE
from redsched.errors import NotConfirmed, NoValidHost


def request_from(messages: "asyncio.Queue[dict[str, Any]]") -> Request:
    """Return a request whose body has been read; later messages come from `messages`."""
    return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, messages.get)


async def test_the_work_of_one_who_goes_is_cancelled() -> None:
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    waiting = asyncio.create_task(unless_gone(request_from(messages), work()))
    await started.wait()
    await messages.put({"type": "http.request", "body": b""})
    await messages.put({"type": "http.disconnect"})
    with pytest.raises(NotConfirmed, match="client disconnected"):
        await waiting
    assert cancelled.is_set()


async def test_one_who_stays_gets_the_answer_or_the_error() -> None:
    async def answer() -> int:
        return 7

    async def refuse() -> int:
        raise NoValidHost("nothing fits")

    assert await unless_gone(request_from(asyncio.Queue()), answer()) == 7
    with pytest.raises(NoValidHost):
        await unless_gone(request_from(asyncio.Queue()), refuse())


async def test_one_who_goes_is_told_what_becomes_of_the_work() -> None:
    """Claims are released, but a plan has none."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    for then, words in (((), "claims are released"), ((PLAN_GONE,), "nothing was written")):
        await messages.put({"type": "http.disconnect"})
        with pytest.raises(NotConfirmed, match=words):
            await unless_gone(request_from(messages), asyncio.Event().wait(), *then)
