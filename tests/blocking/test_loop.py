"""The event loop in a thread of its own: a call that comes as it is closed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from redsched.blocking import loop as blocking_loop
from redsched.blocking.loop import LoopThread
from redsched.errors import OutcomeUnknown


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


class _Interrupted(uvloop.Loop):
    """Does something else once in the middle of the next call from another thread."""

    first: Callable[[], None] | None = None

    def call_soon_threadsafe(self, *args: Any, **named: Any) -> Any:  # type: ignore[override] # whatever it takes
        if (first := self.first) is not None:
            self.first = None
            first()
        return super().call_soon_threadsafe(*args, **named)


def test_a_call_ends_if_the_loop_is_closed_while_it_is_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The close waits for the call to be scheduled, and then ends it with the others."""
    loop = _Interrupted()
    monkeypatch.setattr(blocking_loop, "_new_loop", lambda: loop)
    one = LoopThread(_nothing)
    one.resource()
    closer = threading.Thread(target=one.close)

    def close_meanwhile() -> None:
        closer.start()
        closer.join(0.5)  # a close that does not wait has ended the loop by then

    loop.first = close_meanwhile
    with pytest.raises(OutcomeUnknown, match="closed during the call"):
        one.call(asyncio.sleep(60))
    closer.join()
