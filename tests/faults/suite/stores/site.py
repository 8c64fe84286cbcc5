"""A site: the store of a world, as its processes, faults and the watcher reach it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import redis

from redsched.settings import Settings
from redsched.store.store import Store
from tests.faults.suite.callers.traffic import QUOTA
from tests.faults.suite.checks.view import View, read_views
from tests.faults.suite.stores.wires import Wires

TIMES = {"jump_s": "3", "settle_s": "15", "remember_s": "180"}
"""Short times for the cells, to match the leases: docs/operate.md, "Limits of a cell". The watcher's reads must not
grow with the length of a run: cells forget ended claims once no round can ask for them any more."""


class Site(ABC):
    """A store of some cells."""

    direct_url: str
    loses_nothing = False
    """Whether the run's durability promises to survive the faults of this set-up that lose writes."""

    def __init__(self, wires: Wires, cells: Sequence[str]) -> None:
        self.wires = wires
        self.cells = tuple(cells)

    @property
    def parts(self) -> Sequence[Sequence[str]]:
        """Return the cells grouped by what can be read at one instant: here all of them, on one server."""
        return (self.cells,)

    @abstractmethod
    def url(self, child: str) -> str:
        """Return the store's URL for a process."""

    def ways(self, child: str) -> Mapping[int, int]:
        """Return where a process's connections to a port really go; empty if the process gets the URL of its wire."""
        return {wire.leads_to: wire.port for wire in self.wires[child] if wire.port}

    @abstractmethod
    def connect(self, tag: str) -> "redis.Redis":
        """Return a client of the present primary of a cell, or of another hash tag, bypassing all wires."""

    def read(self, part: Sequence[str]) -> dict[str, View]:
        """Read the cells of one part now. Raises what redis raises while they are away."""
        with self.connect(part[0]) as client:
            return read_views(client, part)

    def quotas(self) -> dict[str, Mapping[str, str]]:
        """Return the quota's hash in each cell, by the cell's name."""
        found: dict[str, Mapping[str, str]] = {}
        for cell in self.cells:
            with self.connect(cell) as client:
                found[cell] = client.hgetall(f"rs:{{{cell}}}:quota:{QUOTA.project}")
        return found

    async def prepare(self) -> None:
        """Create the cells, as an operator who installs redsched does."""
        async with Store.connect(self.direct_url, Settings(cells=self.cells)) as store:
            for cell in self.cells:
                await store.cell(cell).init()
        for cell in self.cells:
            with self.connect(cell) as client:
                client.hset(meta(cell), mapping=TIMES)

    @abstractmethod
    async def tidy(self) -> None:
        """After a round: restore what its faults took away for longer than the round."""


def meta(cell: str) -> str:
    """Return the key of a cell's times."""
    return f"rs:{{{cell}}}:meta"
