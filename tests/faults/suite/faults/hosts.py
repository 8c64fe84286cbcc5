"""Operations on hosts during traffic: drains with moves, write-offs while hosts are away for long, and taken names."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random

from redsched.model import HostStatus
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.fleet import cell_of, hosts_of
from tests.faults.suite.plan import SETUPS, Shape, Strike
from tests.faults.suite.world import World

AGAIN_S = 0.1
DRAINED = 2
"""The number of each victim's hosts that are drained."""


class Drain(Breakage):
    """Some hosts are drained: their claims are moved, one by one. Then they are enabled again, empty or not."""

    shape = Shape("drain", SETUPS, on="agent", most_victims=2, seconds=(1.5, 3.0))

    async def start(self) -> None:
        """Begin draining."""
        await self.world.operator.have(self._hosts(), HostStatus.DRAINING, move=True)

    async def heal(self) -> None:
        """End draining."""
        await self.world.operator.have(self._hosts(), HostStatus.ENABLED)

    def _hosts(self) -> list[str]:
        rng = Random(str(self.strike))
        return [host for agent in self.strike.victims for host in rng.sample(hosts_of(agent), DRAINED)]


class Evacuate(Breakage):
    """A machine is away, written off and evacuated, while its work keeps running; then it returns."""

    shape = Shape("evacuate", SETUPS, on="agent", seconds=(2.5, 4.0))
    holds_agents_up = True

    async def start(self) -> None:
        """Kill the agent, keep it away, and write its hosts off."""
        self.keep_away()
        for victim in self.victims():
            victim.kill()
            await victim.ended()
        await self.world.operator.write_off(self._hosts())

    async def heal(self) -> None:
        """Let it return, and enable its hosts again."""
        self.let_back()
        for victim in self.victims():
            await self.world.revived(victim)
        await self.world.operator.have(self._hosts(), HostStatus.ENABLED)

    def _hosts(self) -> list[str]:
        return [host for agent in self.strike.victims for host in hosts_of(agent)]


class TwoCells(Breakage):
    """Another machine has the names of a machine's hosts, and reports them to the other cells.

    These refuse it. Only after a wipe it may be first; then the cell to which the hosts belong has none of them until
    it is gone. So a watcher never sees a host in two cells.
    """

    shape = Shape("two-cells", SETUPS, on="agent", seconds=(1.5, 3.0))
    holds_agents_up = True

    def __init__(self, world: World, strike: Strike) -> None:
        super().__init__(world, strike)
        self._healed = asyncio.Event()

    async def start(self) -> None:
        """Begin to report."""
        self._tasks.append(asyncio.create_task(self._report()))

    async def heal(self) -> None:
        """Stop reporting, and remove the hosts that were accepted."""
        self._healed.set()
        reporting, self._tasks = self._tasks, []
        await asyncio.gather(*reporting)
        for cell, hosts in self._elsewhere():
            await self.world.operator.remove(hosts, cell)

    async def _report(self) -> None:
        while not self._healed.is_set():
            for cell, hosts in self._elsewhere():
                await self.world.operator.report(hosts, cell)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._healed.wait(), AGAIN_S)

    def _elsewhere(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the cells that the hosts are not in, with the hosts."""
        for agent in self.strike.victims:
            own = cell_of(agent, self.world.site.cells)
            yield from ((cell, hosts_of(agent)) for cell in self.world.site.cells if cell != own)


ALL = (Drain, Evacuate, TwoCells)
