"""The base class of all faults."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, TypeVar

from redsched.aio import end_all
from tests.faults.suite.plan import Shape, Strike, children
from tests.faults.suite.processes.child import Child
from tests.faults.suite.stores.several import Several
from tests.faults.suite.stores.single import Single
from tests.faults.suite.stores.wires import Wire
from tests.faults.suite.world import World

T = TypeVar("T")


class Breakage(ABC):
    """One fault of one round."""

    shape: ClassVar[Shape]
    loses: ClassVar[frozenset[str]] = frozenset()
    """The ends that claims answered as claimed may have while this fault is active: see `Levels.lost`.

    Empty if there are none. A claim that was active, or answered as active, is never lost, whatever the fault.
    """
    loses_writes = False
    """Whether the store may lose answered writes, unless more durability was requested."""
    holds_agents_up = False
    """Whether its agents may accept claims too late: leases are short, waits for replies long."""

    def __init__(self, world: World, strike: Strike) -> None:
        self.world = world
        self.strike = strike
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def start(self) -> None:
        """Break it. If another fault holds the target, wait for it or leave it as it is."""

    @abstractmethod
    async def heal(self) -> None:
        """Heal it completely.

        Also if `start` failed half-way, if another fault has killed, replaced or repaired the same target,
        and if it is healed already.
        """

    def held_up(self) -> frozenset[str]:
        """Return the agents whose hosts may let a lease expire because of it."""
        return frozenset(self.strike.victims).intersection(children("agent") if self.holds_agents_up else ())

    def may_lose(self) -> frozenset[str]:
        """Return the ends that such claims may have in this world."""
        loses_writes = self.loses_writes and not self.world.site.loses_nothing
        return self.loses | ({"forgotten"} if loses_writes else set())

    @property
    def several(self) -> Several:
        """Return the servers, for faults of set-ups with more than one."""
        assert isinstance(self.world.site, Several)
        return self.world.site

    @property
    def single(self) -> Single:
        """Return the one server, for faults of that set-up."""
        assert isinstance(self.world.site, Single)
        return self.world.site

    @property
    def cell(self) -> str:
        """Return the cell that it strikes; the first, for faults of the whole store."""
        return self.strike.victims[0] if self.shape.on == "cell" else self.world.site.cells[0]

    def victims(self) -> list[Child]:
        """Return the processes that it strikes."""
        return [self.world.children[name] for name in self.strike.victims]

    def wires(self) -> Iterator[Wire]:
        """Return the wires of the processes that it strikes."""
        for name in self.strike.victims:
            yield from self.world.site.wires[name]

    def keep_away(self) -> None:
        """Keep all victims from being restarted until `let_back`."""
        for name in self.strike.victims:
            self.world.kept_away.setdefault(name, set()).add(self)

    def let_back(self) -> None:
        """Restart the victims that no other fault keeps away."""
        for name in self.strike.victims:
            self.world.kept_away.get(name, set()).discard(self)

    async def end_tasks(self) -> None:
        """End the task that runs until the fault is healed."""
        await end_all(self._tasks)
        self._tasks = []


def take_out(some: list[T], one: T) -> None:
    """Remove an item from a list, if it is there."""
    with suppress(ValueError):
        some.remove(one)
