"""Which places of a layout could give which part, by classes and traits alone.

Equal for all hosts of the layout: computed once per request and layout, so that only a host's numbers are left to read.
"""

from collections.abc import Iterable, Iterator

from redsched.cache.columns import Columns
from redsched.cache.pool_tree import PoolTree
from redsched.decide.pools.demand import Part, PoolDemand, Sort
from redsched.decide.pools.plan import NO_NODE, Option, Plan
from redsched.model.validation import SHARED_POOL, split_slot

MAX_PLANS = 1024


def plan_of(columns: Columns, row: int, needs: PoolDemand, shared: tuple[str, ...]) -> Plan:
    """Return the plan for a host. `shared` are the shared pools that it may use, among those that matter."""
    layout = columns.layout(row)
    key = (layout, columns.declared.revision if shared else 0, shared)
    plan = needs.plans.get(key)
    if plan is None:
        if len(needs.plans) >= MAX_PLANS:
            needs.plans.clear()
        plan = needs.plans[key] = _Drawing(columns, layout, needs, shared).plan()
    return plan


class _Drawing:
    """A plan under construction."""

    def __init__(self, columns: Columns, layout: PoolTree, needs: PoolDemand, shared: tuple[str, ...]) -> None:
        self._layout = layout
        self._needs = needs
        self._pools = {f"{SHARED_POOL}{name}": columns.declared.pools[name] for name in shared}
        self._places = ("", *layout.pools, *self._pools)
        self._index = {place: index for index, place in enumerate(self._places)}
        self._slots: dict[str, int] = {}

    def plan(self) -> Plan:
        parts = self._needs.parts
        options = tuple(tuple(self._options(part)) for part in parts)
        slots_of = self._slots_of(options)
        return Plan(
            self._layout,
            self._places,
            tuple(self._slots),
            options,
            tuple(self._above(place) for place in self._places),
            slots_of,
            self._twins(options, slots_of),
            tuple(split_slot(slot)[1] for slot in self._slots),
            tuple(index for index, slot in enumerate(self._slots) if slot.startswith(SHARED_POOL)),
            tuple(index for index, part in enumerate(parts) if part.traits()),
            self._sockets(),
        )

    def _options(self, part: Part) -> Iterator[Option]:
        classes = frozenset(name for name, _ in part.demands)
        for index, place in enumerate(self._places):
            if self._may_give(part, place, classes):
                takes = tuple((self._slot(place, name), amount) for name, amount in part.demands)
                covers = self._covers(place) if part.sort is Sort.SPREAD else 0
                yield Option(index, takes, self._node(place), covers)

    def _may_give(self, part: Part, place: str, classes: frozenset[str]) -> bool:
        if not place:  # its traits and amounts are the host's own
            return part.sort is not Sort.CELL
        if place in self._pools and part.sort is not Sort.SPREAD:
            return False
        if part.sort is Sort.CELL and self._layout.numa_node(place) != place:
            return False
        has = self._pools[place].slots.keys() if place in self._pools else self._layout.classes[place]
        return classes <= has and part.suits(self._traits(place))

    def _slot(self, place: str, resource_class: str) -> int:
        slot = f"{place}/{resource_class}" if place else resource_class
        return self._slots.setdefault(slot, len(self._slots))

    def _traits(self, place: str) -> frozenset[str]:
        if place in self._pools:
            return frozenset(self._pools[place].traits)
        return self._layout.traits.get(place, frozenset())

    def _covers(self, place: str) -> int:
        traits = self._traits(place) if place else frozenset()
        return bits(index for index, names in enumerate(self._needs.wants) if names & traits)

    def _node(self, place: str) -> int:
        node = self._layout.numa_node(place) if place and place not in self._pools else None
        return NO_NODE if node is None else self._index[node]

    def _sockets(self) -> dict[int, int]:
        found: dict[str, int] = {}
        nodes = [pool for pool in self._layout.pools if self._layout.numa_node(pool) == pool]
        known = all(map(self._layout.socket, nodes))  # as in Nova, one unknown socket makes all of them unknown
        sockets = {pool: (known and self._layout.socket(pool)) or pool for pool in nodes}
        for pool, socket in sockets.items():
            found[socket] = found.get(socket, 0) | bits((self._index[pool],))
        return {self._index[pool]: found[socket] for pool, socket in sockets.items()}

    def _above(self, place: str) -> int:
        if not place or place in self._pools:
            return bits((self._index[place],))
        return bits(self._index[one] for one in (place, *self._layout.above(place)))

    def _slots_of(self, options: tuple[tuple[Option, ...], ...]) -> tuple[tuple[int, ...], ...]:
        found: list[dict[int, None]] = [{} for _ in self._places]
        for option in (one for of_part in options for one in of_part):
            found[option.place].update((slot, None) for slot, _ in option.takes)
        return tuple(tuple(slots) for slots in found)

    def _twins(self, options: tuple[tuple[Option, ...], ...], slots_of: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        # Only leaves: a pool with others in it may be chosen for its position in the tree.
        seen: dict[object, int] = {}
        parents = set(self._layout.parent.values())
        twins = [-1] * len(self._places)
        for index, place in enumerate(self._places):
            if place and place not in self._pools and place not in parents:
                offers = tuple(
                    (number, one.covers) for number, of in enumerate(options) for one in of if one.place == index
                )
                is_node = self._layout.numa_node(place) == place
                socket = self._layout.socket(place) if is_node else None
                alike = (self._layout.parent[place], is_node, socket, offers, len(slots_of[index]))
                twins[index] = seen.setdefault(alike, len(seen))
        return tuple(twins)


def bits(indexes: Iterable[int]) -> int:
    """Return an integer with these bits set."""
    found = 0
    for index in indexes:
        found |= 1 << index
    return found
