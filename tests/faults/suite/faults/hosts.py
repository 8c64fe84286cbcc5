"""Operations on hosts during traffic: drains with moves, and write-offs while hosts are away for long."""

from random import Random

from redsched.model import HostStatus
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.fleet import hosts_of
from tests.faults.suite.plan import SETUPS, Shape

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


ALL = (Drain, Evacuate)
