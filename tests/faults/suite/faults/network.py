"""Faults on the routes between processes and servers, on all routes of a process, including those to Sentinels."""

import asyncio
from random import Random

from tests.faults.suite.faults.base import Breakage, take_out
from tests.faults.suite.plan import AGENTS, SCHEDULERS, SETUPS, Shape
from tests.support.processes.proxy import Fault

MANY = SCHEDULERS + AGENTS
CUT_S = 0.15


class _OnTheWay(Breakage):
    """Some commands of some processes meet faults."""

    holds_agents_up = True
    meets: Fault
    share = 0.1
    """The share of commands."""

    async def start(self) -> None:
        """Begin."""
        self._rng = Random(str(self.strike))
        for wire in self.wires():
            wire.plays.append(self._play)

    async def heal(self) -> None:
        """End it."""
        for wire in self.wires():
            take_out(wire.plays, self._play)

    def _play(self, _: list[bytes]) -> Fault:
        return self.meets if self._rng.random() < self.share else Fault.NONE


class Cut(Breakage):
    """Connections are cut repeatedly."""

    holds_agents_up = True
    shape = Shape("cut", SETUPS, on="any", most_victims=MANY)

    async def start(self) -> None:
        """Begin cutting."""
        self._tasks.append(asyncio.create_task(self._cut()))

    async def heal(self) -> None:
        """End cutting."""
        await self.end_tasks()

    async def _cut(self) -> None:
        while True:
            for wire in self.wires():
                wire.cut()
            await asyncio.sleep(CUT_S)


class Away(Breakage):
    """Processes cannot reach the store at all for a while."""

    holds_agents_up = True
    shape = Shape("away", SETUPS, on="any", most_victims=MANY)

    async def start(self) -> None:
        """Close the route."""
        for wire in self.wires():
            wire.shut_by.add(self)
            wire.cut()

    async def heal(self) -> None:
        """Open it."""
        for wire in self.wires():
            wire.shut_by.discard(self)


class Delay(_OnTheWay):
    """Commands are delayed."""

    shape = Shape("delay", SETUPS, on="any", most_victims=MANY)
    meets = Fault.DELAY
    share = 0.3


class DropRequests(_OnTheWay):
    """Requests are lost, and their connections with them."""

    shape = Shape("drop-requests", SETUPS, on="any", most_victims=MANY)
    meets = Fault.LOSE_REQUEST


class DropReplies(_OnTheWay):
    """Replies are lost, and their connections with them: the requests have been executed."""

    shape = Shape("drop-replies", SETUPS, on="any", most_victims=MANY)
    meets = Fault.LOSE_REPLY


class HoldReplies(_OnTheWay):
    """Replies never arrive: the process has to detect that."""

    shape = Shape("hold-replies", SETUPS, on="any", most_victims=MANY, seconds=(1.0, 2.0))
    meets = Fault.HOLD_REPLY
    share = 0.03


class SpoilReplies(_OnTheWay):
    """A byte of a reply changes in transit."""

    shape = Shape("spoil-replies", SETUPS, on="any", most_victims=MANY)
    meets = Fault.SPOIL_REPLY


class SpoilRequests(_OnTheWay):
    """A byte of a request changes in transit."""

    shape = Shape("spoil-requests", SETUPS, on="any", most_victims=MANY)
    meets = Fault.SPOIL_REQUEST


ALL = (Cut, Away, Delay, DropRequests, DropReplies, HoldReplies, SpoilReplies, SpoilRequests)
