"""The weighers `gpu_stranding` and `stranding`: keep scarce classes usable, by what is left beside them.

A free GPU on a host without free CPUs is useless to all requests that need both. The same holds for any scarce class:
FPGAs, local SSDs, licences of a host. Both weighers estimate how much of the free amount lacks what requests for it ask
for as well: what they have asked for until now, with the settings' values as a start.

Whatever a request without a scarce class takes is taken from beside it. So `stranding` also counts against a host each
class that it has, that few other hosts have, and that the request does not ask for: see `spared`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import demand, room
from redsched.decide.scoring.spared import Spared
from redsched.decide.scoring.weigher import Score, Weigher
from redsched.model import Amounts, Request
from redsched.model.workload import Workload

STRANDING = "stranding"
"""The name of the weigher of scarce classes, which every policy has."""
PRIOR_PLACES = 200.0
"""How many requested places the settings' values count as, beside the real ones."""
UNLIMITED = 1e18


@dataclass(frozen=True, slots=True)
class Beside:
    """What is requested with a scarce class: `amounts` of other classes with every `unit` of it."""

    scarce: str
    unit: int
    amounts: Mapping[str, float]

    def scale(self, asked: Amounts) -> float:
        """Return how much of the scarce class these amounts can waste at most, at least a unit: a unit for scores."""
        others = (self.unit * asked.get(name, 0) / per_unit for name, per_unit in self.amounts.items())
        return max(float(self.unit), float(asked.get(self.scarce, 0)), *others)

    def growth(self, columns: Columns, asked: Amounts, rows: Rows) -> Score:
        """Return by how much more of the scarce class is stranded once the amounts are taken: -1 to 1, by the scale.

        A class that a host does not have strands nothing there: its requests go elsewhere, or take it from a shared
        pool.
        """
        free = np.maximum(room(columns, self.scarce, rows)[1], 0.0)
        left = free - asked.get(self.scarce, 0)
        before: Score = np.zeros(np.shape(free))[()]
        after = before
        for name, per_unit in sorted(self.amounts.items()):
            capacity, rest = room(columns, name, rows)
            serving, times = np.maximum(rest, 0.0) + (capacity <= 0) * UNLIMITED, self.unit / per_unit
            before = np.maximum(before, free - serving * times)
            after = np.maximum(after, left - (serving - asked.get(name, 0)) * times)
        return (after - before) / self.scale(asked)


class Scarce:
    """A scarce class: the settings' amounts beside a unit of it, and what the cell's requests asked for."""

    def __init__(self, name: str, usual: Mapping[str, float], unit: int = 1) -> None:
        self._usual = Beside(name, unit, usual)
        self._of = lru_cache(8)(self._mixed)

    def of(self, workload: Workload) -> Beside:
        """Return what is requested with the class in a cell with this workload."""
        return self._of(workload)

    def _mixed(self, workload: Workload) -> Beside:
        name, unit, usual = self._usual.scarce, self._usual.unit, self._usual.amounts
        asked = workload.scarce.get(name)
        units = asked.amounts.get(name, 0.0) / unit if asked else 0.0
        if asked is None or not units:
            return self._usual
        known = asked.places / (asked.places + PRIOR_PLACES)
        found = {one: asked.amounts.get(one, 0.0) / units for one in usual}
        mixed = {one: (1 - known) * usual[one] + known * found[one] for one in usual}
        return Beside(name, unit, {one: amount for one, amount in mixed.items() if amount > 0})


def depends_on_workload(columns: Columns) -> Hashable:
    """Return the workload, of which a changed one is another object."""
    return columns.workload


def stranding(classes: Sequence[Scarce]) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score: 0.5 if as much as before of each scarce class lacks what is needed beside it.

    Lower if more of it does, higher if less does. For several classes, the growths add up, to at most that of one.
    """

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        asked = demand(request)
        grown: Score = np.zeros(np.shape(columns.versions[rows]))[()]
        for one in classes:
            grown = grown + one.of(columns.workload).growth(columns, asked, rows)
        if len(classes) > 1:
            grown = np.minimum(1.0, np.maximum(-1.0, grown))
        return 0.5 - grown / 2

    return raw


def stranding_weigher(classes: Sequence[Scarce], spared: Spared) -> Weigher:
    """Make the weigher `stranding`: that of these classes, or 0 without any, less what counts against spared hosts."""
    of_classes = stranding(classes)

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        hosts = spared.hosts(columns)
        value = of_classes(columns, request, rows) if classes else 0.0
        return value - hosts.against(request)[rows] if hosts.names else value

    def depends(columns: Columns) -> Hashable:
        # A host that gets or loses a scarce class is a changed row anyway.
        names = spared.hosts(columns).names
        return (columns.workload, names) if classes else names

    def idle(columns: Columns, _request: Request) -> bool:
        return not classes and not spared.hosts(columns).names

    def against(columns: Columns, request: Request, rows: Rows) -> Score:
        hosts = spared.hosts(columns)
        return hosts.against(request)[rows] if hosts.names else 0.0

    return Weigher(STRANDING, raw, depends=depends, total=True, idle=idle, by_degree=True, equal_in=against)
