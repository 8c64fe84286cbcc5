"""A queue of requests that nothing fits and that wait for room, in order of arrival.

When the feed brings changes, one task walks the queue and checks, in memory alone, which requests may fit now. These
are tried one after the other, each with the columns that include the previous one's claims, so that not all waiting
requests of a scheduler compete for a host that becomes free. Hard requests, on which a planner decides, are tried
beside the walk and not in it, and after a pause: otherwise all others would wait for them.

Walks take a tenth of the time at most, however many requests wait.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from redsched import aio, logs
from redsched.errors import NoValidHost, PlannerBusy
from redsched.pacing import STEPS_S
from redsched.scheduler.cells import Cells

T = TypeVar("T")

PAUSE_S = 0.02
"""The shortest pause between two walks of the queue, however many changes the feed brings."""

log = logs.get_logger(__name__)


REST = 9
"""How much longer than a walk took is the pause after it."""
HARD_PAUSE_S = 1.0
"""The shortest pause between two tries of a hard request."""


def _never() -> bool:
    return False


class _Waiter:
    """A request that waits. Those with equal keys, other than None, fit or do not fit together."""

    __slots__ = ("back", "is_hard", "key", "may_fit", "not_before_s", "turn")

    def __init__(self, may_fit: Callable[[], bool], key: Hashable, is_hard: Callable[[], bool]) -> None:
        self.may_fit, self.key, self.is_hard = may_fit, key, is_hard
        self.turn, self.back = asyncio.Event(), asyncio.Event()
        self.not_before_s = 0.0


class WaitQueue:
    """The queue of one scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._waiters: dict[_Waiter, None] = {}
        self._joined = asyncio.Event()
        self._walking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    async def stop(self) -> None:
        """Stop walking the queue. Requests in it keep waiting until they time out."""
        await aio.end(self._walking)

    async def place(
        self,
        attempt: Callable[[], Awaitable[T]],
        may_fit: Callable[[], bool],
        timeout_s: float,
        refused: NoValidHost,
        key: Hashable = None,
        is_hard: Callable[[], bool] = _never,
    ) -> T:
        """Call `attempt` whenever there may be room, for up to `timeout_s`.

        Equal `key`s stand for equal requests; `is_hard` says whether an attempt takes long.
        Raises the last refusal on timeout, and what `attempt` raises.
        """
        until = aio.now_s() + timeout_s
        waiter = _Waiter(may_fit, key, is_hard)
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
                    began_s = aio.now_s()
                    # Outside the timeout: a claim call in progress when the time is up must be completed.
                    return await attempt()
                except NoValidHost as error:
                    refused = error
                except PlannerBusy:
                    log.debug("planner busy", waiting=len(self._waiters))
                if waiter.is_hard():
                    waiter.not_before_s = aio.now_s() + max(HARD_PAUSE_S, REST * (aio.now_s() - began_s))
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
                spent_s = await self._retry_waiting()
                await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED, timeout=self._until_hard_s())
            finally:
                for one in news:
                    one.cancel()
            await asyncio.sleep(max(PAUSE_S, REST * spent_s))

    def _until_hard_s(self) -> float | None:
        """Return the time until the next hard request may be tried again; None if none has to be."""
        pauses = [one.not_before_s for one in self._waiters if one.not_before_s]
        return max(0.0, min(pauses) - aio.now_s()) if pauses else None

    async def _retry_waiting(self) -> float:
        """Let the requests that may fit now try, in order of arrival. Returns the time that the checks took.

        If the columns have changed since the walk began, also by a place of this walk, an earlier request may fit too,
        so the walk begins again. It does so only once, because a busy feed would otherwise keep the last ones waiting.
        """
        started_at, restarts = self._position(), 1
        waiters = deque(self._waiters)
        refused: dict[Hashable, Sequence[tuple[str, int]]] = {}
        spent_s, since_s = 0.0, time.perf_counter()
        while waiters:
            one = waiters.popleft()
            if one in self._waiters and self._is_due(one) and refused.get(one.key) != self._position():
                if self._may_fit(one):
                    if restarts and self._position() != started_at:
                        waiters, restarts = deque(self._waiters), restarts - 1
                        continue
                    spent_s += time.perf_counter() - since_s
                    await self._let_try(one)
                    since_s = time.perf_counter()
                elif one.key is not None:
                    refused[one.key] = self._position()
            if time.perf_counter() - since_s >= STEPS_S:
                spent_s += time.perf_counter() - since_s
                await asyncio.sleep(0)
                since_s = time.perf_counter()
        return spent_s + time.perf_counter() - since_s

    def _is_due(self, one: _Waiter) -> bool:
        if one.turn.is_set() or one.not_before_s > aio.now_s():
            return False
        one.not_before_s = 0.0
        return True

    async def _let_try(self, one: _Waiter) -> None:
        one.back.clear()
        one.turn.set()
        if not one.is_hard():
            await one.back.wait()

    def _position(self) -> Sequence[tuple[str, int]]:
        """Return how far the columns of each cell have read the feed."""
        return [(cell.updater.epoch, cell.updater.seq) for cell in self._cells]

    def _may_fit(self, one: _Waiter) -> bool:
        try:
            return one.may_fit()
        except Exception:  # the request's own attempt will raise the same error
            log.debug("wait queue check failed", exc_info=True)
            return True
