"""A site: the store that a world stands on, as its processes, faults and the watcher reach it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import redis

from redsched.settings import Settings
from redsched.store.store import Store
from tests.faults.suite.traffic import QUOTA
from tests.faults.suite.view import View, read_views
from tests.faults.suite.wires import Wires

TIMES = {"jump_s": "3", "settle_s": "15", "remember_s": "180"}
"""The cells' own times, as short as the leases: docs/operate.md, "Limits of a cell". What the watcher reads some times
a second must not grow with the length of a run: ended claims are forgotten once no round can ask for them any more."""


class Site(ABC):
    """A store of some cells."""

    direct_url: str
    loses_nothing = False
    """Whether what this run's durability promises covers the faults of this set-up that lose writes."""

    def __init__(self, wires: Wires, cells: Sequence[str]) -> None:
        self.wires = wires
        self.cells = tuple(cells)

    @property
    def parts(self) -> Sequence[Sequence[str]]:
        """The cells by what can be read at one instant: here all of them, for one server has them."""
        return (self.cells,)

    @abstractmethod
    def url(self, child: str) -> str:
        """The store's URL for a process."""

    def ways(self, child: str) -> Mapping[int, int]:
        """Where a process lands that connects to a port of a server: none where it is given the URL of its wire."""
        return {wire.leads_to: wire.port for wire in self.wires[child] if wire.port}

    @abstractmethod
    def connect(self, tag: str) -> "redis.Redis":
        """A client of the present primary of a cell, or of another hash tag, past all wires."""

    def read(self, part: Sequence[str]) -> dict[str, View]:
        """The cells of one part now. Raises what redis raises while they are away."""
        with self.connect(part[0]) as client:
            return read_views(client, part)

    def quotas(self) -> dict[str, Mapping[str, str]]:
        """What each cell has of the quota of the project that has one: its hash, by the cell's name."""
        found: dict[str, Mapping[str, str]] = {}
        for cell in self.cells:
            with self.connect(cell) as client:
                found[cell] = client.hgetall(f"rs:{{{cell}}}:quota:{QUOTA.project}")
        return found

    async def prepare(self) -> None:
        """Declare the cells new, as whoever installs redsched does."""
        async with Store.connect(self.direct_url, Settings(cells=self.cells)) as store:
            for cell in self.cells:
                await store.cell(cell).init()
        for cell in self.cells:
            with self.connect(cell) as client:
                client.hset(meta(cell), mapping=TIMES)

    @abstractmethod
    async def tidy(self) -> None:
        """After a round: bring back what its faults took away for longer than the round."""


def meta(cell: str) -> str:
    """The key of a cell's own times."""
    return f"rs:{{{cell}}}:meta"
