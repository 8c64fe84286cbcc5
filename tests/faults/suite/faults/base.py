"""What every fault is."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, TypeVar

from redsched.aio import end_all
from tests.faults.suite.child import Child
from tests.faults.suite.plan import Shape, Strike, children
from tests.faults.suite.several import Several
from tests.faults.suite.single import Single
from tests.faults.suite.wires import Wire
from tests.faults.suite.world import World

T = TypeVar("T")


class Breakage(ABC):
    """One fault of one round."""

    shape: ClassVar[Shape]
    loses: ClassVar[frozenset[str]] = frozenset()
    """What may become of claims that were answered as claimed, and no more, while this is at work: see `Levels.lost`.

    Empty where nothing may. A claim that was active, or answered as such, is never lost, whatever is at work.
    """
    loses_writes = False
    """Whether the store comes back with less than it had answered, unless it was asked for more durability."""
    holds_agents_up = False
    """Whether the agents that it strikes may take claims up too late: leases are short, waits for replies long."""

    def __init__(self, world: World, strike: Strike) -> None:
        self.world = world
        self.strike = strike
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def start(self) -> None:
        """Break it. What another fault has taken away is waited for, or left as it is."""

    @abstractmethod
    async def heal(self) -> None:
        """Heal it, and leave nothing of it.

        Also where `start` has failed half-way, where another fault has killed, replaced or repaired what this one
        struck, and where it is healed already.
        """

    def held_up(self) -> frozenset[str]:
        """Return the agents whose hosts may let a lease run out because of it."""
        return frozenset(self.strike.victims).intersection(children("agent") if self.holds_agents_up else ())

    def may_lose(self) -> frozenset[str]:
        """What may become of such claims in this world."""
        loses_writes = self.loses_writes and not self.world.site.loses_nothing
        return self.loses | ({"forgotten"} if loses_writes else set())

    @property
    def several(self) -> Several:
        """The servers, for faults of set-ups with more than one."""
        assert isinstance(self.world.site, Several)
        return self.world.site

    @property
    def single(self) -> Single:
        """The one server, for faults of that set-up."""
        assert isinstance(self.world.site, Single)
        return self.world.site

    @property
    def cell(self) -> str:
        """The cell that it strikes; the first, for faults of the store as a whole."""
        return self.strike.victims[0] if self.shape.on == "cell" else self.world.site.cells[0]

    def victims(self) -> list[Child]:
        """The processes that it strikes."""
        return [self.world.children[name] for name in self.strike.victims]

    def wires(self) -> Iterator[Wire]:
        """The wires of the processes that it strikes."""
        for name in self.strike.victims:
            yield from self.world.site.wires[name]

    def keep_away(self) -> None:
        """Have no victim begun anew until `let_back`."""
        for name in self.strike.victims:
            self.world.kept_away.setdefault(name, set()).add(self)

    def let_back(self) -> None:
        """Have the victims begun anew that no other fault keeps away."""
        for name in self.strike.victims:
            self.world.kept_away.get(name, set()).discard(self)

    async def end_tasks(self) -> None:
        """End what was started to go on until it is healed."""
        await end_all(self._tasks)
        self._tasks = []


def take_out(some: list[T], one: T) -> None:
    """Take something out of a list, where it is in it."""
    with suppress(ValueError):
        some.remove(one)
