"""The clocks of stores: one jumps and comes back, and a replica that takes over has another time."""

import asyncio

import redis

from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.faults.failover import PROMOTED_S, FailoverInOrder
from tests.faults.suite.plan import Shape
from tests.support.store_clock import set_ahead
from tests.support.waiting import wait_until

HOURS_S = 3 * 3600
SHIFTS_S = {"ahead": HOURS_S, "behind": -HOURS_S}


class _StoreClock(Breakage):
    """The base class of these faults."""

    async def set_clocks(self, *cells: str, seconds: int) -> None:
        """Set the clocks of these cells' stores, as soon as they reply. Raises AssertionError after PROMOTED_S."""
        await wait_until(lambda: self._are_set(cells, seconds), PROMOTED_S, "a store whose clock can be set")

    def _are_set(self, cells: tuple[str, ...], seconds: int) -> bool:
        try:
            for cell in cells:
                with self.world.site.connect(cell) as client:
                    set_ahead(client, cell, seconds)
        except (redis.RedisError, OSError):
            return False
        return True


class Jump(_StoreClock):
    """The clock of a cell's store is three hours ahead or behind for a while."""

    shape = Shape("store-clock", ("single", "cluster"), on="cell", points=tuple(SHIFTS_S), seconds=(1.0, 3.0))

    async def start(self) -> None:
        """Set it wrong."""
        await self.set_clocks(self.cell, seconds=SHIFTS_S[self.strike.point])

    async def heal(self) -> None:
        """Set it right."""
        await self.set_clocks(self.cell, seconds=0)


class OtherTime(_StoreClock, FailoverInOrder):
    """A failover in order, to a replica whose clock is three hours ahead or behind, and is set right later."""

    shape = Shape("replica-clock", ("sentinel",), points=tuple(SHIFTS_S), seconds=(1.5, 3.0))

    async def start(self) -> None:
        """Request the failover."""
        await super().start()
        self._tasks.append(asyncio.create_task(self._take_over()))

    async def heal(self) -> None:
        """Wait for it, and set the clock right."""
        await super().heal()
        taking_over, self._tasks = self._tasks, []
        await asyncio.gather(*taking_over)
        await self.set_clocks(*self.world.site.cells, seconds=0)

    async def _take_over(self) -> None:
        before = self._before
        assert before is not None
        await wait_until(lambda: self._has_come(before), PROMOTED_S, "a failover in order")
        await self.set_clocks(*self.world.site.cells, seconds=SHIFTS_S[self.strike.point])


ALL = (Jump, OtherTime)
