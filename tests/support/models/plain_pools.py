"""Hosts with pools as plain data, and the rules of assignment applied to them: every possible assignment in turn.

Written from docs/constraints.md and not from redsched.decide.pools, so that each can reveal errors of the other.
"""

from dataclasses import dataclass, field
from itertools import product
from math import prod

from redsched.cache.columns import Columns
from redsched.model import Request
from tests.support.builders.columns import columns_of

NODE = "HW_NUMA_ROOT"
SOCKETS = ("CUSTOM_SOCKET_0", "CUSTOM_SOCKET_1")


@dataclass
class PlainSlot:
    capacity: int
    claimed: int = 0
    external: int = 0
    least: int = 1
    most: int | None = None
    step: int = 1
    ratio: int = 1

    @property
    def free(self) -> int:
        return self.capacity - self.claimed - self.external

    @property
    def really_free(self) -> int:
        """What is free if the allocation ratio, which the capacity includes, does not count."""
        return -(-self.capacity // self.ratio) - self.claimed - self.external

    def gives(self, amount: int) -> bool:
        """Return whether one claim may take this amount altogether."""
        return amount <= self.free and (self.most is None or amount <= self.most)

    def allows(self, amount: int) -> bool:
        """Return whether one part of a request may take this amount."""
        return amount >= self.least and amount % self.step == 0

    def fields(self, slot: str) -> dict[str, str]:
        kinds = {
            "capacity": self.capacity,
            "claimed": self.claimed,
            "external": self.external,
            "min": self.least,
            "step": self.step,
            "ratio": self.ratio,
        }
        return {f"{kind}.{slot}": str(value) for kind, value in kinds.items()} | (
            {} if self.most is None else {f"max.{slot}": str(self.most)}
        )


@dataclass
class PlainPlace:
    """The root, a pool or a shared pool. `parent` is '' for children of the root."""

    slots: dict[str, PlainSlot] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    parent: str = ""
    aggregates: frozenset[str] = frozenset()


@dataclass
class PlainHost:
    """`places` has '' for the root and the pools by name; `shared` all shared pools of the cell."""

    places: dict[str, PlainPlace]
    shared: dict[str, PlainPlace] = field(default_factory=dict)
    aggregates: frozenset[str] = frozenset()

    def fields(self) -> dict[str, str]:
        found = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1"}
        found |= {f"aggregate.{name}": "1" for name in self.aggregates}
        for name, place in self.places.items():
            prefix = f"{name}/" if name else ""
            if name:
                found[f"pool.{name}"] = place.parent or "/"
            found |= {f"trait.{prefix}{trait}": "1" for trait in place.traits}
            for resource_class, slot in place.slots.items():
                found |= slot.fields(prefix + resource_class)
        return found

    def columns(self) -> Columns:
        """Return columns with this host alone, as h1."""
        columns = columns_of(h1=self.fields())
        for name, place in self.shared.items():
            fields = {"version": "1"} | {f"trait.{trait}": "1" for trait in place.traits}
            fields |= {f"aggregate.{one}": "1" for one in place.aggregates}
            for resource_class, slot in place.slots.items():
                fields |= slot.fields(resource_class)
            columns.declared.put("pool", name, fields)
        return columns

    def above(self, place: str) -> list[str]:
        """Return a place and everything that contains it."""
        found = [place]
        while place:
            place = self.places[place].parent
            found.append(place)
        return found

    def node(self, place: str) -> str | None:
        """Return the NUMA node that a place is or lies in."""
        return next((one for one in self.above(place) if one and NODE in self.places[one].traits), None)

    def sockets(self) -> dict[str | None, str]:
        """Return the socket of each NUMA node; nothing if that of some node is unknown."""
        nodes = {
            name: place.traits.intersection(SOCKETS) for name, place in self.places.items() if NODE in place.traits
        }
        return {name: min(one) for name, one in nodes.items()} if all(len(one) == 1 for one in nodes.values()) else {}

    def usable(self) -> dict[str, PlainPlace]:
        """Return every place that the unnumbered resources may come from."""
        return self.places | {
            f"pool:{name}": place
            for name, place in self.shared.items()
            if not place.aggregates or place.aggregates & self.aggregates
        }


@dataclass(frozen=True)
class Unit:
    """A unit that is placed in one place: its kind, its number within the kind, and its amounts."""

    kind: str
    number: int
    takes: tuple[tuple[str, int], ...]


def units_of(request: Request) -> list[Unit]:
    """Return every unit of a request."""
    found = [Unit("class", 0, (taken,)) for taken in request.resources.items()]
    found += [Unit("group", number, tuple(one.resources.items())) for number, one in enumerate(request.groups)]
    for number, devices in enumerate(request.pci):
        found += [Unit("pci", number, ((devices.resource_class, 1),))] * devices.count
    if request.numa:
        for number, cell in enumerate(request.numa.cells):
            dedicated = {"shared": 0, "dedicated": cell.cpus, "mixed": cell.dedicated_cpus}[request.numa.policy]
            size = request.numa.page_size_kb
            takes = {"PCPU": dedicated, "VCPU": cell.cpus - dedicated}
            if size and size != 4:
                takes[f"CUSTOM_HUGE_PAGES_{size}KB"] = cell.memory_mb * 1024 // size
            else:
                takes["MEMORY_MB"] = cell.memory_mb
            found.append(Unit("cell", number, tuple((name, amount) for name, amount in takes.items() if amount)))
    return found


def ways(host: PlainHost, request: Request, at_most: int) -> set[frozenset[tuple[str, int]]] | None:
    """Return the amounts by slot of every assignment of a request to a host; None if there are too many."""
    units = units_of(request)
    choices = [[place for place in host.usable() if _could_give(host, place, unit)] for unit in units]
    if prod(map(len, choices)) > at_most:
        return None
    return {
        frozenset(sums.items())
        for places in product(*choices)
        if (sums := _sums(units, places)) is not None and is_way(host, request, units, places, sums)
    }


def is_way(host: PlainHost, request: Request, units: list[Unit], places: tuple[str, ...], sums: dict[str, int]) -> bool:
    """Return whether these places for the units satisfy every rule."""
    return (
        all(_slot(host, slot).gives(amount) for slot, amount in sums.items())
        and _traits_are_right(host, request, [p for u, p in zip(units, places, strict=True) if u.kind == "class"])
        and _groups_are_right(host, request, [p for u, p in zip(units, places, strict=True) if u.kind == "group"])
        and _nodes_are_right(host, request, units, places)
    )


def _could_give(host: PlainHost, place: str, unit: Unit) -> bool:
    if place.startswith("pool:") and unit.kind != "class":
        return False
    slots = host.usable()[place].slots
    takes = unit.takes
    return all(name in slots and amount <= slots[name].free and slots[name].allows(amount) for name, amount in takes)


def _sums(units: list[Unit], places: tuple[str, ...]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for unit, place in zip(units, places, strict=True):
        for name, amount in unit.takes:
            slot = f"{place}/{name}" if place else name
            sums[slot] = sums.get(slot, 0) + amount
    return sums


def _slot(host: PlainHost, slot: str) -> PlainSlot:
    place, _, name = slot.rpartition("/")
    return host.usable()[place].slots[name]


def _traits_are_right(host: PlainHost, request: Request, places: list[str]) -> bool:
    held = host.places[""].traits.union(*(host.usable()[place].traits for place in places))
    return request.required <= held and not request.forbidden & held and all(one & held for one in request.any_of)


def _groups_are_right(host: PlainHost, request: Request, places: list[str]) -> bool:
    for group, place in zip(request.groups, places, strict=True):
        traits = host.places[place].traits
        if not group.required <= traits or group.forbidden & traits or not all(one & traits for one in group.any_of):
            return False
    with_resources = [place for group, place in zip(request.groups, places, strict=True) if group.resources]
    if request.group_policy == "isolate" and len(set(with_resources)) < len(with_resources):
        return False
    by_name = {group.name: place for group, place in zip(request.groups, places, strict=True)}
    return all(
        any(all(top in host.above(by_name[other]) for other in names) for top in {by_name[name] for name in names})
        for names in request.same_subtree
    )


def _nodes_are_right(host: PlainHost, request: Request, units: list[Unit], places: tuple[str, ...]) -> bool:
    cells = [place for unit, place in zip(units, places, strict=True) if unit.kind == "cell"]
    if any(host.node(place) != place for place in cells) or len(set(cells)) < len(cells):
        return False
    for unit, place in zip(units, places, strict=True):
        if unit.kind == "cell" and not _memory_is_real(host, request, unit, place):
            return False
        if unit.kind == "pci":
            devices, node = request.pci[unit.number], host.node(place)
            if not devices.required <= host.places[place].traits:
                return False
            near = node in cells or (node is None and devices.numa_policy == "legacy")
            if devices.numa_policy == "socket":
                sockets = host.sockets()
                near = node in cells or (node in sockets and sockets[node] in {sockets[cell] for cell in cells})
            if cells and devices.numa_policy != "preferred" and not near:
                return False
    return True


def _memory_is_real(host: PlainHost, request: Request, unit: Unit, place: str) -> bool:
    """Return whether a cell that must not overcommit memory, pinned or of pages of 4 KB, does not."""
    numa, taken = request.numa, dict(unit.takes)
    if numa is None or "MEMORY_MB" not in taken or (numa.policy == "shared" and numa.page_size_kb is None):
        return True
    return taken["MEMORY_MB"] <= host.places[place].slots["MEMORY_MB"].really_free
