"""One heap with the timers of all hosts, instead of a sleeping task for each of ten thousand hosts."""

import asyncio
import heapq
import itertools
from typing import Generic, TypeVar

from redsched import aio

GRAIN_S = 0.02
"""Hosts that are due within this time are served together, so that their calls share a round trip."""

H = TypeVar("H")


class TimerQueue(Generic[H]):
    """At most one timer for each host. A host that `due` has returned has none until it is set again."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, H]] = []
        self._at_s: dict[H, float] = {}
        self._order = itertools.count()
        self._earlier = asyncio.Event()

    def set(self, host: H, in_s: float) -> None:
        """Set the host's timer to `in_s` seconds from now, unless it is set to an earlier time."""
        at_s = aio.now_s() + in_s
        if self._at_s.get(host, float("inf")) <= at_s:
            return
        self._at_s[host] = at_s
        heapq.heappush(self._heap, (at_s, next(self._order), host))
        if self._heap[0][2] is host:
            self._earlier.set()

    def drop(self, host: H) -> None:
        """Remove the host's timer."""
        self._at_s.pop(host, None)

    async def due(self, most: int) -> list[H]:
        """Wait until hosts are due, and return up to `most` of them, the longest overdue first."""
        while True:
            self._earlier.clear()
            batch = self._pop(most)
            if batch:
                return batch
            left_s = self._left_s()
            try:
                async with asyncio.timeout(left_s):
                    await self._earlier.wait()
            except TimeoutError:
                continue

    def _pop(self, most: int) -> list[H]:
        now_s = aio.now_s()
        batch: list[H] = []
        while self._heap and self._heap[0][0] <= now_s and len(batch) < most:
            at_s, _, host = heapq.heappop(self._heap)
            # The heap still has entries of hosts that were dropped, or set to an earlier time since.
            if self._at_s.get(host) == at_s:
                del self._at_s[host]
                batch.append(host)
        return batch

    def _left_s(self) -> float | None:
        if not self._heap:
            return None
        return max(GRAIN_S, self._heap[0][0] - aio.now_s())
