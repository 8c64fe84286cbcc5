"""Wait for a condition, instead of sleeping for a time that should suffice."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.05
COST = 4
"""The ratio of the pause to the duration of a check, up to the longest pause: checks of six servers would occupy a
core."""


PATIENCE = 6
"""How much longer than on an idle machine everything may take."""

LONGEST_S = 240
"""The longest wait: pytest ends a test after 300 s, and says less about what it waited for."""


def patience_s(seconds: float) -> float:
    """Return how long to wait here for what may take so many seconds on an idle machine."""
    return min(PATIENCE * seconds, LONGEST_S)


async def wait_until(
    predicate: Callable[[], bool] | Callable[[], Awaitable[bool]], timeout: float = 10.0, what: str = ""
) -> None:
    """Return once `predicate` (plain or a coroutine function) is true; else fail the test.

    `timeout`: the seconds that it may take on an idle machine. On a busy one it gets more: see `patience_s`.
    """
    deadline = time.monotonic() + patience_s(timeout)
    while (since := time.monotonic()) < deadline:
        result = predicate()
        if await result if inspect.isawaitable(result) else result:
            return
        await asyncio.sleep(pause_s(time.monotonic() - since))
    raise AssertionError(f"not so within {patience_s(timeout):g} s: {what or predicate}")


def wait_until_sync(predicate: Callable[[], bool], timeout: float = 10.0, what: str = "") -> None:
    """The same for tests without an event loop."""
    deadline = time.monotonic() + patience_s(timeout)
    while (since := time.monotonic()) < deadline:
        if predicate():
            return
        time.sleep(pause_s(time.monotonic() - since))
    raise AssertionError(f"not so within {patience_s(timeout):g} s: {what or predicate}")


def pause_s(took_s: float) -> float:
    """Return how long to wait after a check of this duration."""
    return min(max(PAUSE_S, COST * took_s), LONGEST_PAUSE_S)
