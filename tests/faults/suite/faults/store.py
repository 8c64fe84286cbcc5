"""Faults of the store itself."""

import asyncio

from tests.faults.suite.callers.traffic import LEASE_S
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import Shape

FORGOTTEN = frozenset({"forgotten"})
TRIM_S = 0.1


class KillWithAof(Breakage):
    """The server is killed and restarted with its append-only file, which is at most a second old."""

    shape = Shape("kill-with-aof")
    loses_writes = True

    async def start(self) -> None:
        """Kill it."""
        await self.single.kill()

    async def heal(self) -> None:
        """Restart it."""
        await self.single.restart(forgets=False)


class KillWithoutAof(Breakage):
    """The server is killed and restarted without data."""

    shape = Shape("kill-without-aof")
    loses = FORGOTTEN

    async def start(self) -> None:
        """Kill it."""
        await self.single.kill()

    async def heal(self) -> None:
        """Restart it."""
        await self.single.restart(forgets=True)


class Wipe(Breakage):
    """FLUSHALL."""

    shape = Shape("flushall", seconds=(0.0, 0.0))
    loses = FORGOTTEN

    async def start(self) -> None:
        """Wipe it."""
        await self.single.once_there(self.single.wipe)

    async def heal(self) -> None:
        """Do nothing: it heals by itself."""


class Freeze(Breakage):
    """The server is frozen for longer than every lease of hosts and claims."""

    shape = Shape("freeze", seconds=(LEASE_S + 1.0, LEASE_S + 1.5))

    async def start(self) -> None:
        """Freeze it."""
        await self.single.freeze(self)

    async def heal(self) -> None:
        """Resume it."""
        await self.single.thaw(self)


class Trim(Breakage):
    """A cell's feed is trimmed to nothing, repeatedly."""

    shape = Shape("trim", on="cell", seconds=(1.0, 2.0))

    async def start(self) -> None:
        """Begin trimming."""
        self._tasks.append(asyncio.create_task(self._trim()))

    async def heal(self) -> None:
        """End trimming."""
        await self.end_tasks()

    async def _trim(self) -> None:
        while True:
            await self.single.once_there(self._trim_once)
            await asyncio.sleep(TRIM_S)

    def _trim_once(self) -> None:
        with self.single.connect(self.cell) as client:
            client.xtrim(f"rs:{{{self.cell}}}:changes", maxlen=0, approximate=False)


class OutOfMemory(Breakage):
    """The server has no memory left and evicts nothing: it refuses commands that could need more."""

    shape = Shape("out-of-memory", seconds=(1.0, 2.5))

    async def start(self) -> None:
        """Take its memory."""
        await self.single.once_there(lambda: self._limit("1mb"))

    async def heal(self) -> None:
        """Return it."""
        await self.single.once_there(lambda: self._limit("0"))

    def _limit(self, limit: str) -> None:
        with self.single.connect(self.cell) as client:
            client.config_set("maxmemory", limit)


ALL = (KillWithAof, KillWithoutAof, Wipe, Freeze, Trim, OutOfMemory)
