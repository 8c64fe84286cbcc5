"""The agent's line to the store: whether it works now, and when to try again when it does not.

One for all hosts of a process, so that ten thousand of them do not each find out for themselves that the store is away.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from redsched import aio
from redsched.errors import Unavailable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0

T = TypeVar("T")
_log = structlog.get_logger("redsched.agent")


class StoreBackoff:
    """Back-off with jitter, shared by all who talk to the store."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._until_s = 0.0
        self._works = asyncio.Event()
        self._works.set()

    @property
    def is_down(self) -> bool:
        """Whether the last word of the store was none."""
        return self._pause_s > 0

    async def ready(self) -> None:
        """Wait until it is time to try again, or somebody has had an answer; at once while the line works."""
        while (left_s := self._until_s - aio.now_s()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._works.wait()

    def worked(self) -> None:
        """The store has answered."""
        if self.is_down:
            _log.info("the store answers again")
        self._pause_s = self._until_s = 0.0
        self._works.set()

    def failed(self, error: Unavailable) -> None:
        """The store has not answered. Those who fail together count once."""
        now_s = aio.now_s()
        if now_s < self._until_s:
            return
        if not self.is_down:
            _log.warning("the store does not answer; trying again", error=str(error))
        self._pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, self._pause_s * 2))
        self._until_s = now_s + self._pause_s * random.uniform(0.5, 1.5)
        self._works.clear()

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer. Every call of the store is idempotent, so asking again is always right."""
        while True:
            await self.ready()
            try:
                answer = await call()
            except Unavailable as error:
                self.failed(error)
            else:
                self.worked()
                return answer
