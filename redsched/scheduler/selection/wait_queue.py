"""A queue of requests that nothing fits and that wait for room, in order of arrival.

When the feed brings changes, one task walks the queue and checks, in memory alone, which requests may fit now. These
are tried one after the other, each with the columns that include the previous one's claims, so that not all waiting
requests of a scheduler compete for a host that becomes free.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from redsched import aio, logs
from redsched.errors import NoValidHost
from redsched.scheduler.cells import Cells

T = TypeVar("T")

PAUSE_S = 0.02
"""The shortest pause between two walks of the queue, however many changes the feed brings."""

log = logs.get_logger(__name__)


class _Waiter:
    __slots__ = ("back", "may_fit", "turn")

    def __init__(self, may_fit: Callable[[], bool]) -> None:
        self.may_fit = may_fit
        self.turn, self.back = asyncio.Event(), asyncio.Event()


class WaitQueue:
    """The queue of one scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._waiters: dict[_Waiter, None] = {}
        self._joined = asyncio.Event()
        self._walking: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Stop walking the queue. Requests in it keep waiting until they time out."""
        await aio.end(self._walking)

    async def place(
        self,
        attempt: Callable[[], Awaitable[T]],
        may_fit: Callable[[], bool],
        timeout_s: float,
        refused: NoValidHost,
    ) -> T:
        """Call `attempt` whenever there may be room, for up to `timeout_s`.

        Raises the last refusal on timeout, and what `attempt` raises.
        """
        until = aio.now_s() + timeout_s
        waiter = _Waiter(may_fit)
        self._waiters[waiter] = None
        self._joined.set()
        if self._walking is None or self._walking.done():
            self._walking = aio.detached(self._walk(), name="redsched-wait-queue")
        try:
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        await waiter.turn.wait()
                except TimeoutError:
                    raise refused from None
                try:
                    # Outside the timeout: a claim call in progress when the time is up must be completed.
                    return await attempt()
                except NoValidHost as error:
                    refused = error
                waiter.turn.clear()
                waiter.back.set()
        finally:
            del self._waiters[waiter]
            waiter.back.set()

    async def _walk(self) -> None:
        while self._waiters:
            # A request that joins may have been refused before the last change, so joining triggers a walk too.
            self._joined.clear()
            news = [asyncio.ensure_future(cell.updater.moved()) for cell in self._cells]
            news.append(asyncio.ensure_future(self._joined.wait()))
            try:
                await self._retry_waiting()
                await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in news:
                    one.cancel()
            await asyncio.sleep(PAUSE_S)

    async def _retry_waiting(self) -> None:
        """Let the requests that may fit now try, in order of arrival.

        If the columns have changed since the walk began, also by a place of this walk, an earlier request may fit too,
        so the walk begins again. It does so only once, because a busy feed would otherwise keep the last ones waiting.
        """
        started_at, restarts = self._position(), 1
        waiters = deque(self._waiters)
        while waiters:
            one = waiters.popleft()
            if one in self._waiters and self._may_fit(one):
                if restarts and self._position() != started_at:
                    waiters, restarts = deque(self._waiters), restarts - 1
                    continue
                one.back.clear()
                one.turn.set()
                await one.back.wait()
            await asyncio.sleep(0)

    def _position(self) -> Sequence[tuple[str, int]]:
        """Return how far the columns of each cell have read the feed."""
        return [(cell.updater.epoch, cell.updater.seq) for cell in self._cells]

    def _may_fit(self, one: _Waiter) -> bool:
        try:
            return one.may_fit()
        except Exception:  # the request's own attempt will raise the same error
            log.debug("wait queue check failed", exc_info=True)
            return True
