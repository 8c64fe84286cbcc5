"""Requests that nothing fits and that wait for room, in the order in which they came.

When the feed has brought something, one task walks the line and looks, in memory alone, for whom there may be room now.
Those get their turn to try one after the other, each seeing what the one before it took: so a host that comes free is
tried for by one of those who wait at this scheduler, and not by all of them at once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from redsched import aio
from redsched.errors import NoValidHost
from redsched.scheduler.cells import Cells

T = TypeVar("T")

PAUSE_S = 0.02
"""Between two walks of the line, however busy the feed."""

log = structlog.get_logger(__name__)


class _Waiter:
    __slots__ = ("back", "may_fit", "turn")

    def __init__(self, may_fit: Callable[[], bool]) -> None:
        self.may_fit = may_fit
        self.turn, self.back = asyncio.Event(), asyncio.Event()


class WaitQueue:
    """The line of one scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._line: dict[_Waiter, None] = {}
        self._joined = asyncio.Event()
        self._walking: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """End the walking. Who waits goes on until its time is up."""
        await aio.end(self._walking)

    async def place(
        self,
        attempt: Callable[[], Awaitable[T]],
        may_fit: Callable[[], bool],
        timeout_s: float,
        refused: NoValidHost,
    ) -> T:
        """Try again whenever there may be room, for so long. Raises the last refusal, and what `attempt` raises."""
        until = aio.now_s() + timeout_s
        one = _Waiter(may_fit)
        self._line[one] = None
        self._joined.set()
        if self._walking is None or self._walking.done():
            self._walking = asyncio.create_task(self._walk(), name="redsched-room")
        try:
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        await one.turn.wait()
                except TimeoutError:
                    raise refused from None
                try:
                    # To its end: a claim that is under way when the time is up is a claim.
                    return await attempt()
                except NoValidHost as error:
                    refused = error
                one.turn.clear()
                one.back.set()
        finally:
            del self._line[one]
            one.back.set()

    async def _walk(self) -> None:
        while self._line:
            # Who joins may have been refused before the last move, and is looked at like after one.
            self._joined.clear()
            news = [asyncio.ensure_future(cell.mirror.moved()) for cell in self._cells]
            news.append(asyncio.ensure_future(self._joined.wait()))
            try:
                await self._give_turns()
                await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in news:
                    one.cancel()
            await asyncio.sleep(PAUSE_S)

    async def _give_turns(self) -> None:
        for one in list(self._line):
            if one in self._line and self._may_fit(one):
                one.back.clear()
                one.turn.set()
                await one.back.wait()
            await asyncio.sleep(0)

    def _may_fit(self, one: _Waiter) -> bool:
        try:
            return one.may_fit()
        except Exception:  # whatever it is, the request's own try will say it
            log.debug("room", exc_info=True)
            return True
