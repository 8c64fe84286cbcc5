"""Back-off for calls to the store: whether it is available, and when to retry.

All hosts of a process share one, so that ten thousand hosts do not each discover an outage for themselves.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redsched import aio, logs
from redsched.errors import StoreUnavailable, Unavailable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0

T = TypeVar("T")
_log = logs.get_logger("redsched.agent")


class AgentRefused(StoreUnavailable):
    """The API refuses the agent: its token, or what it does with it. A valid token or restored rights end that."""


class StoreBackoff:
    """Exponential back-off with jitter, shared by all callers of the store."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._until_s = 0.0
        self._available = asyncio.Event()
        self._available.set()
        self._is_refused = False
        """Whether the store, or rather the API before it, was there and refused the last call."""

    @property
    def is_down(self) -> bool:
        """Whether the last call to the store failed."""
        return self._pause_s > 0

    async def ready(self) -> None:
        """Wait until the next retry is due or another call succeeds. Returns at once while the store is available."""
        while (left_s := self._until_s - aio.now_s()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._available.wait()

    def succeeded(self) -> None:
        """Record that the store has replied, and reset the back-off."""
        if self.is_down:
            _log.info("store available again", actor="")
        self._pause_s = self._until_s = 0.0
        self._available.set()

    def failed(self, error: Unavailable) -> None:
        """Record a failed call. Calls that fail during the same pause count once."""
        now_s = aio.now_s()
        if now_s < self._until_s:
            return
        is_refused = isinstance(error, AgentRefused)
        if not self.is_down or is_refused != self._is_refused:
            _log.warning("refused, retrying" if is_refused else "store unavailable, retrying", error=str(error))
        self._is_refused = is_refused
        self._pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, self._pause_s * 2))
        self._until_s = now_s + self._pause_s * random.uniform(0.5, 1.5)
        self._available.clear()

    async def call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until the store replies. Every call to the store is idempotent, so a retry is always safe."""
        while True:
            await self.ready()
            try:
                answer = await call()
            except Unavailable as error:
                self.failed(error)
            else:
                self.succeeded()
                return answer
