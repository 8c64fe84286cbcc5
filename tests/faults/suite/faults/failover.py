"""Faults of set-ups with several servers: failovers that lose writes, and a cell that moves under traffic."""

import asyncio
from contextlib import suppress

import redis

from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import Shape
from tests.faults.suite.several import Clustered, WithSentinel
from tests.support.setups import Node
from tests.support.waiting import wait_until

PROMOTED_S = 30.0
BOTH = ("sentinel", "cluster")


class _OfSeveral(Breakage):
    """What these faults share."""

    async def led(self) -> Node:
        """The server that has the cell: where another fault has taken it away, as soon as there is one again."""
        await wait_until(self._is_led, PROMOTED_S, f"a primary of {self.cell}")
        return self.several.primary(self.cell)

    def _is_led(self) -> bool:
        try:
            return self.several.primary(self.cell).is_primary()
        except redis.ConnectionError:
            return False

    async def promoted(self, old: Node) -> None:
        """Wait for another primary than that."""
        await wait_until(lambda: self.several.is_led_without(old), PROMOTED_S, "another primary")


class _Failover(_OfSeveral):
    """The link to the replicas is cut, so that what is answered from then on is lost; then the primary dies."""

    loses_writes = True

    async def start(self) -> None:
        """Cut the link."""
        self._old = await self.led()
        self.several.cut_replication(self.cell)

    async def heal(self) -> None:
        """Kill the primary, and wait until another is one."""
        async with self.several.leave:
            await asyncio.to_thread(self._old.kill)
            await self.promoted(self._old)


class SentinelFailover(_Failover):
    """By Sentinel."""

    shape = Shape("sentinel-failover", ("sentinel",), seconds=(0.5, 1.5))


class ClusterFailover(_Failover):
    """In a cluster: the other cell goes on."""

    shape = Shape("cluster-failover", ("cluster",), on="cell", seconds=(0.5, 1.5))


class SlowPrimary(_OfSeveral):
    """The primary of a cell stands still until another has been promoted, and then goes on as if nothing had been."""

    shape = Shape("primary-stands-still", BOTH, on="cell", seconds=(0.1, 0.5))
    loses_writes = True

    async def start(self) -> None:
        """Stop it."""
        await self.several.leave.acquire()
        self._old = await self.led()
        self._old.pause()

    async def heal(self) -> None:
        """Let it go on once it is no more the one."""
        await self.promoted(self._old)
        self._old.resume()
        self.several.leave.release()


class FailoverInOrder(_OfSeveral):
    """Sentinel is asked for a failover: nothing has to be lost, but every connection is."""

    shape = Shape("failover-in-order", ("sentinel",), seconds=(0.0, 0.2))
    loses_writes = True

    async def start(self) -> None:
        """Ask for it."""
        assert isinstance(self.several, WithSentinel)
        self._old = self.several.primary(self.cell)
        # INPROG: another fault of the round has brought one about, and that one is waited for.
        with suppress(redis.ResponseError):
            self.several.setup.failover()

    async def heal(self) -> None:
        """Wait for it."""
        await self.promoted(self._old)


class MoveCell(_OfSeveral):
    """A cell's slot moves to another shard, at once or key by key."""

    shape = Shape("move-cell", ("cluster",), on="cell", points=("at-once", "key-by-key"), seconds=(0.0, 0.2))

    async def start(self) -> None:
        """Move it. While its keys lie on two servers nobody can look at one instant of it."""
        self._moving = asyncio.create_task(self._move())

    async def heal(self) -> None:
        """Wait until it is there."""
        await self._moving

    async def _move(self) -> None:
        site = self.several
        assert isinstance(site, Clustered)
        async with site.leave:
            await self.led()
            self.world.watcher.blind_for.add(self.cell)
            await asyncio.to_thread(site.move, self.cell, self.strike.point == "at-once")
            self.world.watcher.blind_for.discard(self.cell)


ALL = (SentinelFailover, ClusterFailover, SlowPrimary, FailoverInOrder, MoveCell)
