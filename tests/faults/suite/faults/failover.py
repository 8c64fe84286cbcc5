"""Faults of set-ups with several servers: failovers that lose writes, and a cell that moves under traffic.

Several of them may strike the same server: a frozen one is killed, a demoted one is cut off. So each fault remembers
the server that it has struck, and checks the server's present state before it heals it.
"""

import asyncio
import time

import redis

from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import Shape, Strike
from tests.faults.suite.stores.several import Clustered, WithSentinel, pause, resume
from tests.faults.suite.world import World
from tests.support.setups import Node
from tests.support.waiting import wait_until

PROMOTED_S = 30.0
ASK_AGAIN_S = 5.0
"""Pause between two failover requests: longer than a Sentinel attempts one, and than the others need to learn of it."""

BOTH = ("sentinel", "cluster")


class _OfSeveral(Breakage):
    """The base class of these faults."""

    def __init__(self, world: World, strike: Strike) -> None:
        super().__init__(world, strike)
        self._old: Node | None = None
        """The server that was struck; None before that, and once it is healed."""
        self._has_leave = False

    async def led(self) -> Node:
        """Return the server that has the cell; wait for one if another fault has taken it away."""
        await wait_until(self._is_led, PROMOTED_S, f"a primary of {self.cell}")
        return self.several.primary(self.cell)

    def _is_led(self) -> bool:
        try:
            return self.several.primary(self.cell).is_primary()
        except redis.ConnectionError:
            return False

    async def promoted(self, old: Node) -> None:
        """Wait for a different primary. Raises AssertionError after PROMOTED_S."""
        await wait_until(lambda: self.several.is_led_without(old), PROMOTED_S, "another primary")

    async def take_leave(self) -> None:
        """Wait until a primary may be taken away, and a replica could be promoted in its place."""
        await self.several.leave.acquire()
        self._has_leave = True
        await self.led()
        await self.several.have_spare(self.cell)

    def give_leave_back(self) -> None:
        """Let another fault take a primary away, once."""
        if self._has_leave:
            self._has_leave = False
            self.several.leave.release()


class _Failover(_OfSeveral):
    """The link to the replicas is cut, so that later answers are lost; then the primary dies."""

    loses_writes = True

    async def start(self) -> None:
        """Cut the link."""
        await self.several.have_copy(self.cell)
        old = await self.led()
        self.several.cut_replication(self.cell)
        self._old = old

    async def heal(self) -> None:
        """Kill the server whose link was cut, and wait until another one is primary."""
        old, self._old = self._old, None
        if old is None:
            return
        try:
            await self.take_leave()
            await self.several.kill(old)
            await self.promoted(old)
            if self.several.loses_nothing:  # claims wait for replicas, and a shard of the cluster has no other
                await self.several.bring_back()
        finally:
            self.give_leave_back()


class SentinelFailover(_Failover):
    """With Sentinel."""

    shape = Shape("sentinel-failover", ("sentinel",), seconds=(0.5, 1.5))


class ClusterFailover(_Failover):
    """In a cluster: the other cell continues."""

    shape = Shape("cluster-failover", ("cluster",), on="cell", seconds=(0.5, 1.5))


class SlowPrimary(_OfSeveral):
    """The primary of a cell freezes until another one has been promoted, and then resumes unaware of that."""

    shape = Shape("primary-stands-still", BOTH, on="cell", seconds=(0.1, 0.5))
    loses_writes = True

    async def start(self) -> None:
        """Freeze it."""
        await self.several.have_copy(self.cell)
        await self.take_leave()
        self._old = await self.led()
        pause(self._old)

    async def heal(self) -> None:
        """Resume it once it is no longer primary, unless another fault has killed it meanwhile."""
        old, self._old = self._old, None
        try:
            if old is not None:
                await self.promoted(old)
        finally:
            if old is not None:
                resume(old)
            self.give_leave_back()


class FailoverInOrder(_OfSeveral):
    """A failover requested from Sentinel: the former primary stays up, and what it answers until it is left is lost."""

    shape = Shape("failover-in-order", ("sentinel",), seconds=(0.0, 0.2))
    loses_writes = True

    def __init__(self, world: World, strike: Strike) -> None:
        super().__init__(world, strike)
        self._before: int | None = None
        """The former number of failovers; None before it has begun, and once it is healed."""
        self._asked_at = 0.0

    async def start(self) -> None:
        """Request it."""
        await self.led()
        before = self._sentinel.failovers()
        self._ask()
        self._before = before

    async def heal(self) -> None:
        """Wait for it, and repeat the request if it was refused (INPROG, NOGOODSLAVE) or abandoned after a timeout.

        Sentinel retries by itself only if the primary is down, and here it is not. A failover caused by another fault
        also counts. It is recognised by its number: after two failovers the old primary may lead again.
        """
        before, self._before = self._before, None
        if before is not None:
            await self.several.have_spare(self.cell)
            await wait_until(lambda: self._has_come(before), PROMOTED_S, "a failover in order")

    def _has_come(self, before: int) -> bool:
        if self._sentinel.failovers() > before:
            return self._is_led()
        if time.monotonic() > self._asked_at + ASK_AGAIN_S:
            self._ask()
        return False

    def _ask(self) -> None:
        self._sentinel.ask_for_failover()
        self._asked_at = time.monotonic()

    @property
    def _sentinel(self) -> WithSentinel:
        assert isinstance(self.world.site, WithSentinel)
        return self.world.site


class MoveCell(_OfSeveral):
    """A cell's slot moves to another shard, at once or key by key."""

    shape = Shape("move-cell", ("cluster",), on="cell", points=("at-once", "key-by-key"), seconds=(0.0, 0.2))

    async def start(self) -> None:
        """Move it. While its keys are on two servers, no read can cover one instant of it."""
        self._tasks.append(asyncio.create_task(self._move()))

    async def heal(self) -> None:
        """Wait until it has arrived."""
        moving, self._tasks = self._tasks, []
        await asyncio.gather(*moving)

    async def _move(self) -> None:
        site = self.several
        assert isinstance(site, Clustered)
        async with site.leave:
            await self.led()
            self.world.watcher.blind_for.add(self.cell)
            try:
                await asyncio.to_thread(site.move, self.cell, self.strike.point == "at-once")
            finally:
                self.world.watcher.blind_for.discard(self.cell)


ALL = (SentinelFailover, ClusterFailover, SlowPrimary, FailoverInOrder, MoveCell)
