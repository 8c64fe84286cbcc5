"""The hosts that few others can replace: those with a class that at most a part of the hosts have, such as GPUs.

What is scarce follows from the inventories alone, and not from claims. So it is computed when hosts come, go or change
their capacity, and a decision only reads an array.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.scoring.demand import demand
from redsched.decide.scoring.headroom import DIMENSIONS
from redsched.model import Request
from redsched.model.validation import split_slot

MAX_REQUESTS = 256
"""The most requests whose array is known without looking at what they ask for; more than are remembered in profiles."""


@dataclass(frozen=True, slots=True)
class ScarceHosts:
    """The hosts that have each scarce class, themselves or in their pools: bool of shape (size,)."""

    holders: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    _by_unasked: dict[tuple[str, ...], NDArray[np.float64]] = field(default_factory=dict)
    _by_request: dict[int, tuple[Request, NDArray[np.float64]]] = field(default_factory=dict)

    def against(self, request: Request) -> NDArray[np.float64]:
        """Return what counts against the hosts of scarce classes that a request does not ask for: of shape (size,).

        0 without such a class, 1 with one, 4/3 with two, and so on up to 2. Only if there are scarce classes.
        """
        known = self._by_request.get(id(request))
        if known is None or known[0] is not request:
            if len(self._by_request) >= MAX_REQUESTS:
                self._by_request.clear()
            known = self._by_request[id(request)] = request, self._of(self.unasked(request))
        return known[1]

    def unasked(self, request: Request) -> tuple[str, ...]:
        """Return the scarce classes that a request does not ask for, sorted."""
        asked = demand(request)
        return tuple(name for name in self.holders if not asked.get(name))

    def _of(self, unasked: tuple[str, ...]) -> NDArray[np.float64]:
        found = self._by_unasked.get(unasked)
        if found is None:
            if len(self._by_unasked) >= MAX_REQUESTS:
                self._by_unasked.clear()
            count = np.zeros(next(iter(self.holders.values())).shape)
            for name in unasked:
                count += self.holders[name]
            found = self._by_unasked[unasked] = 2.0 * count / (count + 1.0)
        return found


_NONE = ScarceHosts()


class Spared:
    """The classes that at most the part `up_to` of a cell's hosts have, and none of DIMENSIONS; 0: none."""

    def __init__(self, up_to: float) -> None:
        self._up_to = up_to

    def hosts(self, columns: Columns) -> ScarceHosts:
        """Return the hosts that have scarce classes. The same object until hosts come, go or change their capacity."""
        return columns.of_inventory(self, self._find) if self._up_to else _NONE

    def _find(self, columns: Columns) -> ScarceHosts:
        slots, most = defaultdict[str, list[str]](list), self._up_to * len(columns)
        for slot in columns.capacity:
            if (name := split_slot(slot)[1]) not in DIMENSIONS:
                slots[name].append(slot)
        found: dict[str, NDArray[np.bool_]] = {}
        for name, some in sorted(slots.items()):
            held = columns.capacity[some[0]] > 0
            for slot in some[1:]:
                held |= columns.capacity[slot] > 0
            if 0 < np.count_nonzero(held) <= most:
                found[name] = held
        return ScarceHosts(found, frozenset(found)) if found else _NONE
