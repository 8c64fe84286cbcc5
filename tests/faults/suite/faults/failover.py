"""Faults of set-ups with several servers: failovers that lose writes, and a cell that moves under traffic."""

import asyncio
from contextlib import suppress

import redis

from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import Shape
from tests.faults.suite.sites import Clustered, WithSentinel
from tests.support.setups import Node
from tests.support.waiting import wait_until

PROMOTED_S = 30.0
BOTH = ("sentinel", "cluster")


class _Failover(Breakage):
    """The link to the replicas is cut, so that what is answered from then on is lost; then the primary dies."""

    loses_writes = True

    async def start(self) -> None:
        """Cut the link."""
        self._old: Node = self.several.primary()
        self.several.cut_replication()

    async def heal(self) -> None:
        """Kill the primary, and wait until another is one."""
        await asyncio.to_thread(self._old.kill)
        await wait_until(self._is_promoted, PROMOTED_S, "another primary")

    def _is_promoted(self) -> bool:
        site = self.several
        return isinstance(site, WithSentinel | Clustered) and _has_other(site, self._old)


def _has_other(site: WithSentinel | Clustered, old: Node) -> bool:
    if isinstance(site, Clustered):
        return site.setup.has_primary("c1") and site.primary() is not old
    return site.primary() is not old and site.primary().is_primary()


class SentinelFailover(_Failover):
    """By Sentinel."""

    shape = Shape("sentinel-failover", ("sentinel",), seconds=(0.5, 1.5))


class ClusterFailover(_Failover):
    """In a cluster."""

    shape = Shape("cluster-failover", ("cluster",), seconds=(0.5, 1.5))


class SlowPrimary(Breakage):
    """The primary stands still until another has been promoted, and then goes on as if nothing had been."""

    shape = Shape("primary-stands-still", BOTH, seconds=(0.1, 0.5))
    loses_writes = True

    async def start(self) -> None:
        """Stop it."""
        self._old: Node = self.several.primary()
        self._old.pause()

    async def heal(self) -> None:
        """Let it go on once it is no more the one."""
        site = self.several
        assert isinstance(site, WithSentinel | Clustered)
        await wait_until(lambda: _has_other(site, self._old), PROMOTED_S, "another primary")
        self._old.resume()


class FailoverInOrder(Breakage):
    """Sentinel is asked for a failover: nothing has to be lost, but every connection is."""

    shape = Shape("failover-in-order", ("sentinel",), seconds=(0.0, 0.2))
    loses_writes = True

    async def start(self) -> None:
        """Ask for it."""
        assert isinstance(self.several, WithSentinel)
        self._old = self.several.primary()
        # INPROG: another fault of the round has brought one about, and that one is waited for.
        with suppress(redis.ResponseError):
            self.several.setup.failover()

    async def heal(self) -> None:
        """Wait for it."""
        site = self.several
        assert isinstance(site, WithSentinel)
        await wait_until(lambda: _has_other(site, self._old), PROMOTED_S, "another primary")


class MoveCell(Breakage):
    """The cell's slot moves to another shard, at once or key by key."""

    shape = Shape("move-cell", ("cluster",), points=("at-once", "key-by-key"), seconds=(0.0, 0.2))

    async def start(self) -> None:
        """Move it. While its keys lie on two servers nobody can look at one instant of it."""
        site = self.several
        assert isinstance(site, Clustered)
        self.world.watcher.is_blind = True
        self._moving = asyncio.create_task(
            asyncio.to_thread(site.setup.move, "c1", at_once=self.strike.point == "at-once")
        )

    async def heal(self) -> None:
        """Wait until it is there."""
        await self._moving
        self.world.watcher.is_blind = False


ALL = (SentinelFailover, ClusterFailover, SlowPrimary, FailoverInOrder, MoveCell)
