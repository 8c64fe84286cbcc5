"""Faults of the machines that processes run on."""

import asyncio

from tests.faults.suite.checks.ends import read_journals
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import SETUPS, Shape

HOUR_S = 3600.0


class FullDisk(Breakage):
    """An agent's journal cannot be written: the agent ends, and ends again after each restart, until there is room."""

    shape = Shape("full-disk", on="agent", most_victims=2, seconds=(1.0, 2.5))
    holds_agents_up = True

    async def start(self) -> None:
        """Fill the disks."""
        for victim in self.victims():
            self.world.disk_is_full.setdefault(victim.name, set()).add(self)
            victim.tell("fill disk")

    async def heal(self) -> None:
        """Make room. Agents that still run on the full disk are ended, and restarted like the others."""
        for victim in self.victims():
            victim.kill()
            await victim.ended()
            self.world.disk_is_full.get(victim.name, set()).discard(self)
        for victim in self.victims():
            await self.world.revived(victim)


class Clock(Breakage):
    """The clock of one machine is wrong by an hour: its processes are restarted with it, and later without it."""

    shape = Shape("clock", on="any", most_victims=2, seconds=(3.0, 4.0), points=("ahead", "behind"))
    holds_agents_up = True

    async def start(self) -> None:
        """Set the clock wrong."""
        shift_s = HOUR_S if self.strike.point == "ahead" else -HOUR_S
        await self._begin_anew(dict.fromkeys(self.strike.victims, shift_s))

    async def heal(self) -> None:
        """Set it right."""
        await self._begin_anew(dict.fromkeys(self.strike.victims, 0.0))

    async def _begin_anew(self, shifts_s: dict[str, float]) -> None:
        self.world.clock_shift_s |= shifts_s
        for victim in self.victims():
            victim.kill()
        await asyncio.gather(*(victim.ended() for victim in self.victims()))
        for victim in self.victims():
            await self.world.revived(victim)


class Renamed(Breakage):
    """A machine with claims is renamed: its agent is restarted with other names of hosts, and later with its own.

    It must not start: its hosts would be offered whole, and what runs there would be stopped by nobody.
    """

    shape = Shape("renamed", SETUPS, on="agent", seconds=(2.0, 3.0))
    holds_agents_up = True

    async def start(self) -> None:
        """Give its hosts other names, if its journal has claims."""
        for victim in self.victims():
            victim.kill()
            await victim.ended()
            journal = self.world.journal(victim.name)
            if journal.exists() and read_journals([journal]):
                self.world.renamed.setdefault(victim.name, set()).add(self)

    async def heal(self) -> None:
        """Give them their own names back."""
        for victim in self.victims():
            self.world.renamed.get(victim.name, set()).discard(self)
            victim.kill()
            await victim.ended()
        for victim in self.victims():
            await self.world.revived(victim)


class _Restarting(Breakage):
    """The base class of faults that agents see once they have been restarted."""

    async def restart(self) -> None:
        """Restart the victims, and wait until they run."""
        for victim in self.victims():
            victim.kill()
            await victim.ended()
        for victim in self.victims():
            await self.world.revived(victim)


class Rezoned(_Restarting):
    """The hosts of a machine are in other zones after its agent has been restarted, and later in their own again.

    Their claims run on, and members of groups must be counted in the zones that the hosts have at each instant.
    """

    shape = Shape("rezoned", SETUPS, on="agent", most_victims=3, seconds=(2.0, 3.0))
    holds_agents_up = True

    async def start(self) -> None:
        """Restart the agents with other zones."""
        for victim in self.victims():
            self.world.rezoned.setdefault(victim.name, set()).add(self)
        await self.restart()

    async def heal(self) -> None:
        """Restart them with their own zones."""
        for victim in self.victims():
            self.world.rezoned.get(victim.name, set()).discard(self)
        await self.restart()


class LostGpu(_Restarting):
    """The first GPU of each machine falls off the bus, and the driver counts the others anew; later it is back.

    The name of a pool must not pass to another GPU: claims of the first one would run on the second, beside its own.
    """

    shape = Shape("lost-gpu", SETUPS, on="agent", most_victims=2, seconds=(1.0, 2.5))
    loses = frozenset({"failed"})
    holds_agents_up = True

    async def start(self) -> None:
        """Let the machines' agents see fewer GPUs."""
        for victim in self.victims():
            self.world.lost_gpus.setdefault(victim.name, set()).add(self)
        await self.restart()

    async def heal(self) -> None:
        """Let them see all again."""
        for victim in self.victims():
            self.world.lost_gpus.get(victim.name, set()).discard(self)
        await self.restart()


ALL = (FullDisk, Clock, Renamed, Rezoned, LostGpu)
