"""Waiting for a condition. A test never sleeps for a time that should be enough."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

PAUSE_S = 0.005


async def wait_until(
    predicate: Callable[[], bool] | Callable[[], Awaitable[bool]], timeout: float = 10.0, what: str = ""
) -> None:
    """Return once `predicate` (plain or a coroutine function) is true; fail the test after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        result = predicate()
        if await result if inspect.isawaitable(result) else result:
            return
        await asyncio.sleep(PAUSE_S)
    raise AssertionError(f"not so within {timeout:g} s: {what or predicate}")


def wait_until_sync(predicate: Callable[[], bool], timeout: float = 10.0, what: str = "") -> None:
    """The same for tests without an event loop."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if predicate():
            return
        time.sleep(PAUSE_S)
    raise AssertionError(f"not so within {timeout:g} s: {what or predicate}")
